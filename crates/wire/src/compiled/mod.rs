//! The compiled trace: a trace prepared for replay. The host compiles it, the guest maps it and
//! plays it word by word.
//!
//! A compiled trace is an array of 64-bit words of this machine: the head, then the streams of the
//! threads in chunks, then the table of threads. A stream's chunk ends with a [`Rare::Jump`] to the
//! next one, so that the streams of any number of threads grow side by side in one file that is
//! written once from start to end.
//!
//! A word is an op: `{op: 4 bits, slot: 29, size: 31}`. An op that does not fit is a [`Rare`] op followed by further
//! words. Objects of C++ operators have ops of their own: they must come from the allocator's own `operator new`, and
//! be freed by its own `delete`. After the table of threads come words for those objects of C++ operators that the
//! program has left: [how](left) each is freed.

mod head;

pub use head::{CompiledFault, CompiledHead, CompiledThread, HEAD_WORDS, MAGIC, THREAD_WORDS};

/// Number of slots that an op can name.
pub const MOST_SLOTS: u64 = 1 << SLOT_BITS;
/// The argument of [`Rare::Pages`] that means "all pages".
pub const ALL_PAGES: u32 = u32::MAX >> 1;
/// Blocks from this size on have their touched pages listed; smaller ones are touched on each page.
pub const PAGES_FROM_BYTES: u64 = 64 << 10;
/// A thread publishes its position in the recorded order at least once per this many events.
pub const POSITION_EVERY: u64 = 4096;

/// The largest size that fits into an op of one word.
pub const MOST_SIZE: u64 = (1 << 31) - 1;

const OP_BITS: u32 = 4;
const SLOT_BITS: u32 = 29;
const SIZE_AT: u32 = OP_BITS + SLOT_BITS;
/// In the word of [`Op::Wait`]: the bits of the thread, below those of the number of ops.
const THREAD_BITS: u32 = 16;

/// Ops of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// malloc(size) into the slot.
    Malloc = 0,
    /// free of the slot's block.
    Free = 1,
    /// calloc(1, size) into the slot.
    Calloc = 2,
    /// realloc of the slot's block to size; the slot keeps the result.
    Realloc = 3,
    /// free of the slot's block, with its size.
    FreeSized = 4,
    /// Waits until another thread has done this many ops: see [`wait`].
    Wait = 5,
    /// This thread's position in the recorded order, in all bits after the op.
    Position = 6,
    /// A [`Rare`] op: its number is in `slot`, an argument in `size`.
    Rare = 7,
    /// operator new(size) into the slot.
    New = 8,
    /// operator delete of the slot's block.
    Delete = 9,
    /// operator delete of the slot's block, with its size.
    DeleteSized = 10,
}

/// Ops with further words, or without a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rare {
    /// The stream continues at the index in the next word.
    Jump = 0,
    /// The stream ends, and the recorded program ended with this thread alive.
    End = 1,
    /// The stream ends: the thread exits.
    Exit = 2,
    /// Creates thread `argument`.
    Start = 3,
    /// Touches `argument` pages of the next block, spread evenly over the number of pages in the next word.
    Pages = 4,
    /// Waits until the number of nanoseconds in the next word has passed since the start.
    Clock = 5,
    /// Three words: bytes that the recorded program has allocated, its live bytes, and those of
    /// blocks without [`Rare::Pages`].
    Point = 6,
    /// free(NULL).
    FreeNull = 7,
    /// malloc_usable_size of the slot `argument`.
    UsableSize = 8,
    /// malloc into the slot `argument`; the size follows.
    Malloc = 9,
    /// calloc into the slot `argument`; count and size follow.
    Calloc = 10,
    /// realloc of the slot `argument`; the size follows.
    Realloc = 11,
    /// An aligned allocation into the slot `argument`; alignment and size follow.
    Aligned = 12,
    /// Like [`Op::FreeSized`] of the slot `argument`; the size follows.
    FreeSized = 13,
    /// operator new into the slot `argument`; the size follows.
    New = 14,
    /// Like [`Op::DeleteSized`] of the slot `argument`; the size follows.
    DeleteSized = 15,
    /// operator new with an alignment into the slot `argument`; alignment and size follow.
    NewAligned = 16,
    /// operator delete of a block of `NewAligned` in the slot `argument`; the alignment follows.
    DeleteAligned = 17,
    /// Like [`Rare::DeleteAligned`], with the block's size; alignment and size follow.
    DeleteAlignedSized = 18,
    /// mallopt, if the allocator has it; parameter and value follow.
    Mallopt = 19,
    /// malloc_trim, if the allocator has it; its argument follows.
    Trim = 20,
}

