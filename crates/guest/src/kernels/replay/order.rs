//! How threads keep to an order that the recorded program could have had. A thread waits for what another one has *done*, never
//! for a slot to be filled: a slot that a fast consumer has emptied and filled again looks like one that was never touched. All
//! waits point back in the recorded order, so they cannot go round in a circle.

use super::stage::Stage;
use crate::fail;
use crate::threads::{wait_long_until, wait_until};
use core::sync::atomic::{AtomicU64, Ordering};
use heapmark_wire::Step;

/// Other threads of which a thread remembers what it has seen of them.
const REMEMBERED: usize = 32;

/// What a thread has seen of others, so that it does not look twice.
pub struct Seen([(usize, u64); REMEMBERED]);

impl Seen {
    /// Nothing yet.
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
        let Some(step) = stage.steps.get(thread) else { fail::give_up("error", format_args!("no thread {thread}")) };
        if step.done() < ops {
            stage.steps[own].wait_for(Some(thread));
            stage.patiently(|| step.done() >= ops);
            stage.steps[own].wait_for(None);
        }
        *known = (thread, step.done());
    }
}

/// No thread may be further ahead in the recorded order than this window: what is live at a time stays comparable.
pub struct Skew {
    window: u64,
    /// The thread that is furthest behind was here or later.
    floor: AtomicU64,
}

impl Skew {
    /// A window of so many events.
    pub fn new(window: u64) -> Skew {
        Skew { window, floor: AtomicU64::new(0) }
    }

    /// Before a round.
    pub fn reset(&self) {
        self.floor.store(0, Ordering::Relaxed);
    }

    /// A thread whose next op has this place goes on once nobody is too far behind.
    pub fn reach(&self, stage: &Stage, own: usize, position: u64) {
        stage.steps[own].reach(position);
        let near = |floor: u64| position <= floor.saturating_add(self.window);
        if near(self.floor.load(Ordering::Relaxed)) {
            return;
        }
        stage.patiently(|| {
            let floor = stage.steps.iter().map(Step::position).min().unwrap_or(position);
            self.floor.store(floor, Ordering::Relaxed);
            near(floor)
        });
    }
}

impl Stage<'_> {
    /// Waits in a way that leaves the CPUs to those that work, where there are more threads than CPUs.
    fn patiently(&self, done: impl Fn() -> bool) {
        if self.crowded { wait_long_until(done) } else { wait_until(done) }
    }
}
