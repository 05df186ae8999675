//! The memory that a process still holds after it has freed everything: at once, and after some
//! idle time.

use crate::clock::now_ns;
use crate::job::Job;
use crate::memory::Resident;
use crate::published;
use crate::report;
use crate::sys;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Milliseconds after the last free at which the memory is read.
const AFTER_MS: [u64; 4] = [0, 100, 1000, 5000];

/// Whether the memory of this process is measured; if so, nothing is timed.
static WANTED: AtomicBool = AtomicBool::new(false);
/// Whether the memory is also read after the kernel has ended, for kernels that take no points
/// themselves.
static AT_THE_END: AtomicBool = AtomicBool::new(false);
/// Whether the process also idles at the end and then reads the memory again.
static IDLES: AtomicBool = AtomicBool::new(false);

/// Reads the settings from the job. Returns whether the memory of this process is measured.
pub fn wanted(job: &Job<'_>, at_the_end: bool) -> bool {
    let wanted = job.is("memory", "1");
    WANTED.store(wanted, Relaxed);
    AT_THE_END.store(wanted && at_the_end, Relaxed);
    IDLES.store(job.is("idles", "1"), Relaxed);
    wanted
}

/// Whether the memory of this process is measured.
pub fn is_wanted() -> bool {
    WANTED.load(Relaxed)
}

/// Reports the resident memory just before the first operation.
pub fn begin(now: Resident) {
    if is_wanted() {
        tell("begin", now);
    }
}

/// Reports the memory that is still held after the kernel has ended; none of the kernel's blocks
/// may be live.
pub fn report() {
    if !AT_THE_END.load(Relaxed) {
        return;
    }
    let live_bytes = published::live_bytes();
    if live_bytes > 0 {
        fail!(
            "error",
            "the workload has come to its end with {live_bytes} bytes not freed"
        );
    }
    let freed_ns = now_ns();
    let idles = IDLES.load(Relaxed);
    for after in AFTER_MS.into_iter().filter(|after| idles || *after == 0) {
        let until = freed_ns + after * 1_000_000;
        while let Some(rest) = until.checked_sub(now_ns()).filter(|rest| *rest > 0) {
            sys::sleep_ns(rest.min(500_000_000));
        }
        tell(after, Resident::now());
    }
}

fn tell(when: impl core::fmt::Display, Resident { rss, pss, huge, .. }: Resident) {
    report::say(
        "resident",
        format_args!("{when} {rss} {pss} {huge} {}", published::harness_bytes()),
    );
}
