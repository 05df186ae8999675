//! Blocks that can be identified by their stamps, and what each thread did with them.

use crate::api::Api;
use crate::memory::{HarnessTable, Padded};
use crate::report;
use crate::sys::page_bytes;
use core::cell::Cell;

/// A live block with a stamp in its first and its last byte.
#[derive(Clone, Copy)]
pub struct StampedBlock {
    address: *mut u8,
    size: u32,
    stamp: u32,
}

impl StampedBlock {
    /// The block at this address, which was made with this size and stamp.
    pub fn at(address: *mut u8, size: u32, stamp: u32) -> StampedBlock {
        StampedBlock {
            address,
            size,
            stamp,
        }
    }

    pub fn address(&self) -> *mut u8 {
        self.address
    }

    pub fn size(&self) -> usize {
        self.size as usize
    }

    pub fn stamp(&self) -> u32 {
        self.stamp
    }

    /// Touches the block as far as memory figures need that: each page, the first byte, and the
    /// last byte.
    ///
    /// # Safety
    /// The block is live.
    unsafe fn write(&self) {
        let [first, last, ..] = self.stamp.to_le_bytes();
        // SAFETY: within the block.
        unsafe {
            for offset in (0..self.size()).step_by(page_bytes()) {
                self.address.add(offset).write_volatile(first);
            }
            if self.size > 1 {
                self.address.add(self.size() - 1).write_volatile(last);
            }
        }
    }

    /// Whether the block still has its stamp.
    ///
    /// # Safety
    /// The block is live.
    pub unsafe fn is_intact(&self) -> bool {
        let [first, last, ..] = self.stamp.to_le_bytes();
        // SAFETY: within the block.
        unsafe {
            (self.size < 1 || self.address.read_volatile() == first)
                && (self.size < 2 || self.address.add(self.size() - 1).read_volatile() == last)
        }
    }
}

/// What one thread allocated and freed.
#[derive(Default)]
pub struct ShapeCounts {
    mallocs: Cell<u64>,
    aligned: Cell<u64>,
    frees: Cell<u64>,
    allocated_bytes: Cell<u64>,
    freed_bytes: Cell<u64>,
}

fn add(cell: &Cell<u64>, more: u64) {
    cell.set(cell.get() + more);
}

/// An allocator, and what each thread did with it.
pub struct ShapeThreads {
    pub api: Api,
    counts: HarnessTable<Padded<ShapeCounts>>,
}

impl ShapeThreads {
    /// Creates the counts of this many threads.
    pub fn new(api: Api, threads: usize) -> ShapeThreads {
        ShapeThreads {
            api,
            counts: HarnessTable::zeroed(threads),
        }
    }

    /// The allocator as this thread uses it.
    pub fn thread(&self, index: usize) -> ShapeThread<'_> {
        ShapeThread {
            api: &self.api,
            counts: &self.counts[index],
        }
    }

    /// Blocks allocated by all threads so far.
    pub fn blocks(&self) -> u64 {
        self.sum(|counts| &counts.mallocs) + self.aligned_blocks()
    }

    /// Blocks from `posix_memalign`, allocated by all threads so far.
    pub fn aligned_blocks(&self) -> u64 {
        self.sum(|counts| &counts.aligned)
    }

    /// Blocks freed by all threads so far.
    pub fn freed_blocks(&self) -> u64 {
        self.sum(|counts| &counts.frees)
    }

    /// Bytes requested by all threads so far.
    pub fn volume(&self) -> u64 {
        self.sum(|counts| &counts.allocated_bytes)
    }

    /// Bytes freed by all threads so far.
    pub fn freed_bytes(&self) -> u64 {
        self.sum(|counts| &counts.freed_bytes)
    }

    /// Requested bytes of all live blocks.
    pub fn live(&self) -> u64 {
        self.volume() - self.freed_bytes()
    }

    fn sum(&self, of: fn(&ShapeCounts) -> &Cell<u64>) -> u64 {
        let counts = self.counts.iter();
        counts.map(|counts| of(counts).get()).sum()
    }
}

/// The allocator as one thread uses it.
#[derive(Clone, Copy)]
pub struct ShapeThread<'s> {
    api: &'s Api,
    counts: &'s ShapeCounts,
}

