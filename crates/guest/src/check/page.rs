//! A page of the address space in granules of 8 bytes: one bit means "taken", one "a block starts
//! here".

use crate::threads::wait_until;
use core::cell::UnsafeCell;
use core::sync::atomic::{
    AtomicBool, AtomicUsize,
    Ordering::{AcqRel, Acquire, Release},
};

/// Granules in a page.
pub(super) const GRANULES: usize = 512;

/// An entry of the shadow's table. An entry of zeros is unused.
#[repr(C)]
pub(super) struct PageEntry {
    number: AtomicUsize,
    locked: AtomicBool,
    page: UnsafeCell<PageGranules>,
}

// SAFETY: the page is accessed only under its lock.
unsafe impl Sync for PageEntry {}

/// Which page owns an entry, seen from the page that looks it up.
pub(super) enum EntryOwner {
    /// The entry already belonged to this page.
    Own,
    /// The entry was free and now belongs to this page.
    Fresh,
    /// The entry belongs to another page.
    Other,
}

impl PageEntry {
    /// Looks up the entry's owner; a free entry is given to this page.
    pub fn claim(&self, number: usize) -> EntryOwner {
        let mut found = self.number.load(Acquire);
        if found == 0 {
            match self.number.compare_exchange(0, number, AcqRel, Acquire) {
                Ok(_) => return EntryOwner::Fresh,
                Err(other) => found = other,
            }
        }
        if found == number {
            EntryOwner::Own
        } else {
            EntryOwner::Other
        }
    }

    /// The page's number; 0 if the entry is free.
    pub fn number(&self) -> usize {
        self.number.load(Acquire)
    }

    /// Locks the page and passes it to `act`.
    pub fn with<T>(&self, act: impl FnOnce(&mut PageGranules) -> T) -> T {
        // With more threads than CPUs, the thread that holds the lock may be waiting for a CPU.
        wait_until(|| !self.locked.swap(true, Acquire));
        // SAFETY: the lock makes this the only reference.
        let done = act(unsafe { &mut *self.page.get() });
        self.locked.store(false, Release);
        done
    }
}

/// The granules of one page. If all bits are zero, the page has no blocks.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct PageGranules {
    pub taken: Granules,
    start: Granules,
    /// For a block that starts here: by how many bytes its granules exceed the requested size, in
    /// three bits.
    slack: [Granules; 3],
}

/// A bit for each granule of a page.
type Granules = [u64; GRANULES / 64];

impl PageGranules {
    pub fn is_empty(&self) -> bool {
        self.taken.iter().all(|word| *word == 0)
    }

    /// Rewrites the last word unchanged: an entry may end in a later page of the table than it
    /// begins in, and nothing else might write to that page.
    pub fn write_last(&mut self) {
        let last = &raw mut self.slack[2][GRANULES / 64 - 1];
        // SAFETY: a word of ours.
        unsafe { last.write_volatile(last.read_volatile()) };
    }

    /// Marks the start of a block whose granules hold `slack` bytes more than requested.
    pub fn begin(&mut self, granule: usize, slack: usize) {
        let (word, bit) = (granule % GRANULES / 64, granule % 64);
        self.start[word] |= 1 << bit;
        for (place, bits) in self.slack.iter_mut().enumerate() {
            bits[word] = bits[word] & !(1 << bit) | (slack as u64 >> place & 1) << bit;
        }
    }

    /// Removes the block that starts here; returns its slack. `None` if no block starts here.
    pub fn end(&mut self, granule: usize) -> Option<usize> {
        let (word, bit) = (granule % GRANULES / 64, granule % 64);
        if self.start[word] & 1 << bit == 0 {
            return None;
        }
        self.start[word] &= !(1 << bit);
        Some(
            (0..3)
                .map(|place| (self.slack[place][word] >> bit & 1) as usize * (1 << place))
                .sum(),
        )
    }

    /// Clears all granules from this one to the end of the block or of the page; returns how many.
    /// The block extends as long as granules are taken and no other block starts.
    pub fn clear(&mut self, mut granule: usize) -> usize {
        let first = granule;
        for word in granule % GRANULES / 64..GRANULES / 64 {
            let bit = granule % 64;
            let run = ((self.taken[word] & !self.start[word]) >> bit).trailing_ones() as usize;
            if run == 0 {
                break;
            }
            self.taken[word] &= !(u64::MAX >> (64 - run) << bit);
            granule += run;
            if bit + run < 64 {
                break;
            }
        }
        granule - first
    }
}

/// The bits of `granule..end` in the granule's own word, and the first granule after that word.
pub(super) fn span(granule: usize, end: usize) -> (u64, usize) {
    let next = (granule / 64 + 1) * 64;
    let low = u64::MAX << (granule % 64);
    if end >= next {
        (low, next)
    } else {
        (low & !(u64::MAX << (end % 64)), end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_end_at_words() {
        assert_eq!(span(0, 3), (0b111, 3));
        assert_eq!(span(62, 130), (0b11 << 62, 64));
        assert_eq!(span(64, 130), (u64::MAX, 128));
        assert_eq!(span(128, 130), (0b11, 130));
        assert_eq!(span(0, 64), (u64::MAX, 64));
    }
}
