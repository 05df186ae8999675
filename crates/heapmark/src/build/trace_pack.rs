//! Unpacks traces that the binary carries into the cache, in a folder named by their content.

use super::cache::{self, hash_of_file, hex};
use crate::catalog::trace_pack;
use crate::file::{self, PUBLIC, WithPath};
use anyhow::Result;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// The file of the trace of this name; `None` if the pack has none.
pub fn trace_of_pack(name: &str) -> Result<Option<PathBuf>> {
    let Some(bytes) = trace_pack::trace(name) else {
        return Ok(None);
    };
    let hash = hex(&Sha256::digest(bytes));
    let folder = cache::root()?.join("traces").join(&hash[..12]);
    let path = folder.join(format!("{name}.trace"));
    // A file that was changed is replaced.
    if !hash_of_file(&path).is_ok_and(|found| found == hash) {
        cache::make(&folder).with_path("cannot write", &folder)?;
        file::replace(&path, bytes, PUBLIC).with_path("cannot write", &path)?;
    }
    Ok(Some(path))
}
