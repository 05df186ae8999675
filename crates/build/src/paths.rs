//! Paths and names that the user's words stand for.

use anyhow::{Context, Result};
use heapmark_catalog::allocators::is_name;
use heapmark_catalog::file::{WithPath, weaknesses};
use rustix::process::geteuid;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Makes a path absolute; `~/` stands for the home folder.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    if let Ok(rest) = path.strip_prefix("~") {
        let home = env::var_os("HOME").context("HOME is not set; write the path in full")?;
        return Ok(PathBuf::from(home).join(rest));
    }
    std::path::absolute(path).with_path("finding", path)
}

/// Returns the file of a command, if a folder of `PATH` has it.
pub fn in_path(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') {
        return Some(name.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| super::command::is_executable(file))
}

/// Returns `PATH` with those folders moved to its end in which another user can exchange programs, and what is wrong with these folders.
/// Such a folder then replaces no program that is elsewhere, but still serves for programs that are nowhere else (cargo's, in some images).
/// An ordinary user's `PATH` may name folders that a group or another user keeps for everyone, as clusters do; root's may not.
pub fn trusted_path() -> (OsString, Vec<String>) {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut why = Vec::new();
    let is_trusted = |folder: &PathBuf| {
        // A name that no file has stands for new files, which anyone may make even in a sticky folder.
        let mut weaknesses = weaknesses(&folder.join("\0"));
        let weakness =
            weaknesses.find(|weakness| geteuid().is_root() || weakness.is_for_everyone());
        why.extend(
            (weakness.iter()).map(|weakness| format!("{}, and {weakness}", folder.display())),
        );
        weakness.is_none()
    };
    let (first, last): (Vec<PathBuf>, Vec<PathBuf>) = env::split_paths(&path).partition(is_trusted);
    let path = env::join_paths(first.into_iter().chain(last));
    (path.unwrap_or_default(), why)
}

/// Returns the name of an allocator that is given by its path: `libfoo-2.so.1` -> `foo-2`.
pub fn name_of(path: &str) -> String {
    let file = Path::new(path)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let stem = file.split(".so").next().unwrap_or_default();
    valid_name(stem.strip_prefix("lib").unwrap_or(stem))
}

/// Returns a text in which every character that names may not have is replaced by `-`.
pub fn valid_name(text: &str) -> String {
    let is_invalid = |c: char| !is_name(c.encode_utf8(&mut [0; 4]));
    text.to_ascii_lowercase()
        .replace(is_invalid, "-")
        .trim_matches('-')
        .to_string()
}
