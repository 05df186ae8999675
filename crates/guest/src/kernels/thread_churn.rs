//! `thread-churn`: threads come and go, one after the other or a few at once: does the threads'
//! memory come back, and what does a thread with a heap of its own cost?

use super::shape::BlockList;
use super::*;
use crate::threads::{Team, Workers};

pub const KERNEL: Kernel = Kernel {
    memory: MemoryPoints::OwnOnlyAlone,
    ..Kernel::of_memory(
        "thread-churn",
        &["generations", "at-once", "blocks", "classes", "leaves"],
        run,
    )
};

/// If a thread leaves some blocks, it leaves one in this many.
const LEFT_OF: usize = 100;
/// About this many generations have points.
const MOST_POINTS: usize = 100;

struct GenerationsContext {
    shape: Shape,
    sizes: HarnessTable<u32>,
    /// For each thread of a generation: the thread's blocks, and the blocks that a thread leaves to
    /// its successor.
    blocks: Blocks,
    left: Blocks,
    leaves: Leaves,
    /// Number of blocks that each thread of the previous generation left.
    left_count: InTurn<Cell<usize>>,
}

/// Which blocks a thread leaves to its successor, which frees them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leaves {
    None,
    Some,
    All,
}

fn run(bench: &mut Bench) {
    let (generations, at_once) = (bench.count("generations"), bench.count("at-once"));
    let count = bench.count("blocks");
    let sizes = bench.sizes().table(1, count, bench.seed, 1);
    let bytes = sum(&sizes);
    bench.needs(at_once as u64 * (4 * bytes + 2 * (count * size_of::<StampedBlock>()) as u64));
    let every = generations.div_ceil(MOST_POINTS).max(1);
    let context = GenerationsContext {
        shape: Shape::new(bench, at_once, generations / every + 3),
        sizes,
        blocks: Blocks::new(at_once * count),
        left: Blocks::new(at_once * count),
        leaves: match bench.parameter("leaves") {
            "none" => Leaves::None,
            "all" => Leaves::All,
            _ => Leaves::Some,
        },
        left_count: InTurn::default(),
    };
    let mut heaps = [0; 2];
    let mut lives_ns = 0;
    let mut rounds = 0;
    bench.begin();
    for round in bench.rounds() {
        let shape = &context.shape;
        shape.points.begin();
        let began = Moment::start();
        for generation in 1..=generations {
            lives_ns += context.generation(at_once, GenerationsContext::live);
            context.left_count.set(context.leaves.of(count));
            let is_half = generation == generations / 2;
            if generation % every == 0 || is_half || generation == generations {
                let heap = shape.point();
                if is_half {
                    heaps[0] = heap;
                }
                heaps[1] = heap;
            }
        }
        for worker in 0..at_once {
            context.take_over(worker, &shape.thread(worker));
        }
        context.left_count.set(0);
        bench.record(
            round,
            began.elapsed(),
            2 * (generations * at_once * count) as u64,
        );
        rounds += 1;
    }
    let threads = rounds * (generations * at_once) as u64;
    let starts_ns: u64 = (0..rounds as usize * generations)
        .map(|_| context.generation(at_once, |_, _| {}))
        .sum();
    let of_a_thread = (lives_ns as f64 - starts_ns as f64) / threads.max(1) as f64;
    bench.figure("thread_ns", of_a_thread);
    let expected = freed_again(threads * count as u64, threads * bytes);
    context.shape.account(bench, Some(expected));
    context.shape.tell_worst(bench);
    if context.shape.points.wanted() && generations > 1 {
        let [half, end] = heaps.map(|heap| heap as f64);
        let threads = (generations - generations / 2) * at_once;
        bench.figure("growth_bytes_per_thread", (end - half) / threads as f64);
    }
}

impl Leaves {
    /// Returns how many of `count` blocks a thread leaves.
    fn of(self, count: usize) -> usize {
        match self {
            Leaves::None => 0,
            Leaves::Some => count.div_ceil(LEFT_OF),
            Leaves::All => count,
        }
    }
}

impl GenerationsContext {
    /// Runs a generation of threads from start to end and returns how long that took, in
    /// nanoseconds.
    fn generation(&self, at_once: usize, life: fn(&Self, usize)) -> u64 {
        let began_ns = now_ns();
        let team = Team::gather(Workers::Threads(at_once), self, life);
        let released = team.let_go();
        team.join(&released, |_, _| {});
        now_ns() - began_ns
    }

    /// Runs the whole life of a thread.
    fn live(&self, worker: usize) {
        let thread = self.shape.thread(worker);
        let mut blocks = self.own(&self.blocks, worker);
        for (place, &size) in self.sizes.iter().enumerate() {
            blocks.push(thread.allocate(size as usize, place as u32));
        }
        self.take_over(worker, &thread);
        let mut left = self.own(&self.left, worker);
        let leaves = self.leaves;
        blocks.iter().enumerate().for_each(|(place, block)| {
            if leaves == Leaves::All || leaves == Leaves::Some && place % LEFT_OF == 0 {
                left.push(block);
            } else {
                thread.free(block);
            }
        });
    }

    /// Frees the blocks that the previous thread left.
    fn take_over(&self, worker: usize, thread: &ShapeThread) {
        let count = self.sizes.len();
        let left = &self.left.all()[worker * count..][..self.left_count.get()];
        left.iter().for_each(|block| thread.free(block.get()));
    }

    fn own<'b>(&self, of: &'b Blocks, worker: usize) -> BlockList<'b> {
        of.list(worker * self.sizes.len(), self.sizes.len())
    }
}
