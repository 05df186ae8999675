//! What is known of a live object while a trace goes through: where it lies, and what must have happened before it is used.

/// A live object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) slot: u32,
    /// The requested size.
    pub(super) bytes: u64,
    /// The last of its owner's ops that it needs, plus one: the one that made it.
    pub(super) born: u64,
    /// Somebody else who used it last, and after how many ops of theirs.
    pub(super) user: Option<(u32, u64)>,
    /// Where the stream of its owner says how many of its pages are touched.
    pub(super) pages_at: Option<u64>,
    /// It has an alignment of its own.
    pub(super) is_aligned: bool,
}
