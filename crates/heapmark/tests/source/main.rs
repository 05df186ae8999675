//! The sources themselves: the order of the host's modules, files that import each other, and the links and words of comments and documents.

mod circles;
mod ladder;
mod links;
mod words;

use std::path::{Path, PathBuf};

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
