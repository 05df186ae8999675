//! Writes into fresh blocks, as programs do, so that their pages become resident.

/// Bytes of a page in the documents' programs.
pub const PAGE: usize = 4096;

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
        unsafe { mark(block, size, 0) };
    }
}

/// Touches a block of at least one byte as [`pages`] does, and writes `mark` into the first byte.
///
/// # Safety
/// The block must have that many bytes.
#[inline(always)]
pub unsafe fn mark(block: *mut u8, size: usize, mark: u8) {
    // SAFETY: as the caller guarantees.
    unsafe {
        block.write_volatile(mark);
        if size > PAGE {
            further_pages(block, size);
        }
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

/// Touches a block of at least two bytes as [`pages`] does, and writes a stamp into its first and
/// its last byte.
///
/// # Safety
/// The block must have that many bytes.
#[inline(always)]
pub unsafe fn stamp(block: *mut u8, size: usize, stamp: u8) {
    // SAFETY: as the caller guarantees.
    unsafe {
        mark(block, size, stamp);
        block.add(size - 1).write_volatile(!stamp);
    }
}

/// Ends the process unless a block has its stamp.
///
/// # Safety
/// The block must have that many bytes.
#[inline(always)]
pub unsafe fn verify(block: *mut u8, size: usize, stamp: u8) {
    // SAFETY: as the caller guarantees.
    let found = unsafe { [block.read_volatile(), block.add(size - 1).read_volatile()] };
    if found != [stamp, !stamp] {
        broken(size);
    }
}

/// Ends the process because a block has lost its contents.
#[cold]
#[inline(never)]
pub fn broken(size: usize) -> ! {
    fail!(
        "wrong-result",
        "a block of {size} bytes does not hold what was written"
    )
}
