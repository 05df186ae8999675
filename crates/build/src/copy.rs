//! A byte-identical copy of a library in another file: the A/A copy, whose comparison with the
//! baseline shows the noise of the run.

use super::cache;
use anyhow::Result;
use heapmark_catalog::file::WithPath;
use std::path::{Path, PathBuf};

/// Returns the A/A copy of a library, which is made if it does not exist. The copy keeps the file's
/// name, because purge calls are looked up by that name.
pub fn copy(library: &Path) -> Result<PathBuf> {
    let hash = cache::hash_of_file(library)?;
    let key = cache::short_hash([library.display().to_string().as_str(), &hash]);
    let folder = cache::root()?.join("copies").join(key);
    let copy = folder.join(library.file_name().unwrap_or_default());
    if !copy.is_file() || cache::hash_of_file(&copy)? != hash {
        let bytes = std::fs::read(library).with_path("cannot read", library)?;
        cache::write(&copy, &bytes)?;
    }
    Ok(copy)
}
