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
    /// What made it, and so what must end it.
    pub(super) maker: Maker,
}

/// Who made an object, as far as its end depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// `malloc`, `calloc`, `realloc`.
    C,
    /// A function of C with an alignment.
    Aligned,
    /// `operator new`.
    New,
    /// The same with an alignment, which is two to the power of this.
    NewAligned(u8),
}
