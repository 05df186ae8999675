//! One thread of `scatter-loops`: two sequences of loops over its slots.

use super::mailbox::{Batch, Desk};
use super::tables;
use crate::api::Api;
use crate::clock::{now_ns, thread_cpu_ns};
use crate::fail;
use crate::memory::Padded;
use crate::threads::Rendezvous;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};

/// The program as the document describes it asks for no alignment, 8 and 16 in turn below this size.
const ALIGNED_BELOW: u32 = 4096;
/// Where the next thread's first size is, in entries of the size table.
const SIZE_STEP: usize = 37;

/// What all threads of a generation share.
pub struct Shared<'a> {
    pub api: Api,
    /// The program's state of 2017, which the document describes.
    pub legacy: bool,
    pub threads: usize,
    pub blocks: usize,
    pub loops: u64,
    /// A batch is handed over in every loop that this divides; 0 = never.
    pub cross_rate: u64,
    /// A sequence that has taken longer ends.
    pub cap_ns: u64,
    pub sizes: &'a [u32],
    pub fill_sizes: &'a [u32],
    pub allocations: &'a [u64],
    pub frees: &'a [u64],
    /// The main thread is one more than the workers.
    pub meeting: Rendezvous,
    /// Sequences that threads have ended.
    pub ended: AtomicU64,
    pub desks: &'a [Padded<Desk>],
    pub rooms: &'a [Padded<Cell<Room>>],
    pub tallies: &'a [Padded<Cell<Tally>>],
}

// SAFETY: each worker uses its own room and tally, the main thread looks at them while the workers wait; desks are atomic.
unsafe impl Sync for Shared<'_> {}

impl Shared<'_> {
    /// Requested bytes of all live blocks, as far as the threads have told.
    pub fn live_bytes(&self) -> u64 {
        let told = |Padded(desk): &Padded<Desk>| {
            desk.kept_bytes.load(Ordering::Relaxed).wrapping_sub(desk.freed_bytes.load(Ordering::Relaxed)) as i64
        };
        self.desks.iter().map(told).sum::<i64>().max(0) as u64
    }
}

/// Memory of the harness for one thread.
#[derive(Clone, Copy)]
pub struct Room {
    /// For each slot the size of its block plus 1, or 0 where it is empty. Blocks of some allocators (the null one) overlap,
    /// so neither blocks nor the slot array can be asked.
    pub held: *mut u32,
    /// Records for batches that are on their way.
    pub batches: *mut Batch,
}

/// What one thread has done in a generation.
#[derive(Clone, Copy, Default)]
pub struct Tally {
    /// Calls of all functions that allocate; `aligned` of them are posix_memalign.
    pub allocations: u64,
    pub aligned: u64,
    pub frees: u64,
    /// Slots passed in steps 4 and 6.
    pub free_steps: u64,
    pub allocation_steps: u64,
    /// Allocations for batches and, in the legacy state, into slots that were still empty.
    pub beyond_steps: u64,
    /// Blocks freed at the ends of sequences.
    pub released: u64,
    pub batches: u64,
    pub aborted: u64,
    /// Monotonic time between the start and the stop of the thread's clock.
    pub clock_ns: u64,
    /// CPU time of the same stretches.
    pub cpu_ns: u64,
    /// Highest sum of the live bytes of all threads that this one has seen.
    pub peak_bytes: u64,
}

/// What a walk over slots has freed.
#[derive(Clone, Copy, Default)]
struct Freed {
    blocks: u64,
    bytes: u64,
}

struct Worker<'a> {
    shared: &'a Shared<'a>,
    index: usize,
    tally: Tally,
    /// Allocated so far and not freed by this thread; what others have freed stands on its desk.
    kept_bytes: u64,
    until_look: usize,
    slots: *mut *mut u8,
    held: &'a mut [u32],
    batches: *mut Batch,
    /// Records that have come back.
    stock: *mut Batch,
    fresh_batches: usize,
    target: usize,
    free_at: usize,
    free_stride: usize,
    allocate_at: usize,
    allocate_stride: usize,
    size_at: usize,
    alignment_turn: u8,
}

