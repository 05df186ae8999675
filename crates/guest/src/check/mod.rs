//! The checked run. Every block that the allocator hands out is compared with all live blocks,
//! calloc's zeros are read, and the contents that realloc moves must arrive. Overlap, misalignment
//! and lost contents end the process as `wrong-result`. Never timed: it stands between the kernel
//! and the allocator.
//!
//! Keeps a shadow of the address space in granules of 8 bytes: one bit means "taken", one "a block
//! starts here". Each page has its own lock, so that threads which share no page do not wait for
//! each other. Nothing stays written in the blocks themselves, since kernels write there.

mod contents;
mod page;
mod shadow;
pub mod sizes;

use crate::api::{AlignedOperators, Api};
use crate::fail;
use crate::memory;
use crate::served;
use crate::threads::wait_until;
use contents::Contents;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use heapmark_wire::Held;
use page::GRANULES;
use shadow::Shadow;

/// The allocator that is checked.
struct CheckedAllocator {
    /// Taken for each call if live bytes are published: only then the order of the updates matters.
    locked: Option<AtomicBool>,
    real: Api,
    shadow: Shadow,
}

static WATCHED: AtomicPtr<CheckedAllocator> = AtomicPtr::new(ptr::null_mut());

/// Functions that call `real` and check what it returns. Live bytes are published in `held`.
pub fn watch(real: Api, held: Option<&'static Held>) -> Api {
    let watched = memory::keep(CheckedAllocator {
        locked: held.map(|_| AtomicBool::new(false)),
        real,
        shadow: Shadow::new(held),
    });
    WATCHED.store(watched, Ordering::Release);
    let aligned = real.aligned.map(|real| AlignedOperators {
        new: new_aligned,
        delete: delete_aligned,
        delete_sized: real.delete_sized.map(|_| delete_aligned_sized as _),
    });
    Api {
        malloc,
        free,
        calloc,
        realloc,
        posix_memalign,
        free_sized,
        new,
        delete,
        delete_sized,
        aligned,
        usable_size: real.usable_size,
    }
}

fn watched() -> &'static CheckedAllocator {
    // SAFETY: null, or set by `watch` and never changed.
    let watched = unsafe { WATCHED.load(Ordering::Acquire).as_ref() };
    watched.unwrap_or_else(|| fail::give_up("error", format_args!("the check was not set up")))
}

fn real() -> &'static Api {
    &watched().real
}

unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
    // SAFETY: the allocator's own function.
    let block = unsafe { (real().malloc)(size) };
    take("malloc", block, size);
    block
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    // SAFETY: the allocator's own function.
    let block = unsafe { (real().calloc)(count, size) };
    // Refusing an overflow is the allocator's task; then there is no block.
    let bytes = count.saturating_mul(size);
    take("calloc", block, bytes);
    // SAFETY: calloc promised that many zeroed bytes.
    if !block.is_null() && !unsafe { is_zero(block, bytes) } {
        fail::give_up(
            "wrong-result",
            format_args!("calloc({count}, {size}) returned bytes that are not zero"),
        );
    }
    block
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

unsafe extern "C" fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    // Before the call: another thread may get the block at once.
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
    // SAFETY: the allocator's own function with a block of its own.
    let moved = unsafe { (real().realloc)(block, size) };
    // A realloc that fails leaves the block as it was.
    let holder = if moved.is_null() && size > 0 {
        block
    } else {
        moved
    };
    // SAFETY: it promised the first bytes of the block in one of this size.
    if contents.is_some_and(|contents| !holder.is_null() && !unsafe { contents.unseal(holder) }) {
        let old = old.unwrap_or(0);
        fail::give_up(
            "wrong-result",
            format_args!("realloc from {old} to {size} bytes lost what the block held"),
        );
    }
    match (moved.is_null(), old) {
        (true, Some(old)) if size > 0 => take("realloc", block, old),
        _ => take("realloc", moved, size),
    }
    moved
}

unsafe extern "C" fn posix_memalign(block: *mut *mut u8, alignment: usize, size: usize) -> i32 {
    // SAFETY: the allocator's own function, and the caller's place for the result.
    let (error, address) = unsafe { ((real().posix_memalign)(block, alignment, size), *block) };
    if error == 0 {
        take("posix_memalign", address, size);
        must_be_aligned("posix_memalign", address, alignment, size);
    }
    error
}

