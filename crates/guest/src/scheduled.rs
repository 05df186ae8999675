//! How the kernel schedules a thread that measures: its policy, priority, nice value and CPUs. All processes of a run
//! must be scheduled like the launcher, into which no allocator was loaded: a library that raises its own priority
//! would look fast, and a library that pins itself would look slow.

use crate::memory::SetOnce;
use crate::sys;
use core::ffi::c_int;
use core::fmt;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How the launcher is scheduled; unset if the kernel does not report it.
static LAUNCHED: SetOnce<Scheduling> = SetOnce::unset();
/// Whether a kernel has pinned threads itself: then the library is not responsible for the CPUs that the threads have.
static PINNED: AtomicBool = AtomicBool::new(false);

/// Stores how the launcher is scheduled, and checks the calling thread; called by the main thread before the first
/// block.
pub fn start() {
    if let Some(launched) = Scheduling::of_launcher() {
        LAUNCHED.set(launched);
        must_be_as_launched();
    }
}

/// Notes that a kernel is about to pin a thread.
pub fn pins() {
    PINNED.store(true, Relaxed);
}

/// Ends the process if the calling thread is not scheduled as the launcher is. Called by each
/// thread that measures, before its work and after it.
pub fn must_be_as_launched() {
    let Some(launched) = LAUNCHED.get() else {
        return;
    };
    let scheduling = Scheduling::of(OWN);
    // Whatever changes the CPUs of a container also changes the launcher's CPUs.
    let is_as = |launched: &Scheduling| {
        scheduling
            .as_ref()
            .is_some_and(|scheduling| scheduling.is_as(launched))
    };
    if !is_as(launched) && !Scheduling::of_launcher().as_ref().is_some_and(is_as) {
        changed(launched, scheduling);
    }
}

fn changed(launched: &Scheduling, scheduling: Option<Scheduling>) -> ! {
    const WHAT: &str = "it is no longer scheduled as it was started";
    const SO: &str =
        "a library that changes this cannot be compared with those that leave it as it is";
    match scheduling {
        None => fail!(
            "unsupported",
            "{WHAT}: the kernel is kept from saying how; {SO}"
        ),
        Some(scheduling) if scheduling.rank != launched.rank => fail!(
            "unsupported",
            "{WHAT}: {} instead of {}; {SO}",
            scheduling.rank,
            launched.rank
        ),
        Some(scheduling) => fail!(
            "unsupported",
            "{WHAT}: on other CPUs, {} instead of {}; {SO}",
            scheduling.cpus(),
            launched.cpus()
        ),
    }
}

/// How a thread is scheduled.
struct Scheduling {
    rank: Rank,
    cpus: libc::cpu_set_t,
}

impl Scheduling {
    fn of_launcher() -> Option<Scheduling> {
        // SAFETY: no pointers.
        Scheduling::of(unsafe { sys::call(libc::SYS_getppid, []) } as c_int)
    }

    /// Whether a thread is scheduled like the launcher, apart from the CPUs that a kernel gave it.
    fn is_as(&self, launched: &Scheduling) -> bool {
        // SAFETY: both sets are complete.
        let same_cpus = unsafe { libc::CPU_EQUAL(&self.cpus, &launched.cpus) };
        self.rank == launched.rank && (same_cpus || PINNED.load(Relaxed))
    }

    /// How many CPUs the thread may use.
    fn cpus(&self) -> c_int {
        // SAFETY: the set is complete.
        unsafe { libc::CPU_COUNT(&self.cpus) }
    }

    /// How this thread is scheduled; `None` if the kernel does not report it.
    fn of(thread: c_int) -> Option<Scheduling> {
        Some(Scheduling {
            rank: Rank::of(thread)?,
            cpus: cpus_of(thread)?,
        })
    }
}

/// In the kernel's calls, this number means the calling thread.
const OWN: c_int = 0;

/// The settings that decide which thread runs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Rank {
    policy: u32,
    nice: i32,
    priority: u32,
}

impl Rank {
    /// The rank of a thread; `None` if the kernel does not report it.
    fn of(thread: c_int) -> Option<Rank> {
        let attributes = SchedulingAttributes::of(thread)?;
        Some(Rank {
            policy: attributes.policy,
            nice: attributes.nice,
            priority: attributes.priority,
        })
    }
}

/// Asks the kernel to let the calling thread, and what it starts, run for this long at a time, from 0.1 to 100 ms,
/// while other threads wait for the CPU. Returns whether the kernel does so: neither kernels before 6.12 nor real-time
/// policies have such slices.
pub fn set_slice(ns: u64) -> bool {
    let Some(mut wanted) = SchedulingAttributes::of(OWN) else {
        return false;
    };
    wanted.runtime = ns;
    // SAFETY: reads a local.
    let error = unsafe {
        let place = (&raw const wanted).addr();
        sys::call(libc::SYS_sched_setattr, [OWN as usize, place])
    };
    error == 0 && SchedulingAttributes::of(OWN).is_some_and(|attributes| attributes.runtime == ns)
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

/// The first version of the kernel's `struct sched_attr`.
#[repr(C)]
#[derive(Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

impl SchedulingAttributes {
    /// The kernel's scheduling attributes of a thread; `None` if the kernel does not report them.
    fn of(thread: c_int) -> Option<SchedulingAttributes> {
        let mut attributes = SchedulingAttributes::default();
        // SAFETY: the kernel writes no more than this size into a local.
        let error = unsafe {
            let (place, size) = (
                (&raw mut attributes).addr(),
                size_of::<SchedulingAttributes>(),
            );
            sys::call(libc::SYS_sched_getattr, [thread as usize, place, size])
        };
        (error == 0).then_some(attributes)
    }
}

/// The CPUs that a thread may use; `None` if the kernel does not report them.
fn cpus_of(thread: c_int) -> Option<libc::cpu_set_t> {
    // SAFETY: a set is valid when it is zero; the kernel writes no more than this size into it.
    unsafe {
        let mut set: libc::cpu_set_t = core::mem::zeroed();
        let (place, size) = ((&raw mut set).addr(), size_of::<libc::cpu_set_t>());
        let written = sys::call(libc::SYS_sched_getaffinity, [thread as usize, size, place]);
        (written > 0).then_some(set)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;

    #[test]
    fn a_test_is_scheduled_as_what_has_started_it() {
        let rank = Rank::of(OWN).unwrap();
        // SAFETY: plain calls.
        let (policy, nice) = unsafe {
            (
                libc::sched_getscheduler(0),
                libc::getpriority(libc::PRIO_PROCESS, 0),
            )
        };
        assert_eq!((rank.policy as c_int, rank.nice), (policy, nice));
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
