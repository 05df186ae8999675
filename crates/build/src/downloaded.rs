//! Files of downloaded packages and of built programs, kept in the cache with their checksums.

use super::Library;
use super::cache::{CachePlace, hash_of_file};
use super::state::State;
use super::step::{Slots, Steps};
use anyhow::{Result, bail};
use heapmark_catalog::file::WithPath;
use std::fs;
use std::path::{Path, PathBuf};

/// The file with the other files' checksums, in the format of `sha256sum -c`.
const CHECKSUMS: &str = "SHA256SUMS";

/// Returns the folder of these files, if the cache still has them unchanged.
pub fn unchanged(place: &CachePlace, files: &[impl AsRef<str>]) -> Option<PathBuf> {
    let folder = place.folder();
    let wanted = fs::read_to_string(folder.join(CHECKSUMS)).ok()?;
    let found = checksums(&folder, files).ok()?;
    (wanted == found).then_some(folder)
}

/// Returns whether a folder of the cache still has all files that were kept in it unchanged.
pub fn is_unchanged(folder: &Path) -> bool {
    let Ok(wanted) = fs::read_to_string(folder.join(CHECKSUMS)) else {
        return false;
    };
    let lines = wanted.lines().filter_map(|line| line.split_once("  "));
    let files: Vec<&str> = lines.map(|(_, file)| file).collect();
    checksums(folder, &files).is_ok_and(|found| found == wanted)
}

/// Keeps the folder that contains these files in the cache, and adds their checksums.
pub fn keep(place: &CachePlace, finished: &Path, files: &[impl AsRef<str>]) -> Result<()> {
    let sums = finished.join(CHECKSUMS);
    fs::write(&sums, checksums(finished, files)?).with_path("writing", &sums)?;
    place.keep_folder(finished)
}

/// Returns the library that `cached` finds, or else, if the state allows it, the library that `take_out` downloads into a workshop and
/// keeps; also returns whether the library came from the cache.
pub fn fetched(
    place: &CachePlace,
    state: State,
    slots: &Slots,
    cached: impl Fn() -> Option<Library>,
    take_out: impl FnOnce(&Path, &Steps) -> Result<Library>,
) -> Result<(Library, bool)> {
    match state {
        State::Absent { why, line } => bail!("{why}; {line}"),
        State::Refused { why } => bail!(why),
        _ => {}
    }
    place.build(
        || Ok(cached()),
        || {},
        |workshop| take_out(workshop, &Steps::new(&place.log(), slots)?),
    )
}

/// Returns the first file in a folder, or in folders below it, whose name `fits` accepts.
pub fn file_in(folder: &Path, fits: &dyn Fn(&str) -> bool) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect();
    entries.sort();
    entries.into_iter().find_map(|path| {
        if path.is_dir() {
            return file_in(&path, fits);
        }
        fits(path.file_name()?.to_str()?).then_some(path)
    })
}

fn checksums(folder: &Path, files: &[impl AsRef<str>]) -> Result<String> {
    let line = |file: &str| Ok(format!("{}  {file}\n", hash_of_file(&folder.join(file))?));
    files.iter().map(|file| line(file.as_ref())).collect()
}
