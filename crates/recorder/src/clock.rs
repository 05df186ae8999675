//! Stamps. They order what threads did: of two events where one made the other possible, the first has the lower stamp. The
//! CPU's own counter does that without a cache line that all threads write, where it counts alike on all CPUs; otherwise a
//! counter in memory does.

use crate::file;
use core::ffi::CStr;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// No clock yet: the process has one stream, whose order is all there is.
pub const OFF: u8 = 0;
/// The next event of the stream has to say that it is clocked from there on.
pub const WANTED: u8 = 1;
/// The CPU's counter.
pub const CPU: u8 = 2;
/// The counter in memory.
pub const MEMORY: u8 = 3;

/// What this machine has.
static KIND: AtomicU8 = AtomicU8::new(OFF);

/// `counter`: the kernel trusts the CPU's counter and the user does not, whose machine may be moved to another while it runs.
const WISH: &CStr = c"HEAPMARK_RECORD_CLOCK";

/// Finds out what this machine has; once, before anything is recorded.
pub fn find() {
    // SAFETY: what `getenv` returns is a string of C, and there is one thread.
    let is_unwanted = unsafe {
        let wish = libc::getenv(WISH.as_ptr());
        !wish.is_null() && CStr::from_ptr(wish) == c"counter"
    };
    KIND.store(if cpu::is_steady() && !is_unwanted { CPU } else { MEMORY }, Ordering::Relaxed);
}

/// [`CPU`] or [`MEMORY`].
pub fn kind() -> u8 {
    KIND.load(Ordering::Relaxed)
}

/// Sixteen ticks of the CPU's counter: what two threads do one after the other takes longer.
#[inline(always)]
pub fn cpu() -> u64 {
    cpu::ticks() >> 4
}

/// A stamp of either kind; `counter` is the process's.
pub fn stamp(counter: &AtomicU64) -> u64 {
    if kind() == CPU { cpu() } else { counter.fetch_add(1, Ordering::SeqCst) }
}

/// The kernel's monotonic clock.
pub fn now_ns() -> u64 {
    time(libc::CLOCK_MONOTONIC)
}

/// The wall clock, since 1970.
pub fn unix_ns() -> u64 {
    time(libc::CLOCK_REALTIME)
}

fn time(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills what is ours.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// How fast stamps go, from the time that reading this and that at the start took: right to some thousandths. Chunks say the time,
/// too, and their stamps are far enough apart to know better. 0 where stamps only count events.
pub fn stamps_per_second(stamps: u64, ns: u64) -> u64 {
    if kind() == CPU { (u128::from(stamps) * 1_000_000_000 / u128::from(ns.max(1))) as u64 } else { 0 }
}

#[cfg(target_arch = "x86_64")]
mod cpu {
    use core::arch::x86_64::{__cpuid, _mm_lfence, _rdtsc};

    /// The CPU promises one rate in all states of power, and the kernel, which knows whether all CPUs count alike, trusts it
    /// with its own time.
    pub fn is_steady() -> bool {
        let promised = __cpuid(0x8000_0000).eax >= 0x8000_0007 && __cpuid(0x8000_0007).edx >> 8 & 1 == 1;
        let mut room = [0; 32];
        let source = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
        promised && super::file::read(source, &mut room) == b"tsc\n"
    }

    /// Not before all that was loaded so far is there: alone, the counter is read ahead of the load by which a thread got a block that another
    /// one has freed or made, and the block is born before it has died. (One run in four of eight threads that free each other's blocks, on an
    /// AMD EPYC.)
    #[inline(always)]
    pub fn ticks() -> u64 {
        // SAFETY: every CPU of this architecture has both.
        unsafe {
            _mm_lfence();
            _rdtsc()
        }
    }
}

/// Its counter is the same everywhere and too slow: threads would find the same tick on it.
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
