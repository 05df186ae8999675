//! How far the threads of a replay are: what a host can still read after a crash or a hang.

use core::sync::atomic::{AtomicU64, Ordering};

/// Threads whose steps have a place in the shared page.
pub const STEPS: usize = 1024;

/// One thread's. It alone writes here, on cache lines of its own; the others wait for what it has done.
#[repr(C, align(128))]
#[derive(Default)]
pub struct Step {
    done: AtomicU64,
    position: AtomicU64,
    /// The thread that it waits for, plus one.
    waits_for: AtomicU64,
}

/// A thread that is not at work holds nobody back.
const IDLE: u64 = u64::MAX;

impl Step {
    /// Before anything is played. `at_work` are those that are there from the start.
    pub fn reset(&self, at_work: bool) {
        self.done.store(0, Ordering::Release);
        self.waits_for.store(0, Ordering::Relaxed);
        self.reach(if at_work { 0 } else { IDLE });
    }

    /// So many ops are done.
    #[inline(always)]
    pub fn finish(&self, ops: u64) {
        self.done.store(ops, Ordering::Release);
    }

    /// How many ops are done.
    #[inline(always)]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// This thread's next op has this place in the recorded order.
    pub fn reach(&self, position: u64) {
        self.position.store(position, Ordering::Release);
    }

    /// It plays nothing any more.
    pub fn rest(&self) {
        self.reach(IDLE);
    }

    /// The place of its next op in the recorded order; the largest number where it has none.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// It waits for another thread, or for none.
    pub fn wait_for(&self, thread: Option<usize>) {
        self.waits_for.store(thread.map_or(0, |thread| thread as u64 + 1), Ordering::Release);
    }

    /// The thread that it waits for.
    pub fn waits_for(&self) -> Option<u64> {
        self.waits_for.load(Ordering::Acquire).checked_sub(1)
    }

    /// Whether it plays.
    pub fn is_at_work(&self) -> bool {
        self.position() != IDLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_at_rest_is_behind_nobody() {
        let step = Step::default();
        step.reset(true);
        step.finish(7);
        step.wait_for(Some(0));
        assert_eq!((step.done(), step.position(), step.waits_for(), step.is_at_work()), (7, 0, Some(0), true));
        step.rest();
        step.wait_for(None);
        assert_eq!((step.position(), step.waits_for(), step.is_at_work()), (u64::MAX, None, false));
    }
}
