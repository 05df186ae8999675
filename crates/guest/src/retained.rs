//! The memory that a process still holds after it has freed everything: at once, and after some
//! idle time.

use crate::clock::now_ns;
use crate::fail;
use crate::job::Job;
use crate::memory::Resident;
use crate::published;
use core::fmt::Arguments;
use core::sync::atomic::{AtomicBool, Ordering};

/// Milliseconds after the last free at which the memory is read.
const AFTER_MS: [u64; 4] = [0, 100, 1000, 5000];

/// Whether the host samples the memory of this process. Nothing is timed then.
static WANTED: AtomicBool = AtomicBool::new(false);

/// Reads the setting from the job.
pub fn wanted(job: &Job<'_>) -> bool {
    let wanted = job.is("memory", "1");
    WANTED.store(wanted, Ordering::Relaxed);
    wanted
}

/// Called just before the first operation.
pub fn begin(now: Resident, say: impl Fn(&str, Arguments<'_>)) {
    if WANTED.load(Ordering::Relaxed) {
        tell(&say, "begin", now);
    }
}

/// Called after the kernel has ended: no block of it is live.
pub fn report(say: impl Fn(&str, Arguments<'_>)) {
    if !WANTED.load(Ordering::Relaxed) {
        return;
    }
    let live_bytes = published::live_bytes();
    if live_bytes > 0 {
        fail::give_up(
            "error",
            format_args!("the workload has come to its end with {live_bytes} bytes not freed"),
        );
    }
    let freed_ns = now_ns();
    for after in AFTER_MS {
        let until = freed_ns + after * 1_000_000;
        while let Some(rest) = until.checked_sub(now_ns()).filter(|rest| *rest > 0) {
            // SAFETY: no pointers.
            unsafe { libc::usleep((rest / 1000 + 1).min(500_000) as u32) };
        }
        tell(&say, after, Resident::now());
    }
}

fn tell(
    say: &impl Fn(&str, Arguments<'_>),
    when: impl core::fmt::Display,
    Resident { rss, pss, huge, .. }: Resident,
) {
    say(
        "resident",
        format_args!("{when} {rss} {pss} {huge} {}", published::harness_bytes()),
    );
}
