//! What the kernels share whose producers hand blocks to other threads: which threads still work, and
//! the points of memory meanwhile.

use super::*;
use crate::heap_points::HeapPoints;
use crate::threads::Turns;

/// Most points while the threads work.
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
    /// Of all threads of a bench, with room for so many points if memory is measured.
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

    /// Before a round.
    pub fn begin(&self) {
        self.producing.store(self.producers as u32, Release);
        self.working.store(self.threads as u32, Release);
        self.points.begin();
    }

    /// For a thread: does the work of a round, in its turns if there are any.
    pub fn work(&self, worker: usize, act: impl FnOnce()) {
        self.turns.begin(worker);
        act();
        self.working.fetch_sub(1, AcqRel);
        self.turns.leave(worker);
    }

    /// For a producer that has handed over all.
    pub fn has_produced(&self) {
        self.producing.fetch_sub(1, AcqRel);
    }

    /// Whether all producers have handed over all.
    pub fn is_produced(&self) -> bool {
        self.producing.load(Acquire) == 0
    }

    /// For the main thread: acts again and again as long as a thread works.
    pub fn until_done(&self, mut act: impl FnMut()) {
        while self.working.load(Acquire) > 0 {
            act();
        }
    }

    /// Between two points while threads race.
    pub fn pause(&self) {
        sys::sleep_ms(BETWEEN_POINTS_MS);
    }
}
