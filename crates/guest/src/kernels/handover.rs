//! Shared by the kernels whose producers hand blocks to other threads: which threads are still working, and the memory
//! points taken meanwhile.

use super::*;
use crate::heap_points::HeapPoints;
use crate::threads::Turns;

/// Maximum number of points taken while the threads work.
pub const MOST_POINTS: usize = 1000;
/// Time between two points if the threads race.
const BETWEEN_POINTS_MS: u64 = 3;

/// The threads of a round; the producers come first.
pub struct Handover {
    pub producers: usize,
    threads: usize,
    producing: AtomicU32,
    working: AtomicU32,
    pub turns: Turns,
    pub points: HeapPoints,
}

impl Handover {
    /// Makes a handover between all threads of a bench, with room for this many points if memory is measured.
    pub fn new(bench: &Bench, producers: usize, points: usize) -> Handover {
        Handover {
            producers,
            threads: bench.threads,
            producing: AtomicU32::new(0),
            working: AtomicU32::new(0),
            turns: Turns::of(bench),
            points: HeapPoints::new(if retained::is_wanted() { points } else { 0 }),
        }
    }

    /// Resets the counts of working threads; called before each round.
    pub fn begin(&self) {
        self.producing.store(self.producers as u32, Release);
        self.working.store(self.threads as u32, Release);
        self.points.begin();
    }

    /// Does a thread's work of a round, in turns if threads take turns; called by that thread.
    pub fn work(&self, worker: usize, act: impl FnOnce()) {
        self.turns.begin(worker);
        act();
        self.working.fetch_sub(1, AcqRel);
        self.turns.leave(worker);
    }

    /// Counts out a producer that has handed over all its blocks; called by that producer.
    pub fn has_produced(&self) {
        self.producing.fetch_sub(1, AcqRel);
    }

    /// Returns whether all producers have handed over all their blocks.
    pub fn is_produced(&self) -> bool {
        self.producing.load(Acquire) == 0
    }

    /// Calls `act` again and again as long as any thread works; called by the main thread.
    pub fn until_done(&self, mut act: impl FnMut()) {
        while self.working.load(Acquire) > 0 {
            act();
        }
    }

    /// Sleeps between two points while threads race.
    pub fn pause(&self) {
        sys::sleep_ms(BETWEEN_POINTS_MS);
    }
}
