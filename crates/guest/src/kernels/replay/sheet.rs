//! The compiled trace in memory: mapped, and read once from front to back by each thread. A small
//! trace is read in before the clock starts. Of a large trace, only the part that is being read
//! stays in memory, so that the length of a trace costs no memory.

use super::*;
use crate::memory;
use crate::published;
use core::ffi::CStr;
use heapmark_wire::RangeKind;
use heapmark_wire::compiled::{CompiledFault, CompiledHead};

/// A compiled trace of up to this size is in memory before the clock starts.
const WHOLE_BYTES: usize = 64 << 20;
/// Bytes of a file that one page fault may bring in.
const FAULT_AROUND: usize = 64 << 10;

/// A mapped compiled trace.
pub struct Sheet {
    /// The trace's head.
    pub head: CompiledHead,
    /// All words of the trace.
    pub words: &'static [u64],
    large: bool,
}

impl Sheet {
    /// Maps the compiled trace at this path, permanently.
    pub fn open(path: &CStr) -> Sheet {
        let Some(bytes) = memory::map_file(path) else {
            fail!(
                "error",
                "cannot map the compiled trace {}",
                path.to_str().unwrap_or("?")
            );
        };
        let large = bytes.len() > WHOLE_BYTES;
        let advice = if large {
            libc::MADV_SEQUENTIAL
        } else {
            libc::MADV_POPULATE_READ
        };
        // SAFETY: advice about a mapping of ours. If the kernel does not support it, pages come in
        // as they are read.
        unsafe { libc::madvise(bytes.as_ptr().cast_mut().cast(), bytes.len(), advice) };
        published::know(bytes.as_ptr().addr(), bytes.len(), RangeKind::Shared);
        published::harness_grows(resident_bytes(bytes.len()));
        // SAFETY: the mapping is aligned to pages and never unmapped, and every number is a valid
        // word.
        let words = unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / 8) };
        let what = match CompiledHead::decode(words) {
            Ok(head) => return Sheet { head, words, large },
            Err(CompiledFault::Length) => "is not as long as it says",
            Err(CompiledFault::Magic) => "is none, or one of another heapmark",
            Err(CompiledFault::Numbers) => "has numbers that do not fit each other",
        };
        fail!(
            "error",
            "the compiled trace {what}: {}",
            path.to_str().unwrap_or("?")
        );
    }

    /// Returns the trace's bytes that count as the harness's memory.
    pub fn resident_bytes(&self) -> i64 {
        resident_bytes(size_of_val(self.words))
    }

    /// Drops the pages of words in a large trace that a thread has left and will not return to in
    /// this round.
    pub fn leave(&self, words: core::ops::Range<usize>) {
        if self.large
            && let Some(left) = self.words.get(words)
        {
            let first = self.words.as_ptr().addr();
            let start = before(left.as_ptr().addr(), first, sys::page_bytes());
            let bytes = left.as_ptr_range().end.addr() - start;
            // SAFETY: advice about pages of a shared file mapping that is never written: a thread
            // that still needs one gets it again.
            unsafe { libc::madvise(start as *mut _, bytes, libc::MADV_DONTNEED) };
        }
    }
}

/// Returns the resident bytes of a compiled trace. Almost nothing of a large trace is in memory at
/// any time.
fn resident_bytes(bytes: usize) -> i64 {
    if bytes > WHOLE_BYTES {
        0
    } else {
        bytes.next_multiple_of(sys::page_bytes()) as i64
    }
}

/// Returns where to begin the advice about words that start at this address: at a page boundary,
/// since the kernel accepts no other address, and far enough before the words, since a page fault
/// may have brought back pages there.
fn before(address: usize, first: usize, page: usize) -> usize {
    (address & !(page - 1))
        .saturating_sub(FAULT_AROUND)
        .max(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_begins_at_borders_of_pages_however_large_they_are() {
        for page in [4 << 10, 16 << 10, 64 << 10] {
            let first = 0x7f00_0000_0000;
            for address in (first..first + (1 << 20)).step_by(4096 + 8) {
                let start = before(address, first, page);
                assert!(
                    start.is_multiple_of(page) && (first..=address).contains(&start),
                    "{page}: {address:#x}"
                );
                assert!(
                    start == first || address - start >= FAULT_AROUND,
                    "{page}: {address:#x}"
                );
            }
        }
    }
}
