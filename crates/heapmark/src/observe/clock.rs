//! The kernel's clocks in nanoseconds.

use rustix::time::{ClockId, clock_gettime};

/// The guest's clock.
pub(super) fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// CPU time of this thread.
pub(super) fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
