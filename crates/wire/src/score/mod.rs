//! The score: a trace made ready to be replayed. The host compiles it, the guest maps it and plays it word by word.
//!
//! A score is an array of 64-bit words of this machine: the head, then the streams of the threads in chunks, then the table of
//! threads. A stream's chunk ends with a [`Rare::Jump`] to the next one, so that streams of any number of threads grow side by
//! side in one file that is written once from its start to its end.
//!
//! A word is an op: `{op: 3 bits, slot: 29, size: 32}`. What does not fit there is a [`Rare`] op with further words behind it.

mod head;

pub use head::{Fault, HEAD_WORDS, Head, MAGIC, THREAD_WORDS, Thread};

/// Slots that an op can name.
pub const MOST_SLOTS: u64 = 1 << SLOT_BITS;
/// Stands for "all pages" in [`Rare::Pages`].
pub const ALL_PAGES: u32 = u32::MAX;
/// Blocks of this size have their share of touched pages said; smaller ones are touched at both ends.
pub const PAGES_FROM_BYTES: u64 = 64 << 10;
/// A thread says its place in the recorded order at least so often.
pub const POSITION_EVERY: u64 = 4096;

const SLOT_BITS: u32 = 29;

/// Ops of one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// malloc(size) into the slot.
    Malloc = 0,
    /// free of the slot's block.
    Free = 1,
    /// calloc(1, size) into the slot.
    Calloc = 2,
    /// realloc of the slot's block to size; the slot keeps what comes of it.
    Realloc = 3,
    /// free of the slot's block, whose size is told.
    FreeSized = 4,
    /// Wait until thread `slot` has done `size` ops.
    Wait = 5,
    /// This thread's place in the recorded order, in all bits behind the op.
    Position = 6,
    /// A [`Rare`] op: its number stands in `slot`, an argument in `size`.
    Rare = 7,
}

/// Ops with further words, or without a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rare {
    /// The stream goes on at the next word's index.
    Jump = 0,
    /// The stream is over, and the recorded program ended with this thread alive.
    End = 1,
    /// The stream is over: the thread exits.
    Exit = 2,
    /// Creates thread `argument`.
    Start = 3,
    /// Of the block that comes next `argument` pages are touched.
    Pages = 4,
    /// Wait until so many nanoseconds after the start: the next word.
    Clock = 5,
    /// The recorded program has allocated so much (the next word), of which so much is live (the one after it).
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
    /// As [`Op::FreeSized`] of the slot `argument`; the size follows.
    FreeSized = 13,
}

impl Op {
    /// The op of a word.
    #[inline(always)]
    pub fn of(word: u64) -> Op {
        match word & 7 {
            0 => Op::Malloc,
            1 => Op::Free,
            2 => Op::Calloc,
            3 => Op::Realloc,
            4 => Op::FreeSized,
            5 => Op::Wait,
            6 => Op::Position,
            _ => Op::Rare,
        }
    }

    /// A word of this op.
    pub fn word(self, slot: u32, size: u32) -> u64 {
        self as u64 | u64::from(slot) << 3 | u64::from(size) << 32
    }

    /// A place in the recorded order.
    pub fn position(at: u64) -> u64 {
        Op::Position as u64 | at << 3
    }
}

/// The slot of a word, or whatever stands in its place.
#[inline(always)]
pub fn slot(word: u64) -> usize {
    ((word >> 3) & (MOST_SLOTS - 1)) as usize
}

/// The size of a word, or whatever stands in its place.
#[inline(always)]
pub fn size(word: u64) -> usize {
    (word >> 32) as usize
}

impl Rare {
    const ALL: [Rare; 14] = [
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
    ];

    /// The rare op of a word; `None` where there is none of that number.
    pub fn of(word: u64) -> Option<Rare> {
        Rare::ALL.get(slot(word)).copied()
    }

    /// A word of this op.
    pub fn word(self, argument: u32) -> u64 {
        Op::Rare.word(self as u32, argument)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_back_what_went_into_it() {
        for (op, s, z) in [(Op::Malloc, 0, 0), (Op::Wait, (1 << 29) - 1, u32::MAX), (Op::FreeSized, 7, 9)] {
            let word = op.word(s, z);
            assert_eq!((Op::of(word), slot(word), size(word)), (op, s as usize, z as usize));
        }
        assert_eq!(Op::of(Op::position(1 << 60)), Op::Position);
        for rare in Rare::ALL {
            assert_eq!((Op::of(rare.word(5)), Rare::of(rare.word(5))), (Op::Rare, Some(rare)));
        }
        assert_eq!(Rare::of(Op::Rare.word(14, 0)), None);
    }
}
