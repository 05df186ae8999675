//! Whether the blocks of a checked process are the allocator's own, or libc's that it hands on: who owns `malloc` says nothing
//! about who serves behind it. libc keeps account of what it has handed out, and is asked while the blocks are live.

extern crate std;

use crate::api::Api;
use crate::check;
use crate::fail;
use crate::job::Job;
use crate::libcs;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use heapmark_wire::Page;

/// In libc there may be so much that is no block of ours: threads, tables, what a library keeps of its own.
const LEAST_BYTES: u64 = 64 << 10;
/// A library that has more per cent of its blocks from libc is a wrapper around that.
const MOST_PERCENT: u64 = 5;
/// A thread counts so many blocks by itself before it tells the others.
const TOGETHER: u64 = 256;

/// What libc had handed out before the first block; the greatest number where it is not asked.
static BEFORE: AtomicU64 = AtomicU64::new(u64::MAX);
/// Blocks of all threads, and with how many of them libc is asked next.
static BLOCKS: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(TOGETHER);
/// The most that was ever found.
static PERCENT: AtomicU64 = AtomicU64::new(0);

std::thread_local! {
    static OWN_BLOCKS: Cell<u64> = const { Cell::new(0) };
}

/// Before the first block.
pub fn start(job: &Job<'_>) {
    if job.get("wrapper").is_some() {
        BEFORE.store(libcs::handed_out().unwrap_or(0), Ordering::Relaxed);
    }
}

/// One more block is live. Asks each time that half as many more have been handed out as ever before: a library may change its
/// mind.
pub fn look() {
    let own = OWN_BLOCKS.get() + 1;
    OWN_BLOCKS.set(own % TOGETHER);
    if own < TOGETHER {
        return;
    }
    let (before, next) = (BEFORE.load(Ordering::Relaxed), NEXT.load(Ordering::Relaxed));
    let blocks = BLOCKS.fetch_add(TOGETHER, Ordering::Relaxed) + TOGETHER;
    let later = blocks + blocks / 2;
    if before < u64::MAX
        && blocks >= next
        && NEXT.compare_exchange(next, later, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    {
        note(before, check::live_bytes);
    }
}

/// libc has handed out `before` without what is live.
fn note(before: u64, live_bytes: impl FnOnce() -> u64) {
    let grown = libcs::handed_out().unwrap_or(0).saturating_sub(before);
    if grown >= LEAST_BYTES {
        PERCENT.fetch_max((100 * grown / live_bytes().max(1)).min(100), Ordering::Relaxed);
    }
}

/// Sizes and how many of each: whatever the kernel asks for, each has its turn.
const PROBES: [(usize, usize); 6] = [(24, 8192), (500, 1024), (5_000, 256), (40_000, 64), (300_000, 8), (3_000_000, 2)];

/// After the kernel: blocks of all sizes, and what is known by then. Ends the process where libc serves and nobody has said so.
pub fn report(page: &Page, job: &Job<'_>, api: &Api) {
    let Some(wrapper) = job.get("wrapper") else { return };
    let mut blocks = [core::ptr::null_mut(); 8192];
    let mut is_told = false;
    for (size, count) in PROBES {
        let before = libcs::handed_out();
        is_told |= before.is_some();
        for block in &mut blocks[..count] {
            // SAFETY: an ordinary call.
            *block = unsafe { (api.malloc)(size) };
            if block.is_null() {
                fail::null("malloc", size);
            }
        }
        note(before.unwrap_or(0), || (size * count) as u64);
        // SAFETY: live blocks, released once.
        blocks[..count].iter().for_each(|block| unsafe { (api.free)(*block) });
    }
    let percent = PERCENT.load(Ordering::Relaxed);
    if !is_told {
        let _ = page.say(format_args!("note=who_serves libc does not tell"));
    } else if percent > MOST_PERCENT && wrapper == "refused" {
        let mend = "a wrapper is measured with --allow-forwarding, or with `wrapper = true` in its entry";
        fail::give_up("not-loaded", format_args!("libc served {percent} % of the bytes; {mend}"));
    } else if percent > MOST_PERCENT {
        let _ = page.say(format_args!("note=served libc serves {percent} %"));
    }
}
