//! Ages a heap before a workload: fills it, replaces blocks for a while, some of which are freed by
//! other threads, and frees a part of the blocks in random order.

use crate::memory::{HarnessTable, Padded};
use crate::rng::SplitMix;
use crate::shape_blocks::{BlockList, Blocks, ShapeThread, StampedBlock};
use crate::sizes::Sizes;
use crate::threads::Rendezvous;
use core::cell::Cell;
use core::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};

/// How often the volume is replaced.
const TURNOVERS: u64 = 3;
/// One block in this many is freed by another thread, a batch at a time.
const HANDED_OVER: u32 = 5;
const BATCH: usize = 64;

/// The blocks of all threads that age a heap.
pub struct Litter {
    /// Bytes of each thread's blocks before any are freed; 0 leaves the heap fresh.
    volume: u64,
    /// Number of blocks for which each thread has room.
    room: usize,
    /// How many of every 100 blocks stay.
    stay: usize,
    seed: u64,
    blocks: Blocks,
    /// Batches to be handed to another thread, and batches that have come from another thread.
    outgoing: Blocks,
    incoming: Blocks,
    has_come: HarnessTable<Padded<AtomicBool>>,
    /// Bytes of each thread's blocks when the heap was full.
    filled: HarnessTable<Padded<Cell<u64>>>,
    /// How many blocks of each thread have stayed.
    stayed: HarnessTable<Padded<Cell<usize>>>,
    meeting: Rendezvous,
}

impl Litter {
    /// Litter for this many threads; if no block is to stay, the heap is left fresh.
    pub fn new(threads: usize, volume: u64, stay: usize, sizes: &Sizes, seed: u64) -> Litter {
        let volume = if stay == 0 {
            0
        } else {
            volume / threads as u64
        };
        // Room for a few more blocks than on average; even so, some of the last blocks may be
        // missing.
        let room = (volume as f64 / sizes.mean().max(1.0) * 1.05) as usize + 1;
        Litter {
            volume,
            room,
            stay: stay.min(100),
            seed,
            blocks: Blocks::new(threads * room),
            outgoing: Blocks::new(threads * BATCH),
            incoming: Blocks::new(threads * BATCH),
            has_come: HarnessTable::zeroed(threads),
            filled: HarnessTable::zeroed(threads),
            stayed: HarnessTable::zeroed(threads),
            meeting: Rendezvous::new(threads),
        }
    }

    /// Bytes of the litter's tables, for this many bytes of blocks.
    pub fn table_bytes(volume: u64, sizes: &Sizes) -> u64 {
        let blocks = volume as f64 / sizes.mean().max(1.0);
        (1.05 * blocks * size_of::<StampedBlock>() as f64) as u64
    }

    /// Does one thread's part of the littering; all threads do their parts at once.
    pub fn scatter(&self, worker: usize, thread: &ShapeThread, sizes: &Sizes) {
        let mut blocks = self.blocks.list(worker * self.room, self.room);
        let mut outgoing = self.outgoing.list(worker * BATCH, BATCH);
        let mut random = SplitMix::new(self.seed, worker as u64 | 1 << 32);
        let allocate = |random: &mut SplitMix| {
            let size = sizes.draw(random).max(1) as usize;
            thread.allocate(size, random.next() as u32)
        };
        let mut volume = 0;
        while volume < self.volume && !blocks.is_full() {
            let block = allocate(&mut random);
            volume += block.size() as u64;
            blocks.push(block);
        }
        self.filled[worker].set(volume);
        let mut replaced = 0;
        while replaced < TURNOVERS * volume {
            let place = random.below(blocks.len() as u32) as usize;
            let others = self.has_come.len() > 1 && random.below(HANDED_OVER) == 0;
            if others {
                outgoing.push(blocks.swap_take(place));
                if outgoing.is_full() {
                    self.hand_over(worker, thread, &mut outgoing);
                }
            } else {
                blocks.swap_free(thread, place);
            }
            self.free_incoming(worker, thread);
            let block = allocate(&mut random);
            replaced += block.size() as u64;
            blocks.push(block);
        }
        outgoing.clear(thread);
        self.meeting.wait();
        self.free_incoming(worker, thread);
        let stay = blocks.len() * self.stay / 100;
        while blocks.len() > stay {
            let place = random.below(blocks.len() as u32) as usize;
            blocks.swap_free(thread, place);
        }
        self.stayed[worker].set(stay);
    }

    /// Bytes of all threads' blocks before any were freed.
    pub fn full_bytes(&self) -> u64 {
        self.filled.iter().map(|bytes| bytes.get()).sum()
    }

    /// Waits until all threads have littered; returns whether this is the first thread.
    pub fn is_first_after_all(&self, worker: usize) -> bool {
        self.meeting.wait();
        worker == 0
    }

    /// Frees those blocks of a thread that have stayed.
    pub fn sweep(&self, worker: usize, thread: &ShapeThread) {
        let blocks = &self.blocks.all()[worker * self.room..];
        let stayed = &blocks[..self.stayed[worker].replace(0)];
        stayed.iter().for_each(|block| thread.free(block.get()));
    }

    /// Hands a batch to the next thread, or frees the batch if that thread has not freed the last
    /// one yet.
    fn hand_over(&self, worker: usize, thread: &ShapeThread, batch: &mut BlockList) {
        let next = (worker + 1) % self.has_come.len();
        let has_come = &self.has_come[next];
        if has_come.load(Acquire) {
            batch.clear(thread);
            return;
        }
        let places = &self.incoming.all()[next * BATCH..][..BATCH];
        for (place, block) in places.iter().zip(batch.iter()) {
            place.set(block);
        }
        batch.forget();
        has_come.store(true, Release);
    }

    fn free_incoming(&self, worker: usize, thread: &ShapeThread) {
        let has_come = &self.has_come[worker];
        if has_come.load(Acquire) {
            let places = &self.incoming.all()[worker * BATCH..][..BATCH];
            places.iter().for_each(|place| thread.free(place.get()));
            has_come.store(false, Release);
        }
    }
}
