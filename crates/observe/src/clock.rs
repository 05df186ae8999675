//! The kernel's clocks in nanoseconds, and what it counts for threads and processes.

use rustix::time::{ClockId, clock_gettime};

/// Returns the time of the monotonic clock, which the guest uses, too.
pub fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// Returns the CPU time of this thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// Returns what the kernel has counted for this thread, this process or its children.
pub fn usage(whose: libc::c_int) -> libc::rusage {
    // SAFETY: fills a local; the call cannot fail with such arguments.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(whose, &mut usage);
        usage
    }
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