impl Op {
    /// The op of a word.
    #[inline(always)]
    pub fn of(word: u64) -> Op {
        match word & ((1 << OP_BITS) - 1) {
            0 => Op::Malloc,
            1 => Op::Free,
            2 => Op::Calloc,
            3 => Op::Realloc,
            4 => Op::FreeSized,
            5 => Op::Wait,
            6 => Op::Position,
            8 => Op::New,
            9 => Op::Delete,
            10 => Op::DeleteSized,
            _ => Op::Rare,
        }
    }

    /// A word of this op; the size is at most [`MOST_SIZE`].
    pub fn word(self, slot: u32, size: u64) -> u64 {
        self as u64 | u64::from(slot) << OP_BITS | size << SIZE_AT
    }

    /// A position in the recorded order.
    pub fn position(at: u64) -> u64 {
        Op::Position as u64 | at << OP_BITS
    }

    /// Waits until `thread` has done `ops`, which are below 2^44.
    pub fn wait(thread: u32, ops: u64) -> u64 {
        Op::Wait as u64 | u64::from(thread) << OP_BITS | ops << (OP_BITS + THREAD_BITS)
    }
}

/// Returns the word for a block that the program has left in a slot: it is freed by operator delete, with its alignment
/// if it has one.
pub fn left(slot: u32, alignment: Option<u64>) -> u64 {
    Op::Delete.word(
        slot,
        alignment.map_or(0, |alignment| alignment.ilog2().into()),
    )
}

/// The alignment in a word of [`left`].
pub fn alignment_left(word: u64) -> Option<usize> {
    Some(size(word)).filter(|log| *log > 0).map(|log| 1 << log)
}

/// Returns the thread and the number of ops in a word of [`Op::wait`].
#[inline(always)]
pub fn wait(word: u64) -> (usize, u64) {
    (
        (word >> OP_BITS & ((1 << THREAD_BITS) - 1)) as usize,
        word >> (OP_BITS + THREAD_BITS),
    )
}

/// The position in a word of [`Op::position`].
#[inline(always)]
pub fn position(word: u64) -> u64 {
    word >> OP_BITS
}

/// The slot of a word, or the value in its place.
#[inline(always)]
pub fn slot(word: u64) -> usize {
    ((word >> OP_BITS) & (MOST_SLOTS - 1)) as usize
}

/// The size of a word, or the value in its place.
#[inline(always)]
pub fn size(word: u64) -> usize {
    (word >> SIZE_AT) as usize
}

impl Rare {
    const ALL: [Rare; 21] = [
        Rare::Jump,
        Rare::End,
        Rare::Exit,
        Rare::Start,
        Rare::Pages,
        Rare::Clock,
        Rare::Point,
        Rare::FreeNull,
        Rare::UsableSize,
        Rare::Malloc,
        Rare::Calloc,
        Rare::Realloc,
        Rare::Aligned,
        Rare::FreeSized,
        Rare::New,
        Rare::DeleteSized,
        Rare::NewAligned,
        Rare::DeleteAligned,
        Rare::DeleteAlignedSized,
        Rare::Mallopt,
        Rare::Trim,
    ];

    /// The rare op of a word; `None` if there is none of that number.
    pub fn of(word: u64) -> Option<Rare> {
        Rare::ALL.get(slot(word)).copied()
    }

    /// A word of this op.
    pub fn word(self, argument: u32) -> u64 {
        Op::Rare.word(self as u32, argument.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_back_what_went_into_it() {
        for (op, s, z) in [
            (Op::Malloc, 0, 0),
            (Op::DeleteSized, (1 << 29) - 1, MOST_SIZE),
            (Op::FreeSized, 7, 9),
        ] {
            let word = op.word(s, z);
            assert_eq!(
                (Op::of(word), slot(word), size(word)),
                (op, s as usize, z as usize)
            );
        }
        let (wait, far) = (Op::wait(65_534, (1 << 44) - 1), Op::position(1 << 59));
        assert_eq!(
            (Op::of(wait), super::wait(wait)),
            (Op::Wait, (65_534, (1 << 44) - 1))
        );
        assert_eq!((Op::of(far), position(far)), (Op::Position, 1 << 59));
        let lefts = [(3, None), (5, Some(64)), (6, Some(1 << 47))]
            .map(|(slot, alignment)| left(slot, alignment));
        assert_eq!(lefts.map(alignment_left), [None, Some(64), Some(1 << 47)]);
        assert_eq!(lefts.map(slot), [3, 5, 6]);
        for rare in Rare::ALL {
            let word = rare.word(ALL_PAGES);
            assert_eq!(
                (Op::of(word), Rare::of(word), size(word)),
                (Op::Rare, Some(rare), ALL_PAGES as usize)
            );
        }
        assert_eq!(Rare::of(Op::Rare.word(21, 0)), None);
    }
}
