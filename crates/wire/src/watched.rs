//! The part of the shared page that a host looks at while the guest runs: how many bytes the workload holds, and which
//! ranges of the address space are not the allocator's. Plain stores on one side, plain loads on the other.

use crate::{Ranges, STEPS, Step};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Threads that can publish what they requested and released.
pub const LEDGERS: usize = 1024;

/// What a host sees of a running guest. Zeroed memory is a valid one: nothing published, no range known.
#[repr(C)]
pub struct Watched {
    /// Times the host has looked.
    looks: AtomicU32,
    /// Ledgers in use; 0 where the kernel publishes nothing.
    ledgers_used: AtomicU32,
    ledgers: [Ledger; LEDGERS],
    ranges: Ranges,
    held: Held,
    /// Threads of a replay whose steps stand here.
    steps_used: AtomicU32,
    steps: [Step; STEPS],
}

/// What a guest's blocks hold, where it follows each of them, and what its own tables hold.
#[repr(C)]
#[derive(Default)]
pub struct Held {
    live: AtomicU64,
    occupied: AtomicU64,
    harness: AtomicU64,
}

impl Held {
    /// Requested bytes of live blocks, and bytes of the pages that hold any of them. Under the lock that guards the blocks.
    pub fn set(&self, live_bytes: u64, occupied_bytes: u64) {
        self.live.store(live_bytes, Ordering::Release);
        self.occupied.store(occupied_bytes, Ordering::Release);
    }

    /// Requested bytes of live blocks.
    pub fn live_bytes(&self) -> u64 {
        self.live.load(Ordering::Acquire)
    }

    /// Bytes of the pages that hold any of them.
    pub fn occupied_bytes(&self) -> u64 {
        self.occupied.load(Ordering::Acquire)
    }

    /// The harness's tables take so many resident bytes more, or less where it is negative.
    pub fn harness_grows(&self, bytes: i64) {
        self.harness.fetch_add(bytes as u64, Ordering::AcqRel);
    }

    /// Resident bytes of the harness's tables.
    pub fn harness_bytes(&self) -> u64 {
        self.harness.load(Ordering::Acquire)
    }
}

/// Bytes that one thread has requested and released so far. Written by that thread alone, on cache lines of its own.
#[repr(C, align(128))]
pub struct Ledger {
    requested: AtomicU64,
    released: AtomicU64,
}

impl Ledger {
    /// After the allocation.
    #[inline(always)]
    pub fn request(&self, bytes: u64) {
        self.requested.store(self.requested.load(Ordering::Relaxed) + bytes, Ordering::Release);
    }

    /// Before the release: the published bytes are then never more than what is live.
    #[inline(always)]
    pub fn release(&self, bytes: u64) {
        self.released.store(self.released.load(Ordering::Relaxed) + bytes, Ordering::Release);
    }
}

impl Watched {
    /// What blocks and tables hold.
    pub fn held(&self) -> &Held {
        &self.held
    }

    /// Ranges that are not the allocator's.
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// A replay of so many threads writes its steps here from now on; `None` where there are not so many places.
    pub fn open_steps(&self, threads: usize) -> Option<&[Step]> {
        let steps = self.steps.get(..threads)?;
        self.steps_used.store(threads as u32, Ordering::Release);
        Some(steps)
    }

    /// The steps of a replay; none where nothing is replayed.
    pub fn steps(&self) -> &[Step] {
        self.steps.get(..self.steps_used.load(Ordering::Acquire) as usize).unwrap_or_default()
    }

    /// The guest's first `threads` ledgers are in use from now on; `None` where there are not so many. Touches each, so
    /// that no page fault is left for the measured phase.
    pub fn open_ledgers(&self, threads: usize) -> Option<&[Ledger]> {
        let ledgers = self.ledgers.get(..threads)?;
        ledgers.iter().for_each(|ledger| ledger.request(0));
        self.ledgers_used.store(threads as u32, Ordering::Release);
        Some(ledgers)
    }

    /// Requested bytes of live blocks; `None` where the kernel publishes none. While threads go on it errs downwards:
    /// what was requested is read before what was released.
    pub fn live_bytes(&self) -> Option<u64> {
        let used = self.ledgers_used.load(Ordering::Acquire) as usize;
        let ledgers = self.ledgers.get(..used).filter(|ledgers| !ledgers.is_empty())?;
        let requested: u64 = ledgers.iter().map(|ledger| ledger.requested.load(Ordering::Acquire)).sum();
        let released: u64 = ledgers.iter().map(|ledger| ledger.released.load(Ordering::Acquire)).sum();
        Some(requested.saturating_sub(released))
    }

    /// The host has looked once more.
    pub fn looked(&self) {
        self.looks.fetch_add(1, Ordering::AcqRel);
    }

    /// How often the host has looked.
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
        // SAFETY: zeroed memory is a valid one.
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
