//! Finds out whether the blocks of a checked process come from the allocator itself, or from libc,
//! to which it may forward calls: the owner of the symbol `malloc` does not prove which library
//! serves the calls. libc counts the bytes that it has handed out; this count is read while the
//! blocks are live.

extern crate std;

use crate::api::Api;
use crate::job::Job;
use crate::libcs;
use crate::report;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bytes from libc below which nothing is concluded: they may belong to threads, tables or a
/// library's own data instead of the workload.
const LEAST_BYTES: u64 = 64 << 10;
/// A library that gets a higher percentage of its bytes from libc is a wrapper around libc.
const MOST_PERCENT: u64 = 5;
/// A thread counts this many blocks locally before it adds them to the shared count.
const TOGETHER: u64 = 256;

/// Bytes that libc had handed out before the first block; `u64::MAX` if libc is not asked.
static BEFORE: AtomicU64 = AtomicU64::new(u64::MAX);
/// Number of blocks counted by all threads, and the number at which libc is asked again.
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(TOGETHER);
/// The highest percentage of live bytes that libc was found to serve.
static PERCENT: AtomicU64 = AtomicU64::new(0);

std::thread_local! {
    static OWN_BLOCKS: Cell<u64> = const { Cell::new(0) };
}

/// Reads how many bytes libc has handed out before the first block, if the job has the key
/// `wrapper`.
pub fn start(job: &Job<'_>) {
    if job.get("wrapper").is_some() {
        BEFORE.store(libcs::handed_out().unwrap_or(0), Relaxed);
    }
}

/// Counts one more live block; `live_bytes` returns the bytes of all live blocks. Asks libc again
/// each time the total has grown by half: a library may change its behaviour later.
pub fn look(live_bytes: impl FnOnce() -> u64) {
    let own_blocks = OWN_BLOCKS.get() + 1;
    OWN_BLOCKS.set(own_blocks % TOGETHER);
    if own_blocks < TOGETHER {
        return;
    }
    let (before, next) = (BEFORE.load(Relaxed), NEXT.load(Relaxed));
    let blocks = BLOCKS.fetch_add(TOGETHER, Relaxed) + TOGETHER;
    let later = blocks + blocks / 2;
    if before < u64::MAX
        && blocks >= next
        && NEXT.compare_exchange(next, later, Relaxed, Relaxed).is_ok()
    {
        note(before, live_bytes);
    }
}

/// Notes what libc has handed out beyond `before`, the count without the live blocks.
fn note(before: u64, live_bytes: impl FnOnce() -> u64) {
    let grown = libcs::handed_out().unwrap_or(0).saturating_sub(before);
    if grown >= LEAST_BYTES {
        PERCENT.fetch_max((100 * grown / live_bytes().max(1)).min(100), Relaxed);
    }
}

/// Probed sizes, each with its number of blocks: all size classes are probed, whatever sizes the
/// kernel requests.
const PROBES: [(usize, usize); 6] = [
    (24, 8192),
    (500, 1024),
    (5_000, 256),
    (40_000, 64),
    (300_000, 8),
    (3_000_000, 2),
];

/// Called after the kernel: probes blocks of all sizes and reports the result. Ends the process if
/// libc serves and the row is not declared a wrapper.
pub fn report(job: &Job<'_>, api: &Api) {
    let Some(wrapper) = job.get("wrapper") else {
        return;
    };
    let mut blocks = [core::ptr::null_mut(); 8192];
    let mut is_told = false;
    for (size, count) in PROBES {
        let before = libcs::handed_out();
        is_told |= before.is_some();
        for block in &mut blocks[..count] {
            // SAFETY: an ordinary call.
            *block = unsafe { (api.malloc)(size) };
            if block.is_null() {
                report::no_block("malloc", size);
            }
        }
        note(before.unwrap_or(0), || (size * count) as u64);
        // SAFETY: live blocks, released once.
        blocks[..count]
            .iter()
            .for_each(|block| unsafe { (api.free)(*block) });
    }
    let percent = PERCENT.load(Relaxed);
    if !is_told {
        report::write(format_args!("note=who_serves libc does not tell"));
    } else if percent > MOST_PERCENT && wrapper == "refused" {
        let mend =
            "a wrapper is measured with --allow-forwarding, or with `wrapper = true` in its entry";
        fail!("not-loaded", "libc served {percent} % of the bytes; {mend}");
    } else if percent > MOST_PERCENT {
        report::write(format_args!("note=served libc serves {percent} %"));
    }
}
