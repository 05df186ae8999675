//! The memory that an allocator holds, found through the mappings in which its blocks may lie, including what it held
//! before any block was requested.

use crate::memory;
use crate::objects::Objects;
use crate::published;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use heapmark_wire::{Page, RangeKind};

/// Bytes that the allocator held before the workload.
static BEFORE: AtomicU64 = AtomicU64::new(0);

/// Records what the allocator holds once it has served its first block, before the harness creates any thread or table.
/// If only later growth counted, an allocator would look smaller, the more memory it takes at its start.
pub fn before_the_workload(page: &Page) {
    BEFORE.store(bytes(page, 0), Relaxed);
}

/// Bytes that the allocator held before the workload.
pub fn before_bytes() -> u64 {
    BEFORE.load(Relaxed)
}

/// Returns the bytes that the allocator holds now; `harness_file_bytes` of the harness's tables lie in a file. The data
/// of loaded objects, such as libc's, is not counted.
pub fn bytes(page: &Page, harness_file_bytes: u64) -> u64 {
    let objects = Objects::loaded();
    let page_start = ptr::from_ref(page).addr();
    let ranges = page.watched().ranges();
    let table = |start| {
        let mut shared = ranges
            .known()
            .filter(|range| range.kind == RangeKind::Shared);
        shared.find(|range| range.start == start as u64)
    };
    let mut all_bytes = 0;
    let mut shared_table_bytes = 0;
    memory::fileless_mappings(|mapping| match table(mapping.start) {
        _ if mapping.start == page_start => {}
        Some(range) => shared_table_bytes += range.end - range.start,
        None if objects
            .owner(ptr::without_provenance_mut(mapping.start))
            .is_some() => {}
        // The harness's private tables may lie in one mapping with the allocator's memory.
        None => all_bytes += mapping.bytes,
    });
    let elsewhere_bytes = shared_table_bytes + harness_file_bytes;
    let private_table_bytes = published::harness_bytes().saturating_sub(elsewhere_bytes);
    all_bytes.saturating_sub(private_table_bytes)
}
