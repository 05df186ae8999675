//! Whether the blocks of a checked process are the allocator's own, or libc's that it hands on: who owns `malloc` says nothing
//! about who serves behind it. libc keeps account of what it has handed out, and is asked while the blocks are live.

use crate::api::Api;
use crate::fail;
use crate::job::Job;
use crate::libcs;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, Ordering};
use heapmark_wire::Page;

/// In libc there may be so much that is no block of ours: threads, tables, what a library keeps of its own.
const LEAST_BYTES: u64 = 64 << 10;
/// A library that has more per cent of its blocks from libc is a wrapper around that.
const MOST_PERCENT: u64 = 5;

/// What is known of this process. Used under the check's lock, or while no other thread allocates.
struct Account {
    asked: AtomicBool,
    before: Cell<u64>,
    /// Asked again when this much is live, or after so many blocks.
    next_live: Cell<u64>,
    next_blocks: Cell<u64>,
    blocks: Cell<u64>,
    /// The most that was ever found.
    percent: Cell<u64>,
}

// SAFETY: see above.
unsafe impl Sync for Account {}

static ACCOUNT: Account = Account {
    asked: AtomicBool::new(false),
    before: Cell::new(0),
    next_live: Cell::new(LEAST_BYTES),
    next_blocks: Cell::new(1 << 10),
    blocks: Cell::new(0),
    percent: Cell::new(0),
};

/// Before the first block.
pub fn start(job: &Job<'_>) {
    if job.get("wrapper").is_some() {
        ACCOUNT.before.set(libcs::handed_out().unwrap_or(0));
        ACCOUNT.asked.store(true, Ordering::Relaxed);
    }
}

/// One more block, and what is live with it. Asks now and then: each time that half as much more is live as ever before, and
/// each time that twice as many blocks have been handed out, since a library may change its mind.
pub fn look(live_bytes: u64) {
    if !ACCOUNT.asked.load(Ordering::Relaxed) {
        return;
    }
    ACCOUNT.blocks.set(ACCOUNT.blocks.get() + 1);
    if live_bytes < ACCOUNT.next_live.get() && ACCOUNT.blocks.get() < ACCOUNT.next_blocks.get() {
        return;
    }
    ACCOUNT.next_live.set(ACCOUNT.next_live.get().max(live_bytes + live_bytes / 2));
    ACCOUNT.next_blocks.set(ACCOUNT.next_blocks.get().max(2 * ACCOUNT.blocks.get()));
    note(live_bytes, ACCOUNT.before.get());
}

/// libc has handed out `before` without these blocks.
fn note(live_bytes: u64, before: u64) {
    let grown = libcs::handed_out().unwrap_or(0).saturating_sub(before);
    if grown >= LEAST_BYTES {
        let percent = (100 * grown / live_bytes.max(1)).min(100);
        ACCOUNT.percent.set(ACCOUNT.percent.get().max(percent));
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
        note((size * count) as u64, before.unwrap_or(0));
        // SAFETY: live blocks, released once.
        blocks[..count].iter().for_each(|block| unsafe { (api.free)(*block) });
    }
    let percent = ACCOUNT.percent.get();
    if !is_told {
        let _ = page.say(format_args!("note=who_serves libc does not tell"));
    } else if percent > MOST_PERCENT && wrapper == "refused" {
        let mend = "a wrapper is measured with --allow-forwarding, or with `wrapper = true` in its entry";
        fail::give_up("not-loaded", format_args!("libc served {percent} % of the bytes; {mend}"));
    } else if percent > MOST_PERCENT {
        let _ = page.say(format_args!("note=served libc serves {percent} %"));
    }
}
