//! Writes into fresh blocks, as programs do, so that their pages become resident.

/// Bytes of a page in the documents' programs.
const PAGE: usize = 4096;

/// Writes one byte at every 4096th offset. Most blocks are below a page: the first byte is written
/// inline, the loop over the others is out of line. `step_by` would compute a number of steps for
/// each block: 16 instructions for one store.
///
/// # Safety
/// The block must have that many bytes.
#[inline(always)]
pub unsafe fn pages(block: *mut u8, size: usize) {
    if size > 0 {
        // SAFETY: the block has a first byte.
        unsafe { block.write_volatile(0) };
    }
    if size > PAGE {
        // SAFETY: as the caller guarantees.
        unsafe { further_pages(block, size) };
    }
}

#[cold]
#[inline(never)]
unsafe fn further_pages(block: *mut u8, size: usize) {
    let mut offset = PAGE;
    while offset < size {
        // SAFETY: within the block.
        unsafe { block.add(offset).write_volatile(0) };
        offset += PAGE;
    }
}