unsafe extern "C" fn free(block: *mut u8) {
    // Before the call: another thread may get the block at once.
    give_back(block);
    // SAFETY: the allocator's own function with a block of its own.
    unsafe { (real().free)(block) };
}

unsafe extern "C" fn free_sized(block: *mut u8, size: usize, flags: usize) {
    give_back(block);
    // SAFETY: as in `free`.
    unsafe { (real().free_sized)(block, size, flags) };
}

unsafe extern "C" fn new(size: usize) -> *mut u8 {
    // SAFETY: the allocator's own function.
    let block = unsafe { (real().new)(size) };
    take("operator new", block, size);
    block
}

unsafe extern "C" fn delete(block: *mut u8) {
    give_back(block);
    // SAFETY: as in `free`, with a block of its own `new`.
    unsafe { (real().delete)(block) };
}

unsafe extern "C" fn delete_sized(block: *mut u8, size: usize) {
    give_back(block);
    // SAFETY: as in `delete`.
    unsafe { (real().delete_sized)(block, size) };
}

unsafe extern "C" fn new_aligned(size: usize, alignment: usize) -> *mut u8 {
    // SAFETY: the allocator's own function, handed out only if it exists.
    let block = real().aligned.map_or(ptr::null_mut(), |real| unsafe {
        (real.new)(size, alignment)
    });
    take("operator new", block, size);
    must_be_aligned("operator new", block, alignment, size);
    block
}

unsafe extern "C" fn delete_aligned(block: *mut u8, alignment: usize) {
    give_back(block);
    // SAFETY: as in `delete`, with a block of `new_aligned`.
    real()
        .aligned
        .iter()
        .for_each(|real| unsafe { (real.delete)(block, alignment) });
}

unsafe extern "C" fn delete_aligned_sized(block: *mut u8, size: usize, alignment: usize) {
    give_back(block);
    let delete = real().aligned.and_then(|real| real.delete_sized);
    // SAFETY: as in `delete_aligned`.
    delete
        .iter()
        .for_each(|delete| unsafe { delete(block, size, alignment) });
}

/// Ends the process if a block does not have the requested alignment.
pub fn must_be_aligned(call: &str, block: *mut u8, alignment: usize, size: usize) {
    if !block.addr().is_multiple_of(alignment) {
        fail::give_up(
            "wrong-result",
            format_args!(
                "{call}({alignment}, {size}) returned {block:p}, which is not aligned to that"
            ),
        );
    }
}

fn take(call: &str, block: *mut u8, size: usize) {
    if block.is_null() {
        return;
    }
    let (address, alignment) = (block as usize, if size >= 16 { 16 } else { 8 });
    if !address.is_multiple_of(alignment) {
        fail::misaligned(format_args!("{call} of {size} bytes"), address, alignment);
    }
    with_shadow(|shadow| shadow.take(call, address, size));
    sizes::add(size);
    served::look(live_bytes);
}

fn give_back(block: *mut u8) {
    if !block.is_null() {
        _ = taken_back(block);
    }
}

/// The size of a block that is no longer live; `None` if there was none.
fn taken_back(block: *mut u8) -> Option<usize> {
    let size = with_shadow(|shadow| shadow.give_back(block as usize));
    size.into_iter().for_each(sizes::remove);
    size
}

/// How full the pages are that hold a live block.
#[derive(Clone, Copy, Default)]
pub struct Occupied {
    /// How many there are.
    pub pages: u64,
    /// A tenth of the pages hold at most this many live bytes.
    pub tenth_page_bytes: u64,
    /// Pages that are less than a quarter full.
    pub sparse_pages: u64,
}

/// Reads every page of the shadow. Bytes are counted in granules.
pub fn occupied() -> Occupied {
    if WATCHED.load(Ordering::Acquire).is_null() {
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

/// Resident bytes of the pages with live blocks, whatever they are mapped from, as far as the
/// kernel shows page tables. Pages shared by several places do not count, above all the page of
/// zeros.
pub fn present_bytes() -> Option<u64> {
    if WATCHED.load(Ordering::Acquire).is_null() {
        return None;
    }
    with_shadow(Shadow::present).map(|pages| pages << 12)
}

/// Bytes of all live blocks, in granules.
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
        wait_until(|| !locked.swap(true, Ordering::Acquire));
    }
    let done = act(shadow);
    if let Some(locked) = locked {
        locked.store(false, Ordering::Release);
    }
    done
}
