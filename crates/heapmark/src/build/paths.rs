//! The paths and names that words stand for.

use crate::catalog::allocators::is_name;
use crate::file::WithPath;
use anyhow::{Context, Result};
use std::env;
use std::path::{Path, PathBuf};

/// An absolute path; `~/` is the home folder.
pub fn absolute(path: &Path) -> Result<PathBuf> {
    if let Ok(rest) = path.strip_prefix("~") {
        let home = env::var_os("HOME").context("HOME is not set; write the path in full")?;
        return Ok(PathBuf::from(home).join(rest));
    }
    std::path::absolute(path).with_path("finding", path)
}

/// The file of a command in `PATH`.
pub fn in_path(name: &str) -> Option<PathBuf> {
    if name.starts_with('/') {
        return Some(name.into());
    }
    let path = env::var_os("PATH")?;
    env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| super::command::is_executable(file))
}

/// `libfoo-2.so.1` -> `foo-2`.
pub fn name_of(path: &str) -> String {
    let file = Path::new(path)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let stem = file.split(".so").next().unwrap_or_default();
    valid_name(stem.strip_prefix("lib").unwrap_or(stem))
}

/// What a text has of letters that names may have, others as `-`.
pub fn valid_name(text: &str) -> String {
    let is_invalid = |c: char| !is_name(c.encode_utf8(&mut [0; 4]));
    text.to_ascii_lowercase()
        .replace(is_invalid, "-")
        .trim_matches('-')
        .to_string()
}
