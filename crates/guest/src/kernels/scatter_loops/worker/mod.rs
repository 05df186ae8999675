//! One thread of `scatter-loops`: two sequences of loops over its slots.

mod batches;
mod walk;

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

    fn timed(&mut self, work: impl FnOnce(&mut Self)) {
        let (cpu_ns, start) = (thread_cpu_ns(), now_ns());
        work(self);
        self.tally.clock_ns += now_ns() - start;
        self.tally.cpu_ns += thread_cpu_ns() - cpu_ns;
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
}

/// The next position of a walk that starts again at the end; `stride` must be below `end`, or `end` be 1.
#[inline(always)]
fn advance(at: usize, stride: usize, end: usize) -> usize {
    let next = at + stride;
    if next >= end { next - end } else { next }
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
