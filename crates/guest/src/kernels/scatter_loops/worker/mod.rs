//! One thread of `scatter-loops`: two sequences of loops over its slots.

mod batches;
mod walk;

use super::*;
pub use walk::MARK_BYTES;

use super::mailbox::{Batch, Desk};
use crate::clock::thread_cpu_ns;

/// Distance between the threads' first sizes, in entries of the size table.
const SIZE_STEP: usize = 37;

/// State shared by all threads of a generation.
pub struct ScatterContext<'a> {
    pub api: Api,
    /// Whether this is the program's version of 2017, which the document describes.
    pub legacy: bool,
    pub threads: usize,
    pub blocks: usize,
    pub loops: u64,
    /// A batch is handed over in every loop whose number is divisible by this; 0 if never.
    pub cross_rate: u64,
    /// A sequence that has taken longer than this ends.
    pub cap_ns: u64,
    /// Whether each block is large enough to store its size at its front.
    pub marked: bool,
    pub sizes: &'a [u32],
    pub fill_sizes: &'a [u32],
    pub allocations: &'a [u64],
    pub frees: &'a [u64],
    /// The meeting of all workers and the main thread.
    pub meeting: Rendezvous,
    /// Number of sequences that threads have ended.
    pub ended: AtomicU64,
    pub desks: &'a HarnessTable<Padded<Desk>>,
    pub rooms: &'a HarnessTable<Padded<Cell<Room>>>,
    pub tallies: &'a HarnessTable<Padded<Cell<ScatterCounts>>>,
}

impl ScatterContext<'_> {
    /// Returns the requested bytes of all live blocks, as last published by the threads.
    pub fn live_bytes(&self) -> u64 {
        let desk_bytes = |desk: &Padded<Desk>| {
            desk.kept_bytes
                .load(Relaxed)
                .wrapping_sub(desk.freed_bytes.load(Relaxed)) as i64
        };
        self.desks.iter().map(desk_bytes).sum::<i64>().max(0) as u64
    }
}

/// Memory of the harness for one thread.
#[derive(Clone, Copy)]
pub struct Room {
    /// For each slot, the size of its block plus 1, or 0 if the slot is empty; the size stored in a
    /// block is checked against this.
    pub held: *mut u32,
    /// Records of batches that are under way.
    pub batches: *mut Batch,
    /// Holds the pointers if the allocator's own blocks overlap (the null allocator): the slots,
    /// and `most_in_batch` for each record. Null for all other allocators.
    pub slots_aside: *mut *mut u8,
    pub batches_aside: *mut *mut u8,
    pub most_in_batch: usize,
}

/// The work of one thread in a generation.
#[derive(Clone, Copy, Default)]
pub struct ScatterCounts {
    /// Calls to all functions that allocate, including the `aligned` calls to posix_memalign.
    pub allocations: u64,
    pub aligned: u64,
    pub frees: u64,
    /// Number of slots passed in step 4, and of those passed in step 6.
    pub free_steps: u64,
    pub allocation_steps: u64,
    /// Allocations for batches and, in the legacy version, into slots that were still empty.
    pub beyond_steps: u64,
    /// Blocks freed at the ends of sequences.
    pub released: u64,
    pub batches: u64,
    pub aborted: u64,
    /// Monotonic time between the start and the stop of the thread's clock.
    pub clock_ns: u64,
    /// CPU time over the same stretches of time.
    pub cpu_ns: u64,
    /// Highest sum of the live bytes of all threads that this thread has read.
    pub peak_bytes: u64,
}

struct ScatterWorker<'a> {
    shared: &'a ScatterContext<'a>,
    index: usize,
    tally: ScatterCounts,
    /// Bytes allocated so far and not freed by this thread. Bytes that other threads have freed are
    /// counted on this thread's desk.
    kept_bytes: u64,
    until_look: usize,
    /// Whether blocks keep what was written to them; false if blocks overlap.
    holds: bool,
    slots: *mut *mut u8,
    held: &'a mut [u32],
    room: Room,
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

