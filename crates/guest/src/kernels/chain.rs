//! `chain`: each thread frees what the thread before it allocated, allocates the same amount, hands
//! it on and sleeps: what do idle threads keep?

use super::*;

pub const KERNEL: Kernel = Kernel::of_memory("chain", &["links", "blocks", "classes"], run);

struct ChainContext {
    shape: Shape,
    blocks: Blocks,
    sizes: HarnessTable<u32>,
    turns: HarnessTable<Semaphore>,
    /// Posted by the last link, so that all threads may end.
    end: Semaphore,
    /// Resident heap after the first link, and after the last one.
    heap_bytes: InTurn<[Cell<u64>; 2]>,
}

fn run(bench: &mut Bench) {
    let (links, count) = (bench.threads, bench.count("blocks"));
    let sizes = bench.sizes().table(1, count, bench.seed, 0);
    let bytes = sum(&sizes);
    // Each thread may keep a whole set of blocks: with mimalloc2 it keeps 1.4 times the bytes.
    let kept = 2 * bytes * (links as u64 + 1);
    bench.needs(kept + (count * size_of::<StampedBlock>()) as u64);
    let context = ChainContext {
        shape: Shape::new(bench, links + 1, links + 1),
        blocks: Blocks::new(count),
        sizes,
        turns: HarnessTable::zeroed(links),
        end: Semaphore::default(),
        heap_bytes: Default::default(),
    };
    let main = context.shape.thread(links);
    let mut rounds = 0;
    bench.begin();
    for round in bench.rounds() {
        context.shape.points.begin();
        context.turns[0].post();
        let began = bench.play(round, &context, ChainContext::link);
        // All threads have ended, and one set of blocks is live.
        context.shape.point();
        context
            .blocks
            .all()
            .iter()
            .for_each(|block| main.free(block.get()));
        bench.record(round, began.elapsed(), 2 * (links * count) as u64);
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

impl ChainContext {
    fn link(&self, link: usize) {
        self.turns[link].wait();
        let thread = self.shape.thread(link);
        if link > 0 {
            self.blocks
                .all()
                .iter()
                .for_each(|block| thread.free(block.get()));
        }
        for (place, (block, &size)) in self.blocks.all().iter().zip(self.sizes.iter()).enumerate() {
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
