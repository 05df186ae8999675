//! `ladder`: sizes double, and half of the blocks of each earlier size are freed before each step: the cheapest program
//! that defeats reuse across sizes.

use super::shape::BlockList;
use super::*;

pub const KERNEL: Kernel = Kernel::of_memory(
    "ladder",
    &["smallest", "largest", "volume", "pause-ms", "thread"],
    run,
);

/// Maximum number of sizes: from one byte to half of the address space.
const MOST_SIZES: usize = 47;

struct LadderContext {
    shape: Shape,
    blocks: Blocks,
    /// Number of blocks of one thread.
    own: usize,
    smallest: usize,
    sizes: usize,
    volume: usize,
    pause_ms: u64,
    meeting: Rendezvous,
}

fn run(bench: &mut Bench) {
    let (smallest, largest) = (bench.count("smallest").max(1), bench.count("largest"));
    let volume = bench.count("volume");
    let sizes = if largest < smallest {
        0
    } else {
        (largest / smallest).ilog2() as usize + 1
    };
    let sizes = sizes.min(MOST_SIZES);
    let per_thread = (0..sizes).map(|step| volume / (smallest << step)).sum();
    let tables = (bench.threads * per_thread * size_of::<StampedBlock>()) as u64;
    bench.needs(((bench.threads * sizes) as u64).saturating_mul(volume as u64) + tables);
    let context = LadderContext {
        shape: Shape::new(bench, bench.threads, sizes),
        blocks: Blocks::new(bench.threads * per_thread),
        own: per_thread,
        smallest,
        sizes,
        volume,
        pause_ms: bench.number("pause-ms"),
        meeting: Rendezvous::new(bench.threads),
    };
    let blocks = (bench.threads * per_thread) as u64;
    let bytes: u64 = (0..sizes)
        .map(|step| (volume / (smallest << step) * (smallest << step)) as u64)
        .sum();
    let rounds = context
        .shape
        .play(bench, &context, LadderContext::climb, || 2 * blocks);
    let bytes = bytes * bench.threads as u64;
    context
        .shape
        .account(bench, Some(freed_again(rounds * blocks, rounds * bytes)));
    context.shape.tell_worst(bench);
}

impl LadderContext {
    fn climb(&self, worker: usize) {
        let thread = self.shape.thread(worker);
        let mut from = worker * self.own;
        let mut lists: [Option<BlockList>; MOST_SIZES] = [const { None }; MOST_SIZES];
        let mut stamp = 0;
        for step in 0..self.sizes {
            let size = self.smallest << step;
            let mut list = self.blocks.list(from, self.volume / size);
            from += self.volume / size;
            while !list.is_full() {
                list.push(thread.allocate(size, stamp));
                stamp += 1;
            }
            lists[step] = Some(list);
            self.meeting.wait();
            if worker == 0 {
                self.shape.point();
            }
            self.meeting.wait();
            for list in lists.iter_mut().flatten() {
                list.retain(&thread, |place, _| place % 2 == 0);
            }
            // Some allocators return memory to the kernel only after some time: how much must not depend on how fast a
            // step is.
            if self.shape.points.wanted() {
                sys::sleep_ms(self.pause_ms);
            }
        }
        for list in lists.iter_mut().flatten() {
            list.clear(&thread);
        }
    }
}
