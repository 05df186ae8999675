//! The progress of a replay's threads, which a host can still read after a crash or a hang.

use core::sync::atomic::{AtomicU64, Ordering};

/// Number of threads whose steps have a place in the shared page.
pub const STEPS: usize = 1024;

/// The progress of one thread. Only this thread writes here, on cache lines of its own; others wait
/// for the ops it has done.
#[repr(C, align(128))]
#[derive(Default)]
pub struct ReplayProgress {
    done: AtomicU64,
    position: AtomicU64,
    /// The number plus one of the thread that this thread waits for; 0 if there is none.
    waits_for: AtomicU64,
}

/// The position of a thread that does not play: no other thread waits for it.
const IDLE: u64 = u64::MAX;

impl ReplayProgress {
    /// Resets the progress before a replay. `at_work` is true for threads that exist from the start.
    pub fn reset(&self, at_work: bool) {
        self.done.store(0, Ordering::Release);
        self.waits_for.store(0, Ordering::Relaxed);
        self.reach(if at_work { 0 } else { IDLE });
    }

    /// Stores the number of ops done.
    #[inline(always)]
    pub fn finish(&self, ops: u64) {
        self.done.store(ops, Ordering::Release);
    }

    /// Returns the number of ops done.
    #[inline(always)]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Acquire)
    }

    /// Sets the position of this thread's next op in the recorded order.
    pub fn reach(&self, position: u64) {
        self.position.store(position, Ordering::Release);
    }

    /// Notes that the thread no longer plays.
    pub fn rest(&self) {
        self.reach(IDLE);
    }

    /// The position of the thread's next op in the recorded order; the largest number if it has none.
    pub fn position(&self) -> u64 {
        self.position.load(Ordering::Acquire)
    }

    /// Sets the thread that this thread waits for, if any.
    pub fn wait_for(&self, thread: Option<usize>) {
        self.waits_for.store(
            thread.map_or(0, |thread| thread as u64 + 1),
            Ordering::Release,
        );
    }

    /// Returns the number of the thread that this thread waits for; `None` if there is none.
    pub fn waits_for(&self) -> Option<u64> {
        self.waits_for.load(Ordering::Acquire).checked_sub(1)
    }

    /// Whether the thread plays.
    pub fn is_at_work(&self) -> bool {
        self.position() != IDLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_at_rest_is_behind_no_other() {
        let step = ReplayProgress::default();
        step.reset(true);
        step.finish(7);
        step.wait_for(Some(0));
        assert_eq!(
            (
                step.done(),
                step.position(),
                step.waits_for(),
                step.is_at_work()
            ),
            (7, 0, Some(0), true)
        );
        step.rest();
        step.wait_for(None);
        assert_eq!(
            (step.position(), step.waits_for(), step.is_at_work()),
            (u64::MAX, None, false)
        );
    }
}
