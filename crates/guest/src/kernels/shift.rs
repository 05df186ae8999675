//! `shift`: a long-lived process whose request sizes drift up and down: does the memory of sizes
//! that are no longer requested come back?

use super::*;

pub const KERNEL: Kernel = Kernel::of_memory(
    "shift",
    &["live", "octaves", "cycles", "turnover", "thread"],
    run,
);

/// Smallest size of the lowest octave, in bytes; the largest is its double.
const LOWEST: usize = 16;

struct ShiftContext {
    shape: Shape,
    blocks: Blocks,
    /// Limit of the live bytes of each thread.
    live: u64,
    octaves: u32,
    cycles: u32,
    turnover: u64,
    seed: u64,
    meeting: Rendezvous,
    /// Bytes of the resident heap at the end of the last cycle, and of the cycle before it.
    ends: InTurn<[Cell<u64>; 2]>,
}

fn run(bench: &mut Bench) {
    let live = bench.number("live") / bench.threads as u64;
    let octaves = (bench.number("octaves") as u32).min(32);
    let cycles = bench.number("cycles") as u32;
    // The last block may exceed the limit.
    let places = live as usize / LOWEST + 1;
    let most = LOWEST << (octaves + 1);
    // Hoard holds 10.7 times the live bytes.
    bench.needs(
        (bench.threads * (places * size_of::<StampedBlock>() + most)) as u64
            + bench.number("live") * 12,
    );
    let context = ShiftContext {
        shape: Shape::new(bench, bench.threads, (cycles * (2 * octaves + 1)) as usize),
        blocks: Blocks::new(bench.threads * places),
        live,
        octaves,
        cycles,
        turnover: bench.number("turnover"),
        seed: bench.seed,
        meeting: Rendezvous::new(bench.threads),
        ends: Default::default(),
    };
    let ops = || context.shape.volume() / LOWEST as u64;
    context
        .shape
        .play(bench, &context, ShiftContext::drift, ops);
    context.shape.account(bench, None);
    context.shape.tell_worst(bench);
    if context.shape.points.wanted() && cycles > 1 {
        let [last, before] = [0, 1].map(|place| context.ends[place].get() as f64);
        bench.figure("cycle_growth_share", last / before - 1.0);
    }
}

impl ShiftContext {
    fn drift(&self, worker: usize) {
        let thread = self.shape.thread(worker);
        let places = self.live as usize / LOWEST + 1;
        let mut blocks = self.blocks.list(worker * places, places);
        let mut random = SplitMix::new(self.seed, worker as u64);
        let (mut live, mut stamp) = (0, 0u32);
        for _ in 0..self.cycles {
            let mut heap_bytes = 0;
            for octave in (0..=self.octaves).chain((0..self.octaves).rev()) {
                let lowest = LOWEST << octave;
                let mut volume = 0;
                while volume < self.turnover * self.live {
                    if live >= self.live {
                        let place = random.below(blocks.len() as u32) as usize;
                        live -= blocks.swap_free(&thread, place) as u64;
                    } else {
                        let size = lowest + random.below(lowest as u32) as usize;
                        blocks.push(thread.allocate(size, stamp));
                        stamp = stamp.wrapping_add(1);
                        live += size as u64;
                        volume += size as u64;
                    }
                }
                self.meeting.wait();
                if worker == 0 {
                    heap_bytes = self.shape.point();
                }
                self.meeting.wait();
            }
            if worker == 0 {
                let [last, before] = &*self.ends;
                before.set(last.replace(heap_bytes));
            }
        }
        blocks.clear(&thread);
    }
}
