//! What the kernels of memory shapes share: blocks that say which they are, what each thread did,
//! and points at which nothing else runs.

use crate::api::Api;
use crate::bench::{Bench, KernelWork};
use crate::fail;
use crate::heap_points::HeapPoints;
use crate::memory::{HarnessTable, Padded};
use crate::retained;
use crate::sys::page_bytes;
use core::cell::Cell;

/// From this many live bytes on, a point's overhead describes the allocator.
const OVERHEAD_FROM_BYTES: u64 = 1 << 20;

/// A live block with a stamp in its first and its last byte.
#[derive(Clone, Copy)]
pub struct StampedBlock {
    address: *mut u8,
    size: u32,
    stamp: u32,
}

impl StampedBlock {
    /// A block that was made with these two, at its address.
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

    /// Touches it as far as memory figures need that: each page, the first byte, and the last one.
    ///
    /// # Safety
    /// It is live.
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

    /// Whether it still has its stamp.
    ///
    /// # Safety
    /// It is live.
    pub unsafe fn is_intact(&self) -> bool {
        let [first, last, ..] = self.stamp.to_le_bytes();
        // SAFETY: within the block.
        unsafe {
            (self.size < 1 || self.address.read_volatile() == first)
                && (self.size < 2 || self.address.add(self.size() - 1).read_volatile() == last)
        }
    }
}

/// What one thread did.
#[derive(Default)]
pub struct ShapeCounts {
    mallocs: Cell<u64>,
    frees: Cell<u64>,
    allocated_bytes: Cell<u64>,
    freed_bytes: Cell<u64>,
}

fn add(cell: &Cell<u64>, more: u64) {
    cell.set(cell.get() + more);
}

/// One round of such a kernel.
pub struct Shape {
    pub api: Api,
    pub points: HeapPoints,
    counts: HarnessTable<Padded<ShapeCounts>>,
    /// Highest resident heap over live bytes of any point.
    worst: Cell<f64>,
    most_live: Cell<u64>,
}

// SAFETY: each thread changes its own counts; points are taken while no other thread works.
unsafe impl Sync for Shape {}

impl Shape {
    /// For so many threads, and points if memory is measured.
    pub fn new(bench: &Bench, threads: usize, points: usize) -> Shape {
        Shape::of(bench.api, threads, points)
    }

    /// The same, of an allocator.
    pub fn of(api: Api, threads: usize, points: usize) -> Shape {
        Shape {
            api,
            points: HeapPoints::new(if retained::is_wanted() { points } else { 0 }),
            counts: HarnessTable::zeroed(threads),
            worst: Cell::new(0.0),
            most_live: Cell::new(0),
        }
    }

    /// The allocator as this thread uses it.
    pub fn thread(&self, index: usize) -> ShapeThread<'_> {
        ShapeThread {
            api: &self.api,
            counts: &self.counts[index].0,
        }
    }

    /// Blocks allocated by all threads so far.
    pub fn blocks(&self) -> u64 {
        self.sum(|counts| &counts.mallocs)
    }

    /// Bytes requested by all threads so far.
    pub fn volume(&self) -> u64 {
        self.sum(|counts| &counts.allocated_bytes)
    }

    /// Requested bytes of all live blocks.
    pub fn live(&self) -> u64 {
        self.volume() - self.sum(|counts| &counts.freed_bytes)
    }

    fn sum(&self, of: fn(&ShapeCounts) -> &Cell<u64>) -> u64 {
        let counts = self.counts.iter();
        counts.map(|Padded(counts)| of(counts).get()).sum()
    }

    /// Takes a point, and returns its resident heap. No other thread may work meanwhile.
    pub fn point(&self) -> u64 {
        let live = self.live();
        self.most_live.set(self.most_live.get().max(live));
        let heap = self.points.take(self.volume(), live);
        if live >= OVERHEAD_FROM_BYTES {
            let overhead = heap as f64 / live as f64;
            self.worst.set(self.worst.get().max(overhead));
        }
        heap
    }

    /// Reports points and work. What is allocated is known to the kernel beforehand, unless it
    /// depends on addresses (`None`); in any case all of it must be freed.
    pub fn account(&self, bench: &Bench, expected: Option<KernelWork>) {
        let done = KernelWork {
            malloc: self.blocks(),
            free: self.sum(|counts| &counts.frees),
            checksum: self.volume() + self.sum(|counts| &counts.freed_bytes),
            ..KernelWork::default()
        };
        let expected = expected.unwrap_or(KernelWork {
            free: done.malloc,
            checksum: 2 * self.volume(),
            ..done
        });
        bench.account(&done, &expected);
        bench.requested_peak(self.most_live.get());
        self.points.tell(bench);
    }

    /// Reports the highest overhead of any point, and what it would be if no byte that was freed
    /// were ever used again; neither of a few blocks.
    pub fn tell_lines(&self, bench: &Bench) {
        if self.points.wanted() && self.most_live.get() >= OVERHEAD_FROM_BYTES {
            bench.figure("worst_overhead", self.worst.get());
            let no_reuse = self.volume() as f64 / self.most_live.get() as f64;
            bench.figure("no_reuse_ratio", no_reuse);
        }
    }
}

