//! What is counted instead of timed, only in the measured phases of measured rounds: the
//! processor's events, or the calls that request memory from the kernel. The job's key `counter`
//! selects one.

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

/// Called before any thread is created: threads inherit the counters of the thread that creates
/// them.
pub fn start(job: &Job<'_>) {
    let counter = match job.get("counter") {
        // Under valgrind, where a busy-waiting loop would dominate the counts.
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

/// Called before each round.
pub fn round(cold: bool) {
    THIS_ROUND.store(if cold { NOTHING } else { COUNTER.load(Relaxed) }, Relaxed);
}

/// Called when the measured phase begins.
pub fn begin() {
    switch(true);
}

/// Called when the measured phase is over.
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

/// Reports each count: `count` and its value, or `note` and why there is none.
pub fn report() {
    match COUNTER.load(Relaxed) {
        PERF => perf::report(),
        KERNEL => kernel::report(),
        _ => {}
    }
}
