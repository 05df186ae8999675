//! The calls that make objects, as ops.

use super::object::Maker;
use heapmark_wire::compiled::{ALL_PAGES, CompiledHead, MOST_SIZE, Op, PAGES_FROM_BYTES, Rare};

/// The call that makes an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Malloc,
    Calloc { count: u64, size: u64 },
    Realloc,
    Aligned { align: u64 },
    New,
    NewAligned { align: u64 },
}

/// Some words, at most four.
pub(super) struct Words {
    words: [u64; 4],
    count: usize,
}

impl Words {
    pub(super) fn all(&self) -> &[u64] {
        &self.words[..self.count]
    }

    fn add<const N: usize>(&mut self, words: [u64; N]) {
        self.words[self.count..self.count + N].copy_from_slice(&words);
        self.count += N;
    }
}

impl Ask {
    /// The words of a call for this many bytes in a slot. Those of large blocks begin with the word
    /// that holds how many of their pages are touched.
    pub(super) fn words(self, slot: u32, bytes: u64) -> Words {
        let mut words = Words {
            words: [0; 4],
            count: 0,
        };
        if has_pages(bytes) {
            words.add([Rare::Pages.word(ALL_PAGES)]);
        }
        match (self, bytes <= MOST_SIZE) {
            (Ask::Malloc, true) => words.add([Op::Malloc.word(slot, bytes)]),
            (Ask::Malloc, false) => words.add([Rare::Malloc.word(slot), bytes]),
            (Ask::Calloc { count: 1, .. }, true) => words.add([Op::Calloc.word(slot, bytes)]),
            (Ask::Calloc { count, size }, _) => words.add([Rare::Calloc.word(slot), count, size]),
            (Ask::Realloc, true) => words.add([Op::Realloc.word(slot, bytes)]),
            (Ask::Realloc, false) => words.add([Rare::Realloc.word(slot), bytes]),
            (Ask::Aligned { align }, _) => words.add([Rare::Aligned.word(slot), align, bytes]),
            (Ask::New, true) => words.add([Op::New.word(slot, bytes)]),
            (Ask::New, false) => words.add([Rare::New.word(slot), bytes]),
            (Ask::NewAligned { align }, _) => {
                words.add([Rare::NewAligned.word(slot), align, bytes])
            }
        }
        words
    }

    /// The requested alignment; 0 if there is none.
    pub(super) fn alignment(self) -> u64 {
        match self {
            Ask::Aligned { align } | Ask::NewAligned { align } => align,
            Ask::Malloc | Ask::Calloc { .. } | Ask::Realloc | Ask::New => 0,
        }
    }

    /// What made the object; the op that ends it depends on that.
    pub(super) fn maker(self) -> Maker {
        match self {
            Ask::Malloc | Ask::Calloc { .. } | Ask::Realloc => Maker::C,
            Ask::Aligned { .. } => Maker::Aligned,
            Ask::New => Maker::New,
            Ask::NewAligned { align } => Maker::NewAligned(align.ilog2() as u8),
        }
    }

    /// Counts one more call of this kind.
    pub(super) fn count(self, head: &mut CompiledHead) {
        *match self {
            Ask::Malloc | Ask::New => &mut head.malloc,
            Ask::Calloc { .. } => &mut head.calloc,
            Ask::Realloc => &mut head.realloc,
            Ask::Aligned { .. } | Ask::NewAligned { .. } => &mut head.aligned,
        } += 1;
    }
}

/// Whether a block of this size is large enough that its touched pages are recorded.
pub(super) fn has_pages(bytes: u64) -> bool {
    bytes >= PAGES_FROM_BYTES
}
