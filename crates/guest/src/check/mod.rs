//! The checked run. Every block that the allocator hands out is compared with all live blocks,
//! calloc's zeros are read, and the contents that realloc moves must arrive. Overlap, misalignment
//! and lost contents end the process as `wrong-result`. A checked run is never timed: the check
//! stands between the kernel and the allocator.
//!
//! The check keeps a shadow of the address space in granules of 8 bytes: one bit means "taken", one
//! "a block starts here". Each page has its own lock, so that threads which share no page do not
//! wait for each other. Nothing stays written in the blocks themselves, since kernels write there.

mod contents;
mod page;
mod shadow;
pub mod sizes;

use crate::api::{self, Api};
use crate::memory::SetOnce;
use crate::served;
use crate::threads::wait_until;
use crate::wrapped::{Function, Look, Request, wrap};
use contents::Contents;
use core::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use heapmark_wire::Held;
use page::GRANULES;
use shadow::Shadow;

/// The allocator that is checked.
struct CheckedAllocator {
    /// Locked for each call if live bytes are published: only then does the order of the updates
    /// matter.
    locked: Option<AtomicBool>,
    real: Api,
    shadow: Shadow,
}

static WATCHED: SetOnce<CheckedAllocator> = SetOnce::unset();

/// Returns functions that call `real` and check what it returns. Live bytes are published in
/// `held`.
pub fn watch(real: Api, held: Option<&'static Held>) -> Api {
    WATCHED.set(CheckedAllocator {
        locked: held.map(|_| AtomicBool::new(false)),
        real,
        shadow: Shadow::new(held),
    });
    wrap::<CheckedAllocator>(&real)
}

fn watched() -> &'static CheckedAllocator {
    WATCHED
        .get()
        .unwrap_or_else(|| fail!("error", "the check was not set up"))
}

impl Look for CheckedAllocator {
    fn allocate<R>(
        request: Request,
        make: impl FnOnce(&Api) -> R,
        block: impl FnOnce(&R) -> *mut u8,
    ) -> R {
        let result = make(&watched().real);
        let (block, bytes) = (block(&result), request.bytes());
        take(request.call, block, bytes);
        must_be_aligned(request.call, block, request.alignment, bytes);
        let zeroed = request.function == Function::Calloc && !block.is_null();
        // SAFETY: calloc promised that many zeroed bytes.
        if zeroed && !unsafe { is_zero(block, bytes) } {
            let Request { count, size, .. } = request;
            fail!(
                "wrong-result",
                "calloc({count}, {size}) returned bytes that are not zero"
            );
        }
        result
    }

    fn resize(block: *mut u8, size: usize, make: impl FnOnce(&Api) -> *mut u8) -> *mut u8 {
        // Marked as freed before the call, since another thread may get the block at once.
        let old = if block.is_null() {
            None
        } else {
            taken_back(block)
        };
        let kept = old.unwrap_or(0).min(size);
        // If memory is sampled, reading a block's bytes would make them resident.
        let looks = watched().locked.is_none() && kept > 0;
        // SAFETY: a live block of at least that many bytes, which this thread may move.
        let contents = looks.then(|| unsafe { Contents::seal(block, kept) });
        let moved = make(&watched().real);
        // A realloc that fails leaves the block as it was.
        let holder = if moved.is_null() && size > 0 {
            block
        } else {
            moved
        };
        // SAFETY: `realloc` promises that `holder` has the first `kept` bytes of the block.
        if contents.is_some_and(|contents| !holder.is_null() && !unsafe { contents.unseal(holder) })
        {
            let old = old.unwrap_or(0);
            fail!(
                "wrong-result",
                "realloc from {old} to {size} bytes lost what the block held"
            );
        }
        match (moved.is_null(), old) {
            (true, Some(old)) if size > 0 => take("realloc", block, old),
            _ => take("realloc", moved, size),
        }
        moved
    }

