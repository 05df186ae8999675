//! Counting instead of timing, only in the measured phases of measured rounds: the processor's
//! events, or the calls that request memory from the kernel. The job's key `counter` selects one.

pub mod kernel;
pub mod perf;

use crate::job::Job;
use crate::threads;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

const NOTHING: u8 = 0;
const PERF: u8 = 1;
const KERNEL: u8 = 2;

/// The kind of counter that this process uses.
static COUNTER: AtomicU8 = AtomicU8::new(NOTHING);
/// The kind of counter that this round uses: `NOTHING` in a cold round.
static THIS_ROUND: AtomicU8 = AtomicU8::new(NOTHING);

/// Starts the counter that the job selects; called before any thread is created, since threads
/// inherit the counters of the thread that creates them.
pub fn start(job: &Job<'_>) {
    let counter = match job.get("counter") {
        // Under valgrind, a busy-waiting loop would dominate the counts.
        Some("callgrind") => return threads::wait_asleep(),
        Some("perf") => {
            perf::start();
            PERF
        }
        Some("kernel") => {
            kernel::start();
            KERNEL
        }
        _ => return,
    };
    COUNTER.store(counter, Relaxed);
}

/// Sets whether the next round is counted; cold rounds are not.
pub fn round(cold: bool) {
    THIS_ROUND.store(if cold { NOTHING } else { COUNTER.load(Relaxed) }, Relaxed);
}

/// Switches counting on as the measured phase begins.
pub fn begin() {
    switch(true);
}

/// Switches counting off when the measured phase is over.
pub fn end() {
    switch(false);
}

fn switch(on: bool) {
    match THIS_ROUND.load(Relaxed) {
        PERF => perf::switch(on),
        KERNEL => kernel::switch(on),
        _ => {}
    }
}

/// Reports each count as a line `count` with its value, or as a line `note` with the reason why
/// there is none.
pub fn report() {
    match COUNTER.load(Relaxed) {
        PERF => perf::report(),
        KERNEL => kernel::report(),
        _ => {}
    }
}
