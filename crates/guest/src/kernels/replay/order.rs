//! How threads keep to an order that the recorded program could have had. A thread waits for what
//! another one has *done*, never for a slot to be filled: a slot that a fast consumer has emptied
//! and refilled looks like one that was never touched. All waits point back in the recorded order,
//! so they form no cycle.

use super::stage::Stage;
use crate::fail;
use crate::threads::{wait_long_until, wait_until};
use core::sync::atomic::{AtomicU64, Ordering};
use heapmark_wire::ReplayProgress;

/// Number of other threads whose progress a thread remembers.
const REMEMBERED: usize = 32;

/// The last known progress of other threads, so that it is not read twice.
pub struct Seen([(usize, u64); REMEMBERED]);

impl Seen {
    /// No progress known yet.
    pub fn nothing() -> Seen {
        Seen([(usize::MAX, 0); REMEMBERED])
    }

    /// Returns once `thread` has done `ops` ops.
    #[inline(always)]
    pub fn wait(&mut self, stage: &Stage, own: usize, thread: usize, ops: u64) {
        let known = &mut self.0[thread % REMEMBERED];
        if known.0 == thread && known.1 >= ops {
            return;
        }
        let Some(step) = stage.steps.get(thread) else {
            fail::give_up("error", format_args!("no thread {thread}"))
        };
        if step.done() < ops {
            stage.steps[own].wait_for(Some(thread));
            stage.patiently(|| step.done() >= ops);
            stage.steps[own].wait_for(None);
        }
        *known = (thread, step.done());
    }
}

/// No thread may be further ahead in the recorded order than this window, so that live bytes stay
/// comparable.
pub struct Skew {
    window: u64,
    /// A lower bound of the position of the slowest thread.
    floor: AtomicU64,
}

impl Skew {
    /// A window of this many events.
    pub fn new(window: u64) -> Skew {
        Skew {
            window,
            floor: AtomicU64::new(0),
        }
    }

    /// Called before a round.
    pub fn reset(&self) {
        self.floor.store(0, Ordering::Relaxed);
    }

    /// Returns once a thread whose next op has this position is within the window of the slowest
    /// thread.
    pub fn reach(&self, stage: &Stage, own: usize, position: u64) {
        stage.steps[own].reach(position);
        let near = |floor: u64| position <= floor.saturating_add(self.window);
        if near(self.floor.load(Ordering::Relaxed)) {
            return;
        }
        stage.patiently(|| {
            let floor = stage
                .steps
                .iter()
                .map(ReplayProgress::position)
                .min()
                .unwrap_or(position);
            self.floor.store(floor, Ordering::Relaxed);
            near(floor)
        });
    }
}

impl Stage<'_> {
    /// If there are more threads than CPUs, waits in a way that leaves the CPUs to working threads.
    fn patiently(&self, done: impl Fn() -> bool) {
        if self.crowded {
            wait_long_until(done)
        } else {
            wait_until(done)
        }
    }
}
