//! What this process publishes in the shared page about memory that is not the allocator's: which
//! ranges are the harness's, and how many bytes its tables hold. This happens only if memory over
//! time is wanted.

use crate::sys::page_bytes;
use core::ptr;
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};
use heapmark_wire::{Known, Page, RangeKind};

/// The shared page, if a series is wanted.
static PAGE: AtomicPtr<Page> = AtomicPtr::new(ptr::null_mut());

/// Publishes ranges in this page from now on, the page itself first.
pub fn start(page: &'static Page) {
    PAGE.store(ptr::from_ref(page).cast_mut(), Release);
    know(
        ptr::from_ref(page).addr(),
        size_of::<Page>(),
        RangeKind::Shared,
    );
}

/// The shared page, if a series is wanted.
pub fn page() -> Option<&'static Page> {
    // SAFETY: null, or the page of this process, which is never unmapped.
    unsafe { PAGE.load(Acquire).as_ref() }
}

/// Whether memory over time is recorded in this process.
pub fn wanted() -> bool {
    page().is_some()
}

/// Publishes a range that is not the allocator's. Does nothing if no series is wanted.
pub fn know(start: usize, bytes: usize, kind: RangeKind) {
    if let Some(page) = page() {
        let end = start + bytes.next_multiple_of(page_bytes());
        page.watched().ranges().know(Known {
            start: start as u64,
            end: end as u64,
            kind,
        });
    }
}

/// Publishes that the harness's own tables hold this many resident bytes more, or fewer if
/// negative.
pub fn harness_grows(bytes: i64) {
    page()
        .iter()
        .for_each(|page| page.watched().held().harness_grows(bytes));
}

/// Returns the requested bytes of live blocks; 0 if blocks are not counted.
pub fn live_bytes() -> u64 {
    page().map_or(0, |page| page.watched().held().live_bytes())
}

/// Bytes of the pages that hold any live byte.
pub fn occupied_bytes() -> u64 {
    page().map_or(0, |page| page.watched().held().occupied_bytes())
}

/// Returns the resident bytes of the harness's tables.
pub fn harness_bytes() -> u64 {
    page().map_or(0, |page| page.watched().held().harness_bytes())
}

/// Withdraws a published range; called before the range is unmapped.
pub fn forget(start: usize) {
    if let Some(page) = page() {
        page.watched().ranges().forget(start as u64);
    }
}
