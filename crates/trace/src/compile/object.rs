//! What the compiler knows of a live object: its slot, and what must have happened before it is
//! used.

/// A live object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    pub(super) slot: u32,
    /// The requested size.
    pub(super) bytes: u64,
    /// How many ops of its owner must be done before it can be used: up to the one that made it.
    pub(super) born: u64,
    /// Another thread that used it last, and how many ops that thread must have done.
    pub(super) user: Option<(u32, u64)>,
    /// Where the stream of its owner holds the number of its touched pages.
    pub(super) pages_at: Option<u64>,
    /// What made it, and so what must free it.
    pub(super) maker: Maker,
}

/// What made an object, as far as the call that frees it depends on that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Maker {
    /// `malloc`, `calloc`, `realloc`.
    C,
    /// A C function with an alignment.
    Aligned,
    /// `operator new`.
    New,
    /// The same with an alignment of two to the power of this.
    NewAligned(u8),
}
