//! Unpacks traces that the binary carries into the cache, in a folder named by their content.

use super::cache::{self, hash_of_file, hex};
use anyhow::Result;
use heapmark_catalog::trace_pack;
use sha2::{Digest, Sha256};
use std::path::PathBuf;

/// Returns the file of the trace of this name; `None` if the pack has none.
pub fn trace_of_pack(name: &str) -> Result<Option<PathBuf>> {
    let Some(bytes) = trace_pack::trace(name) else {
        return Ok(None);
    };
    let hash = hex(&Sha256::digest(bytes));
    let file = format!("{}/{name}.trace", &hash[..12]);
    let path = cache::root()?.join("traces").join(file);
    // A file that was changed is replaced.
    if !hash_of_file(&path).is_ok_and(|found| found == hash) {
        cache::write(&path, bytes)?;
    }
    Ok(Some(path))
}