/// The moments of an idle time at which memory is read, in milliseconds.
pub fn idle_moments(longest_ms: u64) -> impl Iterator<Item = u64> {
    let earlier = [100, 1000].into_iter().filter(move |ms| *ms < longest_ms);
    earlier.chain([longest_ms])
}

/// The work of blocks that are all freed again.
pub fn freed_again(blocks: u64, bytes: u64) -> KernelWork {
    KernelWork {
        malloc: blocks,
        free: blocks,
        checksum: 2 * bytes,
        ..KernelWork::default()
    }
}

/// The allocator as one thread uses it.
#[derive(Clone, Copy)]
pub struct ShapeThread<'s> {
    api: &'s Api,
    counts: &'s ShapeCounts,
}

impl ShapeThread<'_> {
    /// A touched block with a stamp.
    pub fn allocate(&self, size: usize, stamp: u32) -> StampedBlock {
        let block = self.untouched(size, stamp);
        // SAFETY: just made.
        unsafe { block.write() };
        block
    }

    /// A block that the caller itself touches. It must not be freed by [`ShapeThread::free`].
    pub fn untouched(&self, size: usize, stamp: u32) -> StampedBlock {
        // SAFETY: an ordinary call.
        let address = unsafe { (self.api.malloc)(size) };
        if address.is_null() && size > 0 {
            fail::null("malloc", size);
        }
        add(&self.counts.mallocs, 1);
        add(&self.counts.allocated_bytes, size as u64);
        StampedBlock::at(address, size as u32, stamp)
    }

    /// Frees a block of any thread, which must still have its stamp.
    pub fn free(&self, block: StampedBlock) {
        // SAFETY: live, as the kernel knows.
        if !unsafe { block.is_intact() } {
            let StampedBlock { size, stamp, .. } = block;
            fail::give_up(
                "wrong-result",
                format_args!("block {stamp} of {size} bytes does not hold what was written"),
            );
        }
        self.release(block);
    }

    /// Frees a block without looking at it.
    pub fn release(&self, block: StampedBlock) {
        // SAFETY: live, released once.
        unsafe { (self.api.free)(block.address) };
        add(&self.counts.frees, 1);
        add(&self.counts.freed_bytes, u64::from(block.size));
    }
}

/// A table of blocks that one thread at a time uses.
pub struct Blocks(HarnessTable<Cell<StampedBlock>>);

// SAFETY: one thread at a time uses an entry, as each kernel arranges.
unsafe impl Sync for Blocks {}

impl Blocks {
    /// Room for so many.
    pub fn new(len: usize) -> Blocks {
        Blocks(HarnessTable::zeroed(len))
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

    /// Frees those that are not to be kept; the others keep their order.
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

    /// Frees the block at a place, which the last one takes, and returns its size.
    pub fn swap_free(&mut self, thread: &ShapeThread, place: usize) -> usize {
        let block = self.swap_take(place);
        thread.free(block);
        block.size()
    }

    /// Takes the block at a place out, which the last one takes.
    pub fn swap_take(&mut self, place: usize) -> StampedBlock {
        let block = self.places[place].get();
        self.len -= 1;
        self.places[place].set(self.places[self.len].get());
        block
    }

    /// Frees all.
    pub fn clear(&mut self, thread: &ShapeThread) {
        self.retain(thread, |_, _| false);
    }

    /// Drops all, which others free.
    pub fn forget(&mut self) {
        self.len = 0;
    }
}
