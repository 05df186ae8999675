//! How the kernel schedules a thread that measures: its policy, priority, nice value and CPUs. All
//! processes of a run must have those of the launcher, which no allocator was loaded into: a library
//! that raises its own priority would look fast, and one that pins itself slow.

use crate::fail;
use crate::memory;
use crate::sys;
use core::ffi::c_int;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// How the launcher is scheduled; null if the kernel does not say.
static LAUNCHED: AtomicPtr<Scheduling> = AtomicPtr::new(ptr::null_mut());
/// A kernel has pinned threads itself: which CPUs they have is no longer the library's doing.
static PINNED: AtomicBool = AtomicBool::new(false);

/// Called by the main thread before the first block.
pub fn start() {
    // SAFETY: no pointers.
    let launcher = unsafe { sys::call(libc::SYS_getppid, [0; 6]) } as c_int;
    if let Some(launched) = Scheduling::of(launcher) {
        LAUNCHED.store(memory::keep(launched), Ordering::Release);
        must_be_as_launched();
    }
}

/// Called before a kernel pins a thread.
pub fn pins() {
    PINNED.store(true, Ordering::Relaxed);
}

/// Ends the process if the calling thread is not scheduled as the launcher is. Called by each
/// thread that measures, before its work and after it.
pub fn must_be_as_launched() {
    // SAFETY: null, or kept until the process ends.
    let Some(launched) = (unsafe { LAUNCHED.load(Ordering::Acquire).as_ref() }) else {
        return;
    };
    let Some(own) = Scheduling::of(OWN) else {
        changed(format_args!("the kernel no longer says how"));
    };
    if launched.rank != own.rank {
        changed(format_args!("{} instead of {}", own.rank, launched.rank));
    }
    // SAFETY: both sets are complete.
    let has_other_cpus = !unsafe { libc::CPU_EQUAL(&launched.cpus, &own.cpus) };
    if has_other_cpus && !PINNED.load(Ordering::Relaxed) {
        // SAFETY: as above.
        let count = |of: &Scheduling| unsafe { libc::CPU_COUNT(&of.cpus) };
        let (count, of) = (count(&own), count(launched));
        changed(format_args!("on other CPUs, {count} instead of {of}"));
    }
}

fn changed(what: fmt::Arguments<'_>) -> ! {
    fail::give_up(
        "unsupported",
        format_args!(
            "the library changes how the kernel schedules this process ({what}), so its times cannot be compared"
        ),
    )
}

/// How a thread is scheduled.
struct Scheduling {
    rank: Rank,
    cpus: libc::cpu_set_t,
}

impl Scheduling {
    /// `None` if the kernel does not say.
    fn of(thread: c_int) -> Option<Scheduling> {
        Some(Scheduling {
            rank: Rank::of(thread)?,
            cpus: cpus_of(thread)?,
        })
    }
}

/// The calling thread, for the kernel.
const OWN: c_int = 0;

/// What decides which thread runs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rank {
    policy: u32,
    nice: i32,
    priority: u32,
}

impl Rank {
    /// `None` if the kernel does not say.
    fn of(thread: c_int) -> Option<Rank> {
        let mut told = Attributes::default();
        // SAFETY: the kernel writes no more than this size into a local.
        let error = unsafe {
            let (place, size) = ((&raw mut told).addr(), size_of::<Attributes>());
            sys::call(
                libc::SYS_sched_getattr,
                [thread as usize, place, size, 0, 0, 0],
            )
        };
        (error == 0).then_some(Rank {
            policy: told.policy,
            nice: told.nice,
            priority: told.priority,
        })
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self.policy as c_int {
            libc::SCHED_OTHER => "SCHED_OTHER",
            libc::SCHED_FIFO => "SCHED_FIFO",
            libc::SCHED_RR => "SCHED_RR",
            libc::SCHED_BATCH => "SCHED_BATCH",
            libc::SCHED_IDLE => "SCHED_IDLE",
            _ => return write!(f, "policy {}", self.policy),
        };
        f.write_str(name)?;
        match self.priority {
            0 => write!(f, " at nice {}", self.nice),
            priority => write!(f, " at priority {priority}"),
        }
    }
}

/// `struct sched_attr` of the kernel's first version.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// The CPUs that a thread may use; `None` if the kernel does not say.
fn cpus_of(thread: c_int) -> Option<libc::cpu_set_t> {
    // SAFETY: a set is valid when it is zero; the kernel writes no more than this size into it.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        let (place, size) = ((&raw mut set).addr(), size_of::<libc::cpu_set_t>());
        let written = sys::call(
            libc::SYS_sched_getaffinity,
            [thread as usize, size, place, 0, 0, 0],
        );
        (written > 0).then_some(set)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_test_is_scheduled_as_what_has_started_it() {
        let own = Rank::of(OWN).unwrap();
        // SAFETY: plain calls.
        let (policy, nice) = unsafe {
            (
                libc::sched_getscheduler(0),
                libc::getpriority(libc::PRIO_PROCESS, 0),
            )
        };
        assert_eq!((own.policy as c_int, own.nice), (policy, nice));
        assert!(cpus_of(OWN).is_some());
    }

    #[test]
    fn a_policy_is_named_as_the_manual_does() {
        let rank = |policy: c_int, nice, priority| Rank {
            policy: policy as u32,
            nice,
            priority,
        };
        for (rank, words) in [
            (rank(libc::SCHED_OTHER, -20, 0), "SCHED_OTHER at nice -20"),
            (rank(libc::SCHED_FIFO, 0, 10), "SCHED_FIFO at priority 10"),
            (rank(77, 0, 0), "policy 77"),
        ] {
            assert_eq!(std::format!("{rank}"), words);
        }
    }
}
