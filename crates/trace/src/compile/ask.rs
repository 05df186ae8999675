//! The calls that make objects, as ops.

use crate::Event::{self, *};
use crate::Variant;
use anyhow::{Context, Result};
use heapmark_wire::compiled::{ALL_PAGES, CompiledHead, MOST_SIZE, Op, PAGES_FROM_BYTES, Rare};

/// No process has this many addresses, so no request for that many bytes succeeded.
pub const MOST_BYTES: u64 = 1 << 47;

/// The call that makes an object.
pub struct Ask<'e> {
    event: &'e Event,
    pub bytes: u64,
    /// Whether the call is an `operator new`.
    pub operator: bool,
    /// The alignment, a power of two; 0 if there is none.
    pub align: u64,
}

/// Up to five words of a compiled trace.
#[derive(Default)]
pub struct Words {
    words: [u64; 5],
    count: usize,
}

impl Words {
    pub fn all(&self) -> &[u64] {
        &self.words[..self.count]
    }

    pub fn add(&mut self, words: &[u64]) {
        self.words[self.count..][..words.len()].copy_from_slice(words);
        self.count += words.len();
    }

    /// Adds the op that takes one word if the size fits into it, and otherwise the rare op.
    pub fn add_sized(&mut self, op: Op, rare: Rare, slot: u32, bytes: u64) {
        if bytes <= MOST_SIZE {
            self.add(&[op.word(slot, bytes)]);
        } else {
            self.add(&[rare.word(slot), bytes]);
        }
    }
}

impl Ask<'_> {
    pub fn of(event: &Event) -> Result<Ask<'_>> {
        let operator = matches!(
            event,
            Malloc { operator: true, .. }
                | Aligned {
                    variant: Variant::Operator,
                    ..
                }
        );
        let mut align = 0;
        let bytes = match *event {
            Calloc { count, size } => count
                .checked_mul(size)
                .with_context(|| format!("calloc({count}, {size}) overflows"))?,
            Aligned {
                align: asked, size, ..
            } => {
                // What posix_memalign accepts: powers of two that are at least as large as a
                // pointer.
                align = asked.clamp(8, MOST_BYTES).next_power_of_two();
                size
            }
            // A size of 0 frees the block in some libraries, but the recorded program got a block.
            Realloc { size, .. } => size.max(1),
            _ => event.begins().unwrap_or(0),
        };
        Ok(Ask {
            event,
            // At least 1 for operators, as in the C++ library if the allocator has no operators of
            // its own.
            bytes: bytes.max(operator.into()),
            operator,
            align,
        })
    }

    /// Returns the words of the call that fills a slot. For a large block, these begin with two
    /// words that state which of its pages are touched.
    pub fn words(&self, slot: u32) -> Words {
        let mut words = Words::default();
        if self.has_pages() {
            words.add(&[Rare::Pages.word(ALL_PAGES), 0]);
        }
        let bytes = self.bytes;
        let align = self.align;
        match *self.event {
            Calloc { count: 1, .. } if bytes <= MOST_SIZE => {
                words.add(&[Op::Calloc.word(slot, bytes)]);
            }
            Calloc { count, size } => words.add(&[Rare::Calloc.word(slot), count, size]),
            Realloc { .. } => words.add_sized(Op::Realloc, Rare::Realloc, slot, bytes),
            Aligned { .. } if self.operator => {
                words.add(&[Rare::NewAligned.word(slot), align, bytes]);
            }
            Aligned { .. } => words.add(&[Rare::Aligned.word(slot), align, bytes]),
            _ if self.operator => words.add_sized(Op::New, Rare::New, slot, bytes),
            _ => words.add_sized(Op::Malloc, Rare::Malloc, slot, bytes),
        }
        words
    }

    /// Counts one more call of this kind.
    pub fn count(&self, head: &mut CompiledHead) {
        *match self.event {
            Calloc { .. } => &mut head.calloc,
            Realloc { .. } => &mut head.realloc,
            Aligned { .. } => &mut head.aligned,
            _ => &mut head.malloc,
        } += 1;
    }

    /// Returns whether the block is large enough that its touched pages are recorded.
    pub fn has_pages(&self) -> bool {
        self.bytes >= PAGES_FROM_BYTES
    }
}