/// Runs as the body of a worker thread.
pub fn run(shared: &ScatterContext, index: usize) {
    let room = shared.rooms[index].get();
    let (allocate_stride, free_stride) = tables::strides(shared.blocks);
    let mut worker = ScatterWorker {
        shared,
        index,
        tally: ScatterCounts::default(),
        kept_bytes: 0,
        until_look: 1,
        holds: room.slots_aside.is_null(),
        slots: ptr::null_mut(),
        // SAFETY: `blocks` entries that are this worker's alone.
        held: unsafe { core::slice::from_raw_parts_mut(room.held, shared.blocks) },
        room,
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
    worker.slots = shared
        .api
        .allocate(shared.blocks * size_of::<*mut u8>())
        .cast();
    worker.tally.allocations += 1;
    // SAFETY: freshly allocated for that many pointers.
    unsafe { worker.slots.write_bytes(0, shared.blocks) };
    if !worker.holds {
        // The null allocator's free reads nothing, so the array that it returned need not be
        // remembered.
        worker.slots = room.slots_aside;
    }
    shared.meeting.wait();
    shared.meeting.wait();
    for sequence in 0..2 {
        worker.sequence(sequence);
    }
    worker.drain();
    // SAFETY: the slot array is live, and nothing is left in it.
    unsafe { (shared.api.free)(worker.slots.cast()) };
    worker.tally.frees += 1;
    shared.tallies[index].set(worker.tally);
}

impl ScatterWorker<'_> {
    fn sequence(&mut self, sequence: usize) {
        let shared = self.shared;
        // The reference program reads two entries ahead.
        self.size_at = ((self.index + 1) * (sequence + 1) * SIZE_STEP + 2) % tables::SIZES;
        let cpu_ns = thread_cpu_ns();
        let spent_ns = self.loops(sequence);
        self.tally.clock_ns += spent_ns;
        self.tally.cpu_ns += thread_cpu_ns() - cpu_ns;
        if shared.legacy {
            self.timed(|worker| worker.fill());
        }
        self.publish();
        // Only now may the other threads stop handing over blocks; blocks under way are freed once
        // all threads have ended.
        shared.ended.fetch_add(1, AcqRel);
        self.drain();
        shared.meeting.wait();
        self.drain();
        shared.meeting.wait();
        shared.meeting.wait();
        self.timed(|worker| worker.release());
    }

    /// Runs all loops of a sequence and returns the time on the thread's clock.
    fn loops(&mut self, sequence: usize) -> u64 {
        let shared = self.shared;
        let ended_before = (sequence * shared.threads) as u64;
        let mut spent_ns = 0;
        let (mut frees, mut allocations) =
            (sequence % tables::FREES, sequence % tables::ALLOCATIONS);
        for number in 0..shared.loops {
            let received = shared.desks[self.index].received.take();
            let start = now_ns();
            self.free_some(shared.frees[frees]);
            self.free_batches(received);
            self.replace_some(shared.allocations[allocations]);
            let hands_over = shared.cross_rate > 0
                && number % shared.cross_rate == 0
                && shared.ended.load(Relaxed) == ended_before;
            let batch = if hands_over {
                self.pack(shared.allocations[allocations])
            } else {
                ptr::null_mut()
            };
            spent_ns += now_ns() - start;
            self.publish();
            if !batch.is_null() {
                self.send(batch);
            }
            frees = if frees + 1 == tables::FREES {
                0
            } else {
                frees + 1
            };
            allocations = if allocations + 1 == tables::ALLOCATIONS {
                0
            } else {
                allocations + 1
            };
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

    /// Step 8: publishes this thread's live bytes. Each thread sums up the live bytes of all
    /// threads once per `threads` loops, so that the cost does not grow with the number of threads.
    fn publish(&mut self) {
        self.shared.desks[self.index]
            .kept_bytes
            .store(self.kept_bytes, Relaxed);
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = self.shared.threads;
            self.tally.peak_bytes = self.tally.peak_bytes.max(self.shared.live_bytes());
        }
    }
}

/// Reads the size at the front of a block, as the program does just before each free. The read
/// misses the caches if the live blocks exceed them, under every allocator.
///
/// # Safety
/// The block must be large enough for a size.
#[inline(always)]
unsafe fn size_in(block: *mut u8) -> u32 {
    // SAFETY: as the caller guarantees; malloc's blocks are aligned for it.
    unsafe { block.cast::<u32>().read_volatile() }
}

/// Ends the process because the sizes at the front of live blocks are not the sizes that were
/// written.
#[cold]
#[inline(never)]
fn lost_its_size(of: impl core::fmt::Display) -> ! {
    fail!(
        "wrong-result",
        "{of} changed: blocks overlap or are written to"
    )
}

/// Returns the next position of a walk that restarts at the end. `stride` must be below `end`, or
/// `end` must be 1.
#[inline(always)]
fn advance(at: usize, stride: usize, end: usize) -> usize {
    let next = at + stride;
    if next >= end { next - end } else { next }
}
