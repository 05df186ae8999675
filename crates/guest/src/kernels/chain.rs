//! `chain`: each thread frees what the one before it allocated, allocates the same amount, hands it
//! on and sleeps: what do idle threads keep?

use super::shape::{Blocks, Shape, StampedBlock, freed_again};
use super::{Kernel, MemoryPoints};
use crate::bench::Bench;
use crate::memory::HarnessTable;
use crate::rng::SplitMix;
use crate::sizes::Sizes;
use crate::threads::Semaphore;
use core::cell::Cell;

pub const KERNEL: Kernel = Kernel {
    name: "chain",
    calls: &["malloc", "free"],
    parameters: &["links", "blocks", "classes"],
    memory: MemoryPoints::OwnOnly,
    has_floor: false,
    run,
};

struct ChainContext<'a> {
    shape: Shape,
    blocks: Blocks,
    sizes: &'a [u32],
    turns: &'a [Semaphore],
    /// Posted by the last link; then all may end.
    end: Semaphore,
    /// Resident heap after the first link, and after the last one.
    heap_bytes: [Cell<u64>; 2],
}

// SAFETY: one thread at a time works; the semaphores order them.
unsafe impl Sync for ChainContext<'_> {}

fn run(bench: &mut Bench) {
    let (links, count) = (bench.threads, bench.count("blocks"));
    let sizes = Sizes::parse(bench.parameter("classes"));
    let mut drawn = HarnessTable::<u32>::zeroed(count);
    let mut random = SplitMix::new(bench.seed, 0);
    drawn
        .iter_mut()
        .for_each(|size| *size = sizes.draw(&mut random));
    let bytes: u64 = drawn.iter().map(|&size| u64::from(size)).sum();
    // Each thread may keep a set: with mimalloc2 it keeps 1.4 times the bytes.
    let kept = 2 * bytes * (links as u64 + 1);
    bench.needs(kept + (count * size_of::<StampedBlock>()) as u64);
    let turns = HarnessTable::<Semaphore>::zeroed(links);
    let context = ChainContext {
        shape: Shape::new(bench, links + 1, links + 1),
        blocks: Blocks::new(count),
        sizes: &drawn,
        turns: &turns,
        end: Semaphore::default(),
        heap_bytes: Default::default(),
    };
    let main = context.shape.thread(links);
    let mut rounds = 0;
    bench.begin();
    for round in bench.rounds() {
        context.shape.points.begin();
        turns[0].post();
        let team = bench.gather(&context, |context, link| context.link(link));
        let began = team.release();
        bench.join(round, team, &began);
        // All threads have ended, and one set is live.
        context.shape.point();
        context
            .blocks
            .all()
            .iter()
            .for_each(|block| main.free(block.get()));
        bench.record(round, began.elapsed(), 0, 2 * (links * count) as u64);
        rounds += links as u64;
    }
    context.shape.account(
        bench,
        Some(freed_again(rounds * count as u64, rounds * bytes)),
    );
    context.shape.tell_worst(bench);
    if context.shape.points.wanted() && links > 1 {
        let [first, last] = [0, 1].map(|place| context.heap_bytes[place].get() as f64);
        bench.figure("bytes_per_idle_thread", (last - first) / (links - 1) as f64);
    }
}

impl ChainContext<'_> {
    fn link(&self, link: usize) {
        self.turns[link].wait();
        let thread = self.shape.thread(link);
        if link > 0 {
            self.blocks
                .all()
                .iter()
                .for_each(|block| thread.free(block.get()));
        }
        for (place, (block, &size)) in self.blocks.all().iter().zip(self.sizes).enumerate() {
            block.set(thread.allocate(size as usize, place as u32));
        }
        let heap = self.shape.point();
        if link == 0 {
            self.heap_bytes[0].set(heap);
        }
        self.heap_bytes[1].set(heap);
        match self.turns.get(link + 1) {
            Some(next) => next.post(),
            None => self.turns.iter().for_each(|_| self.end.post()),
        }
        self.end.wait();
    }
}
