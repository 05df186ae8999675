//! The measured phase: its start, its end, and what it took in between. Together with the phase,
//! the counters of this process are switched on and off.

use crate::clock::{must_agree, now_ns};
use crate::counted;
use crate::sys;
use core::ops::AddAssign;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Wall time from before the first reading of each phase to after its last one, over all phases: a thread that waits
/// for a CPU between two readings does not stop the other threads.
static READ_WITHIN_NS: AtomicU64 = AtomicU64::new(0);

/// Returns the wall time within which the CPU time and the faults of all phases were counted.
pub fn read_within_ns() -> u64 {
    READ_WITHIN_NS.load(Relaxed)
}

/// The resources used up to one moment; the difference of two is a span.
#[derive(Clone, Copy)]
pub struct Moment {
    /// The time at which the readings of this moment began.
    began_ns: u64,
    wall_ns: u64,
    user_ns: u64,
    sys_ns: u64,
    minor_faults: u64,
}

/// The time and faults of a measured phase.
#[derive(Clone, Copy, Default)]
pub struct Span {
    /// Wall time.
    pub wall_ns: u64,
    /// User CPU time of all threads.
    pub user_ns: u64,
    /// System CPU time of all threads.
    pub sys_ns: u64,
    /// Minor page faults of all threads.
    pub minor_faults: u64,
}

impl AddAssign for Span {
    fn add_assign(&mut self, more: Span) {
        self.wall_ns += more.wall_ns;
        self.user_ns += more.user_ns;
        self.sys_ns += more.sys_ns;
        self.minor_faults += more.minor_faults;
    }
}

impl Moment {
    /// Starts a phase. The usage is read first, so that the wall clock starts last. Here and at the end of the phase,
    /// the clock is compared with the kernel's call, outside the measured time.
    pub fn start() -> Moment {
        must_agree();
        let mut moment = Moment::usage();
        counted::begin();
        moment.wall_ns = now_ns();
        moment
    }

    /// The present moment, outside of any phase.
    pub fn uncounted() -> Moment {
        let moment = Moment::usage();
        Moment {
            wall_ns: moment.began_ns,
            ..moment
        }
    }

    /// The span from this moment until now.
    pub fn elapsed(&self) -> Span {
        let wall_ns = now_ns();
        counted::end();
        let end = Moment::usage();
        READ_WITHIN_NS.fetch_add(now_ns() - self.began_ns, Relaxed);
        must_agree();
        Span {
            wall_ns: wall_ns - self.wall_ns,
            user_ns: end.user_ns - self.user_ns,
            sys_ns: end.sys_ns - self.sys_ns,
            minor_faults: end.minor_faults - self.minor_faults,
        }
    }

    /// Returns the wall time of this moment.
    pub fn wall_ns(&self) -> u64 {
        self.wall_ns
    }

    fn usage() -> Moment {
        let began_ns = now_ns();
        // SAFETY: fills a local.
        let usage = unsafe {
            let mut usage: libc::rusage = core::mem::zeroed();
            let who = libc::RUSAGE_SELF as usize;
            sys::call(libc::SYS_getrusage, [who, (&raw mut usage).addr()]);
            usage
        };
        let ns =
            |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Moment {
            began_ns,
            wall_ns: 0,
            user_ns: ns(usage.ru_utime),
            sys_ns: ns(usage.ru_stime),
            minor_faults: usage.ru_minflt as u64,
        }
    }
}