/// The body of a worker thread.
pub fn run(shared: &Shared, index: usize) {
    let Padded(room) = &shared.rooms[index];
    let (allocate_stride, free_stride) = tables::strides(shared.blocks);
    let mut worker = Worker {
        shared,
        index,
        tally: Tally::default(),
        kept_bytes: 0,
        until_look: 1,
        slots: ptr::null_mut(),
        // SAFETY: `blocks` entries that are this worker's alone.
        held: unsafe { core::slice::from_raw_parts_mut(room.get().held, shared.blocks) },
        batches: room.get().batches,
        stock: ptr::null_mut(),
        fresh_batches: 0,
        target: index,
        free_at: 0,
        free_stride: free_stride % shared.blocks,
        allocate_at: 0,
        allocate_stride: allocate_stride % shared.blocks,
        size_at: 0,
        alignment_turn: 0,
    };
    worker.slots = malloc(&shared.api, shared.blocks * size_of::<*mut u8>()).cast();
    worker.tally.allocations += 1;
    // SAFETY: freshly allocated for that many pointers.
    unsafe { worker.slots.write_bytes(0, shared.blocks) };
    shared.meeting.wait();
    shared.meeting.wait();
    for sequence in 0..2 {
        worker.sequence(sequence);
    }
    worker.drain();
    // SAFETY: the slot array is live, and nothing is left in it.
    unsafe { (shared.api.free)(worker.slots.cast()) };
    worker.tally.frees += 1;
    shared.tallies[index].0.set(worker.tally);
}