    fn free(block: *mut u8, make: impl FnOnce(&Api)) {
        // Marked as freed before the call, since another thread may get the block at once.
        if !block.is_null() {
            taken_back(block);
        }
        make(&watched().real);
    }
}

/// Whether all bytes of a block are zero.
///
/// # Safety
/// The block must have that many bytes.
unsafe fn is_zero(block: *mut u8, bytes: usize) -> bool {
    // SAFETY: as the caller promises; an allocator's block may hold any bytes, and any bytes are a
    // valid number.
    let (head, words, tail) =
        unsafe { core::slice::from_raw_parts(block, bytes).align_to::<u64>() };
    words.iter().all(|word| *word == 0) && head.iter().chain(tail).all(|byte| *byte == 0)
}

/// Ends the process if a block does not have the requested alignment.
pub fn must_be_aligned(call: &str, block: *mut u8, alignment: usize, size: usize) {
    if !block.addr().is_multiple_of(alignment) {
        fail!(
            "wrong-result",
            "{call}({alignment}, {size}) returned {block:p}, which is not aligned to that"
        );
    }
}

fn take(call: &str, block: *mut u8, size: usize) {
    if block.is_null() {
        return;
    }
    let (address, alignment) = (block as usize, if size >= 16 { 16 } else { 8 });
    if !address.is_multiple_of(alignment) {
        api::misaligned(format_args!("{call} of {size} bytes"), address, alignment);
    }
    with_shadow(|shadow| shadow.take(call, address, size));
    sizes::add(size);
    served::look(live_bytes);
}

/// Marks a block as no longer live and returns its size; `None` if there was no such block.
fn taken_back(block: *mut u8) -> Option<usize> {
    let size = with_shadow(|shadow| shadow.give_back(block as usize));
    size.into_iter().for_each(sizes::remove);
    size
}

/// How full the pages are that hold a live block.
#[derive(Clone, Copy, Default)]
pub struct Occupied {
    /// Number of pages that hold a live block.
    pub pages: u64,
    /// A tenth of the pages hold at most this many live bytes.
    pub tenth_page_bytes: u64,
    /// Number of pages that are less than a quarter full.
    pub sparse_pages: u64,
}

/// Reads every page of the shadow. Bytes are counted in granules.
pub fn occupied() -> Occupied {
    if WATCHED.get().is_none() {
        return Occupied::default();
    }
    let mut by_granules = with_shadow(Shadow::by_granules);
    by_granules[0] = 0;
    let pages: u64 = by_granules.iter().sum();
    let mut passed = 0;
    let tenth = by_granules.iter().position(|count| {
        passed += count;
        passed * 10 >= pages.max(1)
    });
    let sparse_pages = by_granules[..GRANULES / 4].iter().sum();
    Occupied {
        pages,
        tenth_page_bytes: tenth.unwrap_or(0) as u64 * 8,
        sparse_pages,
    }
}

/// Resident bytes of the pages with live blocks, whatever they are mapped from; `None` if nothing
/// is checked or the kernel does not show page tables. Pages that are mapped at several places do
/// not count, above all the zero page.
pub fn present_bytes() -> Option<u64> {
    WATCHED.get()?;
    with_shadow(Shadow::present).map(|pages| pages << 12)
}

/// Bytes of all live blocks, each rounded up to granules.
pub fn live_bytes() -> u64 {
    with_shadow(Shadow::by_granules)
        .iter()
        .zip(0..)
        .map(|(pages, granules)| 8 * granules * pages)
        .sum()
}

fn with_shadow<T>(act: impl FnOnce(&Shadow) -> T) -> T {
    let CheckedAllocator { locked, shadow, .. } = watched();
    if let Some(locked) = locked {
        // With more threads than CPUs, the thread that holds the lock may be waiting for a CPU.
        wait_until(|| !locked.swap(true, Acquire));
    }
    let done = act(shadow);
    if let Some(locked) = locked {
        locked.store(false, Release);
    }
    done
}
