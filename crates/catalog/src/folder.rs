//! Data files: those that the binary carries, and the user's files on top. A user's file replaces
//! one of ours with the same name.

use super::faults::Fault;
use crate::file::{read_kept, weakness};
use include_dir::Dir;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// A file as the user knows it (`workloads/llheap/churn.toml`, or a path in the user's folder), and
/// its text.
pub type Text = (String, String);

/// Returns the TOML files of an embedded folder and of the user's folder of the same name, sorted
/// by path.
pub fn texts(embedded: &Dir<'static>, folder: &str, faults: &mut Vec<Fault>) -> Vec<Text> {
    texts_with(embedded, folder, users(folder).as_deref(), faults)
}

/// Does the same as [`texts`], with the user's folder as an argument; a folder that does not exist
/// counts as empty.
pub fn texts_with(
    embedded: &Dir<'static>,
    folder: &str,
    user: Option<&Path>,
    faults: &mut Vec<Fault>,
) -> Vec<Text> {
    let mut all = Vec::new();
    collect(embedded, Path::new(folder), &mut all);
    let mut paths: Vec<PathBuf> = user.into_iter().flat_map(listing).collect();
    paths.sort();
    for path in paths.iter().filter(|path| is_toml(path)) {
        let file = path.display().to_string();
        match read(path) {
            Ok(text) => {
                all.retain(|(ours, _)| Path::new(ours).file_name() != path.file_name());
                all.push((file, text));
            }
            Err(error) => faults.push(Fault::new(
                file,
                "",
                error.to_string(),
                "make it readable, or remove it",
            )),
        }
    }
    all.sort();
    all
}

/// Returns the user's folder for such data: `$XDG_CONFIG_HOME/heapmark/FOLDER`, or
/// `~/.config/heapmark/FOLDER`.
pub fn users(folder: &str) -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let config = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")))?;
    Some(config.join("heapmark").join(folder))
}

/// Reads a user's file, unless another user could exchange it: the file may name programs to run.
pub fn read(path: &Path) -> io::Result<String> {
    match weakness(path) {
        Some(weakness) => Err(io::Error::other(format!(
            "{weakness}, so it can be exchanged (chmod go-w, chown)"
        ))),
        None => read_kept(path),
    }
}

/// Returns the paths of a folder's entries; none if the folder cannot be read.
pub fn listing(folder: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
}

fn collect(dir: &Dir<'static>, folder: &Path, all: &mut Vec<Text>) {
    let files = dir.files().filter(|file| is_toml(file.path()));
    all.extend(files.filter_map(|file| {
        Some((
            folder.join(file.path()).display().to_string(),
            file.contents_utf8()?.into(),
        ))
    }));
    dir.dirs().for_each(|inner| collect(inner, folder, all));
}

fn is_toml(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "toml")
}
