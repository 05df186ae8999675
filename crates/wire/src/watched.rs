//! The part of the shared page that a host reads while the guest runs: the workload's live bytes,
//! and the ranges of the address space that are not the allocator's. Plain stores on one side,
//! plain loads on the other.

use crate::high_water::HighWater;
use crate::{Ranges, ReplayProgress, STEPS};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Number of threads that can publish their requested and released bytes.
pub const LEDGERS: usize = 1024;

/// The state of a running guest that its host reads. If all bytes are zero, nothing is published, and no range is
/// known.
#[repr(C)]
pub struct Watched {
    /// How often the host has sampled.
    looks: AtomicU32,
    /// Ledgers in use; 0 if the kernel publishes nothing.
    ledgers_used: AtomicU32,
    ledgers: [Ledger; LEDGERS],
    ranges: Ranges,
    held: Held,
    /// The number of threads in a replay whose steps are stored here.
    steps_used: AtomicU32,
    steps: [ReplayProgress; STEPS],
}

/// The bytes in a guest's blocks, if it accounts each of them, and in its own tables.
#[repr(C)]
#[derive(Default)]
pub struct Held {
    live: AtomicU64,
    occupied: AtomicU64,
    harness: HighWater,
}

impl Held {
    /// Sets the requested bytes of live blocks, and the bytes of the pages that hold any live byte. Must be called
    /// under the lock that guards the blocks.
    pub fn set(&self, live_bytes: u64, occupied_bytes: u64) {
        self.live.store(live_bytes, Ordering::Release);
        self.occupied.store(occupied_bytes, Ordering::Release);
    }

    /// Requested bytes of live blocks.
    pub fn live_bytes(&self) -> u64 {
        self.live.load(Ordering::Acquire)
    }

    /// Bytes of the pages that hold any live byte.
    pub fn occupied_bytes(&self) -> u64 {
        self.occupied.load(Ordering::Acquire)
    }

    /// Called when the harness's tables take this many more resident bytes, or fewer if it is negative.
    pub fn harness_grows(&self, bytes: i64) {
        self.harness.grow(bytes);
    }

    /// Resident bytes of the harness's tables.
    pub fn harness_bytes(&self) -> u64 {
        self.harness.now()
    }

    /// The highest number of resident bytes of the harness's tables so far.
    pub fn most_harness_bytes(&self) -> u64 {
        self.harness.most()
    }
}

/// Bytes that one thread has requested and released so far. Only this thread writes them, on cache
/// lines of its own.
#[repr(C, align(128))]
pub struct Ledger {
    requested: AtomicU64,
    released: AtomicU64,
}

impl Ledger {
    /// Counts requested bytes; called after the allocation.
    #[inline(always)]
    pub fn request(&self, bytes: u64) {
        self.requested.store(
            self.requested.load(Ordering::Relaxed) + bytes,
            Ordering::Release,
        );
    }

    /// Counts released bytes; called before the release, so that the published bytes are never more than the live bytes.
    #[inline(always)]
    pub fn release(&self, bytes: u64) {
        self.released.store(
            self.released.load(Ordering::Relaxed) + bytes,
            Ordering::Release,
        );
    }
}

impl Watched {
    /// The bytes in blocks and tables.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Ranges that are not the allocator's.
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// Lets a replay of this many threads write its steps here from now on; `None` if there are fewer places.
    pub fn open_steps(&self, threads: usize) -> Option<&[ReplayProgress]> {
        let steps = self.steps.get(..threads)?;
        self.steps_used.store(threads as u32, Ordering::Release);
        Some(steps)
    }

    /// The steps of a replay; empty if there is none.
    pub fn steps(&self) -> &[ReplayProgress] {
        self.steps
            .get(..self.steps_used.load(Ordering::Acquire) as usize)
            .unwrap_or_default()
    }

    /// Puts the guest's first `threads` ledgers into use; `None` if there are fewer. Touches each, so that no page
    /// fault is left for the measured phase.
    pub fn open_ledgers(&self, threads: usize) -> Option<&[Ledger]> {
        let ledgers = self.ledgers.get(..threads)?;
        ledgers.iter().for_each(|ledger| ledger.request(0));
        self.ledgers_used.store(threads as u32, Ordering::Release);
        Some(ledgers)
    }

    /// Requested bytes of live blocks; `None` if the kernel publishes none. While threads continue,
    /// the value errs downwards: requested bytes are read before released ones.
    pub fn live_bytes(&self) -> Option<u64> {
        let used = self.ledgers_used.load(Ordering::Acquire) as usize;
        let ledgers = self
            .ledgers
            .get(..used)
            .filter(|ledgers| !ledgers.is_empty())?;
        let requested: u64 = ledgers
            .iter()
            .map(|ledger| ledger.requested.load(Ordering::Acquire))
            .sum();
        let released: u64 = ledgers
            .iter()
            .map(|ledger| ledger.released.load(Ordering::Acquire))
            .sum();
        Some(requested.saturating_sub(released))
    }

    /// Counts a sample of the host.
    pub(crate) fn count_look(&self) {
        self.looks.fetch_add(1, Ordering::AcqRel);
    }

    /// How often the host has sampled.
    pub fn looks(&self) -> u32 {
        self.looks.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::boxed::Box;

    fn watched() -> Box<Watched> {
        // SAFETY: zeroed memory is a valid value.
        unsafe { Box::<Watched>::new_zeroed().assume_init() }
    }

    #[test]
    fn live_bytes_are_what_was_requested_less_what_was_released_by_anybody() {
        let watched = watched();
        assert_eq!(watched.live_bytes(), None);
        let ledgers = watched.open_ledgers(2).unwrap();
        assert_eq!(watched.live_bytes(), Some(0));
        ledgers[0].request(100);
        ledgers[0].request(50);
        ledgers[1].release(100);
        assert_eq!(watched.live_bytes(), Some(50));
        ledgers[1].release(51);
        assert_eq!(watched.live_bytes(), Some(0));
        assert!(watched.open_ledgers(LEDGERS + 1).is_none());
    }
}
