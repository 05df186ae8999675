//! How an object is asked for, as ops.

use heapmark_wire::score::{ALL_PAGES, Head, Op, PAGES_FROM_BYTES, Rare};

/// The call that makes an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Ask {
    Malloc,
    Calloc { count: u64, size: u64 },
    Realloc,
    Aligned { align: u64 },
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
    /// For so many bytes in a slot. Those of large blocks begin with the word that says how much of them is touched.
    pub(super) fn words(self, slot: u32, bytes: u64) -> Words {
        let mut words = Words { words: [0; 4], count: 0 };
        if has_pages(bytes) {
            words.add([Rare::Pages.word(ALL_PAGES)]);
        }
        match (self, u32::try_from(bytes)) {
            (Ask::Malloc, Ok(size)) => words.add([Op::Malloc.word(slot, size)]),
            (Ask::Malloc, Err(_)) => words.add([Rare::Malloc.word(slot), bytes]),
            (Ask::Calloc { count: 1, .. }, Ok(size)) => words.add([Op::Calloc.word(slot, size)]),
            (Ask::Calloc { count, size }, _) => words.add([Rare::Calloc.word(slot), count, size]),
            (Ask::Realloc, Ok(size)) => words.add([Op::Realloc.word(slot, size)]),
            (Ask::Realloc, Err(_)) => words.add([Rare::Realloc.word(slot), bytes]),
            (Ask::Aligned { align }, _) => words.add([Rare::Aligned.word(slot), align, bytes]),
        }
        words
    }

    /// One more such call.
    pub(super) fn count(self, head: &mut Head) {
        *match self {
            Ask::Malloc => &mut head.malloc,
            Ask::Calloc { .. } => &mut head.calloc,
            Ask::Realloc => &mut head.realloc,
            Ask::Aligned { .. } => &mut head.aligned,
        } += 1;
    }
}

/// Whether it is said of a block of this size how many of its pages are touched.
pub(super) fn has_pages(bytes: u64) -> bool {
    bytes >= PAGES_FROM_BYTES
}
