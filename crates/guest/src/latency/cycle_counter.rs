//! The clock for single calls: the CPU's own counter if it runs at one constant rate and is
//! synchronized across all CPUs, otherwise the kernel's monotonic clock. No part of the call may
//! leave the span between the two reads, and no other code may enter it: fences stand on both sides
//! of each read.

use crate::clock;

/// A clock that counts up.
#[derive(Clone, Copy)]
pub struct Ticks {
    /// Whether the CPU's counter is used. If not, ticks are nanoseconds of the kernel's clock.
    counter: bool,
    /// Nanoseconds per tick, with 32 fraction bits.
    ns_per_tick: u64,
}

/// Time over which the counter is compared with the kernel's clock. Reading both takes some 100 ns,
/// so the counter's rate is known to 1 in 10^5.
const COMPARE_NS: u64 = 10_000_000;

/// Reads both clocks at one moment. The quickest of several tries is taken, since another program
/// may have taken the CPU in between.
fn both() -> (u64, u64) {
    let mut best = (u64::MAX, (0, 0));
    for _ in 0..16 {
        let (before, ns) = (counter::begin(), clock::now_ns());
        let took = counter::end().saturating_sub(before);
        if took < best.0 {
            best = (took, (before + took / 2, ns));
        }
    }
    best.1
}

impl Ticks {
    /// Returns the best clock of this machine.
    pub fn find() -> Ticks {
        if !counter::is_steady() {
            return Ticks {
                counter: false,
                ns_per_tick: 1 << 32,
            };
        }
        let began = both();
        while clock::now_ns() - began.1 < COMPARE_NS {}
        let ended = both();
        let (ticks, ns) = (ended.0.saturating_sub(began.0).max(1), ended.1 - began.1);
        Ticks {
            counter: true,
            ns_per_tick: ((u128::from(ns) << 32) / u128::from(ticks)) as u64,
        }
    }

    /// Returns the name of the clock.
    pub fn name(&self) -> &'static str {
        if self.counter {
            counter::NAME
        } else {
            "clock_gettime"
        }
    }

    /// Reads the clock before a call.
    #[inline(always)]
    pub fn begin(&self) -> u64 {
        if self.counter {
            counter::begin()
        } else {
            clock::now_ns()
        }
    }

    /// Reads the clock after a call.
    #[inline(always)]
    pub fn end(&self) -> u64 {
        if self.counter {
            counter::end()
        } else {
            clock::now_ns()
        }
    }

    /// Returns the time between two reads, in nanoseconds.
    #[inline(always)]
    pub fn ns(&self, begin: u64, end: u64) -> u64 {
        // The counters of two CPUs may differ by a few ticks: a thread that was moved meanwhile
        // must not get a huge time.
        let ticks = end.saturating_sub(begin);
        ((u128::from(ticks) * u128::from(self.ns_per_tick)) >> 32) as u64
    }
}

#[cfg(target_arch = "x86_64")]
mod counter {
    use core::arch::asm;
    use core::arch::x86_64::__cpuid;

    pub const NAME: &str = "rdtsc";

    /// Returns whether the CPU promises one rate in all power states (and has `rdtscp`), and the
    /// kernel uses the counter for its own time, which it does only if the counters of all CPUs
    /// agree.
    pub fn is_steady() -> bool {
        let all = __cpuid(0x8000_0000).eax >= 0x8000_0007;
        let invariant =
            || __cpuid(0x8000_0007).edx >> 8 & 1 == 1 && __cpuid(0x8000_0001).edx >> 27 & 1 == 1;
        let mut room = [0; 64];
        let file = c"/sys/devices/system/clocksource/clocksource0/current_clocksource";
        all && invariant()
            && crate::memory::read_file(file, &mut room).is_some_and(|name| name.trim() == "tsc")
    }

    /// Reads the counter after all earlier instructions and before all later ones.
    #[inline(always)]
    pub fn begin() -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: reads a counter. It counts as a memory access, so the compiler moves no call
        // across it.
        unsafe {
            asm!("lfence", "rdtsc", "lfence", out("eax") low, out("edx") high, options(nostack, preserves_flags))
        };
        u64::from(high) << 32 | u64::from(low)
    }

    /// Reads the counter with `rdtscp`, which itself waits for earlier instructions.
    #[inline(always)]
    pub fn end() -> u64 {
        let (low, high): (u32, u32);
        // SAFETY: as above; the CPU's number is not used.
        unsafe {
            asm!("rdtscp", "lfence", out("eax") low, out("edx") high, out("ecx") _, options(nostack, preserves_flags));
        }
        u64::from(high) << 32 | u64::from(low)
    }
}

#[cfg(target_arch = "aarch64")]
mod counter {
    use core::arch::asm;

    pub const NAME: &str = "cntvct_el0";

    /// Returns `true`, since the architecture promises a steady counter.
    pub fn is_steady() -> bool {
        true
    }

    /// Reads the counter between barriers. Without them, it may be read early or late, like any
    /// register.
    #[inline(always)]
    pub fn begin() -> u64 {
        let ticks;
        // SAFETY: reads a counter that user code may read. It counts as a memory access, so the
        // compiler moves no call across it.
        unsafe {
            asm!("isb", "mrs {}, cntvct_el0", "isb", out(reg) ticks, options(nostack, preserves_flags))
        };
        ticks
    }

    #[inline(always)]
    pub fn end() -> u64 {
        begin()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_becomes_nanoseconds_and_time_never_runs_backwards() {
        let quarter = Ticks {
            counter: true,
            ns_per_tick: 1 << 30,
        };
        assert_eq!((quarter.ns(100, 500), quarter.ns(500, 100)), (100, 0));
        // 2^50 ticks: the intermediate product has more than 64 bits.
        assert_eq!(quarter.ns(0, 1 << 50), 1 << 48);
    }

    #[test]
    fn the_clock_of_this_machine_counts_like_the_kernels() {
        let ticks = Ticks::find();
        let (outer, begin, inner) = (clock::now_ns(), ticks.begin(), clock::now_ns());
        while clock::now_ns() - inner < 1_000_000 {}
        let (inner, end, outer) = (
            clock::now_ns() - inner,
            ticks.end(),
            clock::now_ns() - outer,
        );
        // The time lies between the enclosed span and the enclosing span, within 1 in 1000.
        let ns = ticks.ns(begin, end);
        assert!(
            (inner - inner / 1000..=outer + outer / 1000).contains(&ns),
            "{}: {inner} {ns} {outer}",
            ticks.name()
        );
    }
}