impl ShapeThread<'_> {
    /// Allocates a block with a stamp, and touches it.
    pub fn allocate(&self, size: usize, stamp: u32) -> StampedBlock {
        let block = self.untouched(size, stamp);
        // SAFETY: just made.
        unsafe { block.write() };
        block
    }

    /// Allocates a block with a stamp from `posix_memalign`, and touches it.
    pub fn allocate_aligned(&self, alignment: usize, size: usize, stamp: u32) -> StampedBlock {
        let address = self.api.aligned_block(alignment, size);
        if address.is_null() {
            report::no_block("posix_memalign", size);
        }
        let block = self.counted(&self.counts.aligned, address, size, stamp);
        // SAFETY: just made.
        unsafe { block.write() };
        block
    }

    /// Like [`ShapeThread::allocate`], and writes every byte of a block smaller than a page.
    pub fn filled(&self, size: usize, stamp: u32) -> StampedBlock {
        let block = self.untouched(size, stamp);
        // SAFETY: just made.
        unsafe {
            if size < page_bytes() {
                block.address.write_bytes(stamp as u8, size);
            }
            block.write();
        }
        block
    }

    /// Allocates a block that the caller itself touches, and that must not be freed by
    /// [`ShapeThread::free`].
    pub fn untouched(&self, size: usize, stamp: u32) -> StampedBlock {
        // SAFETY: an ordinary call.
        let address = unsafe { (self.api.malloc)(size) };
        if address.is_null() && size > 0 {
            report::no_block("malloc", size);
        }
        self.counted(&self.counts.mallocs, address, size, stamp)
    }

    /// Counts a new block, also in `calls`, and returns it.
    fn counted(
        &self,
        calls: &Cell<u64>,
        address: *mut u8,
        size: usize,
        stamp: u32,
    ) -> StampedBlock {
        add(calls, 1);
        add(&self.counts.allocated_bytes, size as u64);
        StampedBlock::at(address, size as u32, stamp)
    }

    /// Frees a block from any thread; the block must still have its stamp.
    pub fn free(&self, block: StampedBlock) {
        // SAFETY: the kernel passes only live blocks.
        if !unsafe { block.is_intact() } {
            let StampedBlock { size, stamp, .. } = block;
            fail!(
                "wrong-result",
                "block {stamp} of {size} bytes does not hold what was written"
            );
        }
        self.release(block);
    }

    /// Frees a block without checking its stamp.
    pub fn release(&self, block: StampedBlock) {
        // SAFETY: live, released once.
        unsafe { (self.api.free)(block.address) };
        add(&self.counts.frees, 1);
        add(&self.counts.freed_bytes, u64::from(block.size));
    }
}

/// A table of blocks that one thread at a time uses.
pub struct Blocks(HarnessTable<Cell<StampedBlock>>);

impl Blocks {
    /// A table with room for this many blocks.
    pub fn new(len: usize) -> Blocks {
        Blocks(HarnessTable::zeroed(len))
    }

    /// Creates a table that a forked child shares, so that writing into it copies no pages.
    pub fn shared(len: usize) -> Blocks {
        Blocks(HarnessTable::shared(len))
    }

    /// A part of the table as a list that grows and shrinks.
    pub fn list(&self, from: usize, room: usize) -> BlockList<'_> {
        BlockList {
            places: &self.0[from..from + room],
            len: 0,
        }
    }

    pub fn all(&self) -> &[Cell<StampedBlock>] {
        &self.0
    }
}

/// Blocks in the order in which they were added.
pub struct BlockList<'b> {
    places: &'b [Cell<StampedBlock>],
    len: usize,
}

impl BlockList<'_> {
    pub fn push(&mut self, block: StampedBlock) {
        self.places[self.len].set(block);
        self.len += 1;
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_full(&self) -> bool {
        self.len == self.places.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = StampedBlock> {
        self.places[..self.len].iter().map(Cell::get)
    }

    /// Frees the blocks that are not to be kept; the others keep their order.
    pub fn retain(
        &mut self,
        thread: &ShapeThread,
        mut keep: impl FnMut(usize, &StampedBlock) -> bool,
    ) {
        let mut kept = 0;
        for place in 0..self.len {
            let block = self.places[place].get();
            if keep(place, &block) {
                self.places[kept].set(block);
                kept += 1;
            } else {
                thread.free(block);
            }
        }
        self.len = kept;
    }

    /// Frees the block at a place and returns the block's size; the last block moves to that place.
    pub fn swap_free(&mut self, thread: &ShapeThread, place: usize) -> usize {
        let block = self.swap_take(place);
        thread.free(block);
        block.size()
    }

    /// Takes out the block at a place; the last block moves to that place.
    pub fn swap_take(&mut self, place: usize) -> StampedBlock {
        let block = self.places[place].get();
        self.len -= 1;
        self.places[place].set(self.places[self.len].get());
        block
    }

    /// Frees all blocks.
    pub fn clear(&mut self, thread: &ShapeThread) {
        self.retain(thread, |_, _| false);
    }

    /// Drops all blocks without freeing them: another thread frees them.
    pub fn forget(&mut self) {
        self.len = 0;
    }
}