impl Worker<'_> {
    fn sequence(&mut self, sequence: usize) {
        let shared = self.shared;
        // The reference reads two entries ahead.
        self.size_at = ((self.index + 1) * (sequence + 1) * SIZE_STEP + 2) % tables::SIZES;
        let cpu_ns = thread_cpu_ns();
        let spent_ns = self.loops(sequence);
        self.tally.clock_ns += spent_ns;
        self.tally.cpu_ns += thread_cpu_ns() - cpu_ns;
        if shared.legacy {
            self.timed(|worker| worker.fill());
        }
        self.publish();
        // Only now may the others stop handing blocks over; what is under way is freed once all have ended.
        shared.ended.fetch_add(1, Ordering::AcqRel);
        self.drain();
        shared.meeting.wait();
        self.drain();
        shared.meeting.wait();
        shared.meeting.wait();
        self.timed(|worker| worker.release());
    }

    /// All loops of a sequence; returns the time on the thread's clock.
    fn loops(&mut self, sequence: usize) -> u64 {
        let shared = self.shared;
        let ended_before = (sequence * shared.threads) as u64;
        let mut spent_ns = 0;
        let (mut frees, mut allocations) = (sequence % tables::FREES, sequence % tables::ALLOCATIONS);
        for number in 0..shared.loops {
            let received = shared.desks[self.index].0.received.take();
            let start = now_ns();
            self.free_some(shared.frees[frees]);
            self.free_batches(received);
            self.replace_some(shared.allocations[allocations]);
            let hands_over = shared.cross_rate > 0
                && number % shared.cross_rate == 0
                && shared.ended.load(Ordering::Relaxed) == ended_before;
            let batch = if hands_over { self.pack(shared.allocations[allocations]) } else { ptr::null_mut() };
            spent_ns += now_ns() - start;
            self.publish();
            if !batch.is_null() {
                self.send(batch);
            }
            frees = if frees + 1 == tables::FREES { 0 } else { frees + 1 };
            allocations = if allocations + 1 == tables::ALLOCATIONS { 0 } else { allocations + 1 };
            if spent_ns > shared.cap_ns && number + 1 < shared.loops {
                self.tally.aborted += 1;
                break;
            }
        }
        spent_ns
    }

    /// Step 4: walks over slots and empties those that are occupied.
    fn free_some(&mut self, steps: u64) {
        let (mut at, mut freed) = (self.free_at, Freed::default());
        for _ in 0..steps {
            self.empty(at, &mut freed);
            at = advance(at, self.free_stride, self.shared.blocks);
        }
        self.free_at = at;
        self.tally.free_steps += steps;
        self.note(freed);
    }

    /// Step 5: frees what others have sent, block by block, then array and header.
    fn free_batches(&mut self, mut batch: *mut Batch) {
        let free = self.shared.api.free;
        while !batch.is_null() {
            // SAFETY: a record that was pushed for this thread and taken once.
            let Batch { next, header, pointers, count, bytes, producer } = unsafe { *batch };
            for entry in 0..count as usize {
                // SAFETY: within the array, which holds live blocks.
                unsafe { free(*pointers.add(entry)) };
            }
            // SAFETY: live blocks.
            unsafe {
                free(pointers.cast());
                free(header);
            }
            self.tally.frees += count + 2;
            let desk = &self.shared.desks[producer].0;
            desk.freed_bytes.fetch_add(bytes, Ordering::Relaxed);
            // SAFETY: this thread is done with the record.
            unsafe { desk.spent.push(batch) };
            batch = next;
        }
    }

    /// Step 6: walks over slots and puts a new block into each.
    fn replace_some(&mut self, steps: u64) {
        let (mut at, mut size_at, mut bytes, mut freed) = (self.allocate_at, self.size_at, 0, Freed::default());
        for _ in 0..steps {
            self.empty(at, &mut freed);
            let size = self.shared.sizes[size_at];
            self.put(at, size);
            bytes += u64::from(size);
            size_at = advance(size_at, 1, tables::SIZES);
            at = advance(at, self.allocate_stride, self.shared.blocks);
        }
        (self.allocate_at, self.size_at) = (at, size_at);
        self.kept_bytes += bytes;
        self.tally.allocations += steps;
        self.tally.allocation_steps += steps;
        self.note(freed);
    }

    /// Step 7: a batch of new blocks for another thread.
    fn pack(&mut self, allocations: u64) -> *mut Batch {
        let count = if self.shared.legacy { allocations } else { allocations / 4 };
        let batch = self.record();
        let array_bytes = count as usize * size_of::<*mut u8>();
        let header = malloc(&self.shared.api, size_of::<Batch>());
        let pointers: *mut *mut u8 = malloc(&self.shared.api, array_bytes).cast();
        let mut bytes = (size_of::<Batch>() + array_bytes) as u64;
        for entry in 0..count as usize {
            let size = self.shared.sizes[self.size_at];
            self.size_at = advance(self.size_at, 1, tables::SIZES);
            let block = self.block(size);
            bytes += u64::from(size);
            // SAFETY: within the array.
            unsafe { pointers.add(entry).write_volatile(block) };
        }
        let filled = Batch { next: ptr::null_mut(), header, pointers, count, bytes, producer: self.index };
        // SAFETY: the header has room for a record, and the record is this thread's until it is sent.
        unsafe {
            header.cast::<Batch>().write_volatile(filled);
            *batch = filled;
        }
        self.kept_bytes += bytes;
        self.tally.allocations += count + 2;
        self.tally.beyond_steps += count + 2;
        self.tally.batches += 1;
        batch
    }

    /// Step 9: to the next thread in turn.
    fn send(&mut self, batch: *mut Batch) {
        self.target = advance(self.target, 1, self.shared.threads);
        if self.target == self.index {
            self.target = advance(self.target, 1, self.shared.threads);
        }
        // SAFETY: this thread's batch, which it does not touch any more.
        unsafe { self.shared.desks[self.target].0.received.push(batch) };
    }

    /// A record that is not under way: one that has come back, or a fresh one.
    fn record(&mut self) -> *mut Batch {
        if self.stock.is_null() {
            self.stock = self.shared.desks[self.index].0.spent.take();
        }
        if self.stock.is_null() {
            self.fresh_batches += 1;
            // SAFETY: there is a record for each batch of a sequence, and records come back before the next one.
            return unsafe { self.batches.add(self.fresh_batches - 1) };
        }
        let batch = self.stock;
        // SAFETY: records in stock are this thread's.
        self.stock = unsafe { (*batch).next };
        batch
    }

    /// The legacy state fills every empty slot before memory is sampled.
    fn fill(&mut self) {
        for slot in 0..self.shared.blocks {
            if self.held[slot] == 0 {
                let size = self.shared.fill_sizes[self.size_at];
                self.size_at = advance(self.size_at, 1, tables::SIZES);
                self.put(slot, size);
                self.kept_bytes += u64::from(size);
                self.tally.allocations += 1;
                self.tally.beyond_steps += 1;
            }
        }
    }

    /// Every occupied slot is freed.
    fn release(&mut self) {
        let mut freed = Freed::default();
        (0..self.shared.blocks).for_each(|slot| self.empty(slot, &mut freed));
        self.tally.released += freed.blocks;
        self.note(freed);
    }

    fn drain(&mut self) {
        let received = self.shared.desks[self.index].0.received.take();
        if !received.is_null() {
            self.timed(|worker| worker.free_batches(received));
        }
    }

    fn timed(&mut self, work: impl FnOnce(&mut Self)) {
        let (cpu_ns, start) = (thread_cpu_ns(), now_ns());
        work(self);
        self.tally.clock_ns += now_ns() - start;
        self.tally.cpu_ns += thread_cpu_ns() - cpu_ns;
    }

    fn note(&mut self, freed: Freed) {
        self.kept_bytes -= freed.bytes;
        self.tally.frees += freed.blocks;
    }

    /// Step 8: lets the others see this thread's live bytes. Each thread sums up all of them in every loop that is due among
    /// `threads`, so that the effort does not grow with their number.
    fn publish(&mut self) {
        self.shared.desks[self.index].0.kept_bytes.store(self.kept_bytes, Ordering::Relaxed);
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = self.shared.threads;
            self.tally.peak_bytes = self.tally.peak_bytes.max(self.shared.live_bytes());
        }
    }

    #[inline(always)]
    fn empty(&mut self, slot: usize, freed: &mut Freed) {
        let held = core::mem::take(&mut self.held[slot]);
        if held != 0 {
            // SAFETY: the slot's own entry.
            let block = unsafe { self.slots.add(slot).replace(ptr::null_mut()) };
            // SAFETY: the block that was put there.
            unsafe { (self.shared.api.free)(block) };
            freed.blocks += 1;
            freed.bytes += u64::from(held - 1);
        }
    }

    #[inline(always)]
    fn put(&mut self, slot: usize, size: u32) {
        let block = self.block(size);
        // SAFETY: the slot's own entry.
        unsafe { *self.slots.add(slot) = block };
        self.held[slot] = size + 1;
    }

    /// A new block, touched: its size in front, a byte on every further page, and the last byte.
    #[inline(always)]
    fn block(&mut self, size: u32) -> *mut u8 {
        let block = if self.shared.legacy && size < ALIGNED_BELOW {
            self.aligned(size as usize)
        } else {
            malloc(&self.shared.api, size as usize)
        };
        // SAFETY: all within the block.
        unsafe {
            if size >= 4 {
                block.cast::<u32>().write_volatile(size);
            }
            // Not `step_by`: for the many blocks below a page its set-up takes longer than the rest.
            let mut offset = 4096;
            while offset < size as usize {
                block.add(offset).write_volatile(1);
                offset += 4096;
            }
            if size > 0 {
                block.add(size as usize - 1).write_volatile(1);
            }
        }
        block
    }

    /// As the legacy state asks for small blocks: without alignment, aligned to 8 bytes, to 16 bytes, and again.
    fn aligned(&mut self, size: usize) -> *mut u8 {
        let turn = self.alignment_turn;
        self.alignment_turn = if turn == 2 { 0 } else { turn + 1 };
        if turn == 0 {
            return malloc(&self.shared.api, size);
        }
        self.tally.aligned += 1;
        let mut block = ptr::null_mut();
        // SAFETY: an ordinary call.
        let error = unsafe { (self.shared.api.posix_memalign)(&mut block, 8 * usize::from(turn), size) };
        if error != 0 || (block.is_null() && size > 0) {
            fail::null("posix_memalign", size);
        }
        block
    }
}

#[inline(always)]
fn malloc(api: &Api, size: usize) -> *mut u8 {
    // SAFETY: an ordinary call.
    let block = unsafe { (api.malloc)(size) };
    if block.is_null() && size > 0 {
        fail::null("malloc", size);
    }
    block
}

/// The next position of a walk that starts again at the end; `stride` must be below `end`, or `end` be 1.
#[inline(always)]
fn advance(at: usize, stride: usize, end: usize) -> usize {
    let next = at + stride;
    if next >= end { next - end } else { next }
}
