//! Stamps order the events of threads: of two events of which the first made the second possible,
//! the first has the lower stamp. If the CPU's own counter is the same on all CPUs, it provides
//! stamps without a cache line that all threads write; otherwise a counter in memory does.

use crate::environment::variable;
use crate::file;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// No clock yet: the process has one stream, whose order suffices.
pub const OFF: u8 = 0;
/// The next event of the stream must mark that the stream is clocked from there on.
pub const WANTED: u8 = 1;
/// Stamps come from the CPU's counter.
pub const CPU: u8 = 2;
/// Stamps come from the counter in memory.
pub const MEMORY: u8 = 3;

/// The kind of clock that this machine supports.
static KIND: AtomicU8 = AtomicU8::new(OFF);

/// The variable that has the value `counter` if the kernel trusts the CPU's counter, but the user
/// does not, because a virtual machine may be migrated while it runs.
const WISH: &CStr = c"HEAPMARK_RECORD_CLOCK";

/// Determines the kind of clock; called once, before anything is recorded.
pub fn find() {
    let is_unwanted = variable(WISH) == b"counter";
    KIND.store(
        if cpu::is_steady() && !is_unwanted {
            CPU
        } else {
            MEMORY
        },
        Ordering::Relaxed,
    );
}

/// Returns the kind of clock: [`CPU`] or [`MEMORY`].
pub fn kind() -> u8 {
    KIND.load(Ordering::Relaxed)
}

/// Returns the CPU's counter in units of sixteen ticks: two dependent actions of two threads are
/// further apart.
#[inline(always)]
pub fn cpu() -> u64 {
    cpu::ticks() >> 4
}

/// Returns a stamp of either kind; `counter` is the process's counter in memory.
pub fn stamp(counter: &AtomicU64) -> u64 {
    if kind() == CPU {
        cpu()
    } else {
        counter.fetch_add(1, Ordering::SeqCst)
    }
}

/// Returns the time of the kernel's monotonic clock, in nanoseconds.
pub fn now_ns() -> u64 {
    time(libc::CLOCK_MONOTONIC)
}

/// Returns the wall-clock time since 1970, in nanoseconds.
pub fn unix_ns() -> u64 {
    time(libc::CLOCK_REALTIME)
}

fn time(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills a local variable.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns the rate of stamps, from the reads at the start and now: accurate to some thousandths.
/// Chunks also hold the time, and their stamps are far enough apart for a better value. 0 if stamps
/// only count events.
pub fn stamps_per_second(stamps: u64, ns: u64) -> u64 {
    if kind() == CPU {
        (u128::from(stamps) * 1_000_000_000 / u128::from(ns.max(1))) as u64
    } else {
        0
    }
}

#[cfg(target_arch = "x86_64")]
mod cpu {
    use core::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

    /// Returns whether the CPU promises one rate in all power states, and the kernel, which checks
    /// whether all CPUs count alike, uses the counter for its own time.
    pub fn is_steady() -> bool {
        let promised =
            __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx >> 8 & 1 == 1;
        let mut room = [0; 32];
        let source = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
        promised && super::file::read(source, &mut room) == b"tsc\n"
    }

    /// Reads the counter after all earlier loads have completed. Otherwise it would be read before
    /// the load by which a thread got a block that another thread has freed or made, and the block
    /// would be born before it has died. (Seen in one run in four of eight threads that free each
    /// other's blocks, on an AMD EPYC.)
    #[inline(always)]
    pub fn ticks() -> u64 {
        // SAFETY: every CPU of this architecture has both instructions.
        unsafe {
            _mm_lfence();
            _rdtsc()
        }
    }
}

/// The counter of aarch64 is the same on all CPUs but too slow: threads would read the same tick.
#[cfg(target_arch = "aarch64")]
mod cpu {
    pub fn is_steady() -> bool {
        let _ = super::file::read;
        false
    }

    pub fn ticks() -> u64 {
        0
    }
}
