//! What the kernels of operations share: a round is one lap of workers that live through it, and
//! each worker says what it did.

use crate::bench::{Bench, KernelWork};
use crate::memory::{HarnessTable, Padded};
use crate::timed_phases::Load;
use core::cell::Cell;

/// What each worker did in a round.
pub struct Works(HarnessTable<Padded<Cell<KernelWork>>>);

// SAFETY: each worker writes its own, the main thread reads them when all have ended.
unsafe impl Sync for Works {}

impl Works {
    pub fn new(bench: &Bench) -> Works {
        Works(HarnessTable::zeroed(bench.threads))
    }

    /// Adds to what a worker did.
    pub fn add(&self, worker: usize, more: &KernelWork) {
        let Padded(work) = &self.0[worker];
        let mut sum = work.get();
        sum.add(more);
        work.set(sum);
    }
}

/// Runs all rounds. Of each, `ops` operations are on the clock, and `expected` is the work of all
/// workers, what comes before and after the clock included.
pub fn run<L: Load>(bench: &mut Bench, load: &L, works: &Works, ops: u64, expected: &KernelWork) {
    let (mut done, mut all) = (KernelWork::default(), KernelWork::default());
    bench.begin();
    for round in bench.rounds() {
        let mut span = Default::default();
        bench.laps(round, 1, load, |_, lapse| span = lapse.span);
        bench.record(round, span, 0, ops);
        let works = works.0.iter();
        works.for_each(|Padded(work)| done.add(&work.take()));
        all.add(expected);
    }
    bench.account(&done, &all);
}

/// So many blocks of so many bytes in all, which are freed again.
pub fn pairs(blocks: u64, bytes: u64) -> KernelWork {
    KernelWork {
        malloc: blocks,
        free: blocks,
        checksum: bytes,
        ..KernelWork::default()
    }
}
