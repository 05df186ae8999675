//! Ways in which threads wait for each other: spinning, yielding or asleep.

use crate::sys;
use core::hint::spin_loop;
use core::sync::atomic::{
    AtomicBool, AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// A barrier at which threads count themselves in and wait for each other.
#[derive(Default)]
pub struct Barrier {
    arrived: AtomicU32,
}

impl Barrier {
    /// Returns once `threads` threads have called this function.
    pub fn wait(&self, threads: usize) {
        self.arrived.fetch_add(1, AcqRel);
        wait_until(|| self.arrived.load(Acquire) as usize >= threads);
    }
}

/// A meeting place for a fixed number of threads, which can be used any number of times. A waiting
/// thread sleeps in the kernel, since waits may be so long that spinning would take CPUs from
/// working threads.
pub struct Rendezvous {
    threads: u32,
    arrived: AtomicU32,
    meetings: AtomicU32,
}

impl Rendezvous {
    /// Makes a meeting place for `threads` threads.
    pub fn new(threads: usize) -> Rendezvous {
        Rendezvous {
            threads: threads as u32,
            arrived: AtomicU32::new(0),
            meetings: AtomicU32::new(0),
        }
    }

    /// Returns once all threads have called this function.
    pub fn wait(&self) {
        let meeting = self.meetings.load(Acquire);
        if self.arrived.fetch_add(1, AcqRel) + 1 == self.threads {
            self.arrived.store(0, Relaxed);
            self.meetings.store(meeting.wrapping_add(1), Release);
            sys::wake(self.meetings.as_ptr(), i32::MAX as u32);
        }
        while self.meetings.load(Acquire) == meeting {
            sys::sleep_on(self.meetings.as_ptr(), meeting);
        }
    }
}

/// A semaphore: threads post, and others sleep until there is a post to take. The count is the
/// number of posts not yet taken.
#[derive(Default)]
pub struct Semaphore(AtomicU32);

impl Semaphore {
    /// Wakes a waiting thread, or lets the next thread that waits pass.
    pub fn post(&self) {
        self.0.fetch_add(1, Release);
        sys::wake(self.0.as_ptr(), 1);
    }

    /// Sleeps until there is a post to take, and takes it.
    pub fn wait(&self) {
        let one_less = |posted: u32| posted.checked_sub(1);
        while self.0.try_update(Acquire, Relaxed, one_less).is_err() {
            sys::sleep_on(self.0.as_ptr(), 0);
        }
    }
}

/// Whether waiting should take few instructions rather than little time.
static PATIENT: AtomicBool = AtomicBool::new(false);

/// Makes waiting threads sleep from now on, for a process whose instructions are counted.
pub fn wait_asleep() {
    PATIENT.store(true, Relaxed);
}

/// Number of times that a thread yields before it sleeps. If many threads that wait for long only
/// yielded, each would keep taking its turn on a CPU.
const YIELDS: u32 = 2000;

/// Does the same as [`wait_until`], for waits that may be long while there is work for more threads
/// than CPUs.
pub fn wait_long_until(done: impl Fn() -> bool) {
    if PATIENT.load(Relaxed) {
        return wait_until(done);
    }
    for _ in 0..YIELDS {
        if done() {
            return;
        }
        sys::give_way();
    }
    while !done() {
        // SAFETY: no pointers.
        unsafe { libc::usleep(50) };
    }
}

/// Waits until `done` is true: spins a little, then yields, since there may be more threads than
/// CPUs.
pub fn wait_until(done: impl Fn() -> bool) {
    let mut looks = 0u32;
    while !done() {
        if PATIENT.load(Relaxed) {
            // SAFETY: no pointers.
            unsafe { libc::usleep(sleep_us(looks)) };
        } else if looks < 100 {
            spin_loop();
        } else {
            sys::give_way();
        }
        looks += 1;
    }
}

/// How long a patient thread sleeps after so many looks, in microseconds. Each look takes some hundred instructions, and the
/// count of a process must not depend on how long a busy machine makes its threads wait: so each sleep is twice as long as
/// the one before.
fn sleep_us(looks: u32) -> u32 {
    5000 << looks.min(7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patient_thread_looks_a_dozen_times_in_some_seconds() {
        let slept_us: u32 = (0..12).map(sleep_us).sum();
        assert_eq!(sleep_us(0), 5000);
        assert!((2_000_000..5_000_000).contains(&slept_us), "{slept_us}");
        assert!(sleep_us(u32::MAX) < 1_000_000, "usleep takes no more");
    }
}
