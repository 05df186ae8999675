//! The files of a run directory.

use crate::file::{self, WithPath, mode_of};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The head of a run directory.
pub const HEAD: &str = "run.json";

/// The file that holds a run's records.
pub(super) const SAMPLES: &str = "samples.jsonl";

/// Returns the path of a run directory's head. All files derived from a run are as private as it.
pub fn head_of(dir: &Path) -> PathBuf {
    dir.join(HEAD)
}

/// Returns the path of the file that holds a run's records.
pub fn samples_of(dir: &Path) -> PathBuf {
    dir.join(SAMPLES)
}

/// Writes a file of a run directory: complete or absent, on the disk, and as private as the head.
pub fn keep(dir: &Path, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
    let file = dir.join(name);
    file::replace(&file, content.as_ref(), mode_of([head_of(dir)])).with_path("cannot write", &file)
}
