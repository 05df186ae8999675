//! Live large blocks. A program may allocate a gigabyte and touch one page of it. So the recorder
//! asks the kernel, just before a large block is freed, how many of its pages are resident, and how
//! far from its start they reach. Blocks are found in a lock-free table; most frees need only one
//! byte of a filter in front of it.

use crate::layout::{LargeBlocks, PAGES, PLACES, WIPED};
use crate::local::{Errno, state};
use crate::metadata;
use crate::thread::record_rare;
use core::ffi::{c_uchar, c_void};
use core::sync::atomic::Ordering;
use heapmark_wire::capture::Event;

/// Blocks of at least this size are checked.
pub const LARGE_BYTES: usize = 64 << 10;

/// A block is stored at most this many places after the place that its address selects.
const REACH: usize = 16;
/// A place that a thread is taking or leaving right now.
const BUSY: usize = 1;

impl LargeBlocks {
    #[cold]
    #[inline(never)]
    fn insert(&self, address: usize, size: usize) {
        let page = page(address);
        let count = self.filter[page].fetch_add(1, Ordering::AcqRel);
        if count < u8::MAX {
            for place in reach(place(address)).map(|at| &self.places[at]) {
                if place
                    .address
                    .compare_exchange(0, BUSY, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
                {
                    place.size.store(size, Ordering::Relaxed);
                    place.address.store(address, Ordering::Release);
                    return;
                }
            }
        }
        self.filter[page].fetch_sub(1, Ordering::AcqRel);
    }

    #[cold]
    #[inline(never)]
    fn remove(&self, address: usize) -> Option<usize> {
        for place in reach(place(address)).map(|at| &self.places[at]) {
            if place
                .address
                .compare_exchange(address, BUSY, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                let size = place.size.load(Ordering::Relaxed);
                place.address.store(0, Ordering::Release);
                self.filter[page(address)].fetch_sub(1, Ordering::AcqRel);
                return Some(size);
            }
        }
        None
    }
}

/// Returns the filter's byte for an address.
#[inline(always)]
fn page(address: usize) -> usize {
    address >> 12 & (PAGES - 1)
}

/// Returns the place that an address selects. The multiplication spreads the address bits, so that
/// neighbours do not share a place.
fn place(address: usize) -> usize {
    const SPREAD: usize = 0x9e37_79b9_7f4a_7c15_u64 as usize;
    (address >> 4).wrapping_mul(SPREAD) >> (usize::BITS - PLACES.trailing_zeros())
}

fn reach(start: usize) -> impl Iterator<Item = usize> {
    (0..REACH).map(move |behind| (start + behind) % PLACES)
}

/// Enters a block in the table after its allocation, if it is large.
#[inline(always)]
pub fn born(block: *mut c_void, size: usize) {
    if size >= LARGE_BYTES && !block.is_null() && !is_inner() {
        WIPED.large.insert(block as usize, size);
    }
}

/// Returns whether the next library allocates the block for its own use: then the program's own call is
/// noted instead.
fn is_inner() -> bool {
    let state = state();
    // SAFETY: the state is this thread's.
    !state.is_null() && unsafe { (*state).calling } != 0
}

/// Removes a block from the table before it is freed or resized; returns its size if it is a large
/// one.
#[inline(always)]
pub fn dies(block: *mut c_void) -> Option<usize> {
    match WIPED.large.filter[page(block as usize)].load(Ordering::Relaxed) {
        0 => None,
        _ => dies_perhaps(block as usize),
    }
}

#[cold]
#[inline(never)]
fn dies_perhaps(address: usize) -> Option<usize> {
    let size = WIPED.large.remove(address)?;
    touch(address, size).iter().for_each(record_rare);
    Some(size)
}

/// Reports all live large blocks at the end of the process.
pub fn tell_of_all(large: &LargeBlocks) {
    for place in &large.places {
        let address = place.address.load(Ordering::Acquire);
        if address > BUSY {
            touch(address, place.size.load(Ordering::Relaxed))
                .iter()
                .for_each(record_rare);
        }
    }
}

/// Returns the event that states how much of a block is resident.
fn touch(address: usize, size: usize) -> Option<Event<'static>> {
    let page = metadata::page_bytes();
    let (first, end) = (
        address.next_multiple_of(page),
        (address + size) / page * page,
    );
    if let Some((resident, extent)) = resident(first, end, page)
        && end > first
    {
        return Some(Event::Touch {
            address: address as u64,
            resident,
            extent,
            pages: ((end - first) / page) as u64,
        });
    }
    None
}

/// Returns how many of these pages are resident, and how many there are up to the last resident
/// one; `None` if the kernel does not report it. A separate function: the flags leave the stack
/// before anything else is done.
#[inline(never)]
fn resident(first: usize, end: usize, page: usize) -> Option<(u64, u64)> {
    let _errno = Errno::keep();
    let mut flags: [c_uchar; 256] = [0; 256];
    let (mut resident, mut extent, mut at) = (0, 0, first);
    while at < end {
        let bytes = (end - at).min(flags.len() * page);
        // SAFETY: the kernel writes a byte for each page, whatever is mapped there.
        if unsafe { libc::syscall(libc::SYS_mincore, at, bytes, flags.as_mut_ptr()) } != 0 {
            return None;
        }
        let before = (at - first) / page;
        for (number, _) in flags[..bytes / page]
            .iter()
            .enumerate()
            .filter(|(_, flag)| *flag & 1 == 1)
        {
            resident += 1;
            extent = (before + number + 1) as u64;
        }
        at += bytes;
    }
    Some((resident, extent))
}
