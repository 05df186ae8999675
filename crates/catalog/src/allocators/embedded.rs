//! Our own entries and source files, which are embedded in the binary.

use include_dir::{Dir, include_dir};

/// The embedded folder `allocators`.
pub static OURS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../allocators");

/// Returns our own entry with this name.
pub fn ours(name: &str) -> Option<crate::allocator::Allocator> {
    let file = format!("{name}.toml");
    crate::faults::parse(&file, OURS.get_file(&file)?.contents_utf8()?).ok()
}

/// Returns the text of one of our small source files, `allocators/extra/<name>`.
pub fn extra(name: &str) -> Option<&'static str> {
    OURS.get_file(format!("extra/{name}"))?.contents_utf8()
}
