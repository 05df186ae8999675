//! Keeps threads to an order that the recorded program could have had. A thread waits for the ops
//! that another thread has *done*, never for a slot to be filled: a slot that a fast consumer has
//! emptied and refilled looks like one that was never touched. All waits point back in the recorded
//! order, so they form no cycle.

use super::*;
use crate::threads::{wait_long_until, wait_until};
use heapmark_wire::ReplayProgress;

/// Number of other threads whose progress a thread remembers.
const REMEMBERED: usize = 32;

/// The last known progress of other threads, so that it is not read twice.
pub struct SeenProgress([(usize, u64); REMEMBERED]);

impl SeenProgress {
    /// Starts without any known progress.
    pub fn nothing() -> SeenProgress {
        SeenProgress([(usize::MAX, 0); REMEMBERED])
    }

    /// Returns once `thread` has done `ops` ops.
    #[inline(always)]
    pub fn wait(&mut self, order: &ReplayOrder, own: usize, thread: usize, ops: u64) {
        let known = &mut self.0[thread % REMEMBERED];
        if known.0 == thread && known.1 >= ops {
            return;
        }
        let Some(step) = order.steps.get(thread) else {
            fail!("error", "no thread {thread}")
        };
        if step.done() < ops {
            order.steps[own].wait_for(Some(thread));
            order.patiently(|| step.done() >= ops);
            order.steps[own].wait_for(None);
        }
        *known = (thread, step.done());
    }
}

/// The progress of all threads, and the limit on how far they may drift apart.
pub struct ReplayOrder<'a> {
    pub steps: &'a [ReplayProgress],
    /// Whether there are more threads than CPUs: then waiting threads leave the CPUs to those that
    /// work.
    crowded: bool,
    /// No thread may be further ahead in the recorded order than this many events, so that live
    /// bytes stay comparable.
    window: u64,
    /// A lower bound of the position of the slowest thread.
    floor: AtomicU64,
}

impl<'a> ReplayOrder<'a> {
    pub fn new(steps: &'a [ReplayProgress], crowded: bool, window: u64) -> ReplayOrder<'a> {
        ReplayOrder {
            steps,
            crowded,
            window,
            floor: AtomicU64::new(0),
        }
    }

    /// Resets the order before each round.
    pub fn reset(&self) {
        self.floor.store(0, Relaxed);
    }

    /// Returns once a thread whose next op has this position is within the window of the slowest
    /// thread.
    pub fn reach(&self, own: usize, position: u64) {
        self.steps[own].reach(position);
        let near = |floor: u64| position <= floor.saturating_add(self.window);
        if near(self.floor.load(Relaxed)) {
            return;
        }
        self.patiently(|| {
            let positions = self.steps.iter().map(ReplayProgress::position);
            let floor = positions.min().unwrap_or(position);
            self.floor.store(floor, Relaxed);
            near(floor)
        });
    }

    fn patiently(&self, done: impl Fn() -> bool) {
        if self.crowded {
            wait_long_until(done)
        } else {
            wait_until(done)
        }
    }
}
