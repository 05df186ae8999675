//! `stranded`: small blocks that survive between large ones that come and go.

use super::shape::Growth;
use super::*;
use crate::purge::PurgeCall;

pub const KERNEL: Kernel = Kernel::of_memory(
    "stranded",
    &["large", "small", "iterations", "keep", "thread"],
    run,
);

/// The limits of tcmalloc's `largesmall_frag_test` on memory above live bytes: this many large
/// blocks, plus this many bytes.
const ALLOWED_BLOCKS: usize = 3;
const ALLOWED_BYTES: usize = 10 << 20;

struct StrandedContext {
    shape: Shape,
    blocks: Blocks,
    /// Survivors come first, then the blocks of an iteration.
    survivors: usize,
    large: usize,
    small: usize,
    iterations: usize,
    keep: usize,
    purge: PurgeCall,
    growth: Growth,
}

fn run(bench: &mut Bench) {
    let (large, small) = (bench.count("large"), bench.count("small").max(1));
    let (iterations, keep) = (bench.count("iterations"), bench.count("keep"));
    let each = large / small + 10;
    let blocks = iterations + each;
    bench.needs(
        (large + each * small + iterations * small + blocks * size_of::<StampedBlock>()) as u64,
    );
    let context = StrandedContext {
        shape: Shape::new(bench, 1, 2 * iterations),
        blocks: Blocks::new(blocks),
        survivors: iterations,
        large,
        small,
        iterations,
        keep: keep.min(each - 1),
        purge: bench.purge,
        growth: Growth::over(iterations),
    };
    let body = |context: &StrandedContext, _| context.play();
    let ops = 2 * (iterations * (1 + each)) as u64;
    let rounds = context.shape.play(bench, &context, body, || ops) * iterations as u64;
    let bytes = rounds * (large + each * small) as u64;
    context
        .shape
        .account(bench, Some(freed_again(rounds * (1 + each as u64), bytes)));
    context.shape.tell_no_reuse(bench);
    context.growth.tell(bench, &context.shape);
    if context.shape.points.wanted() && iterations > 1 {
        let allowed = (ALLOWED_BLOCKS * large + ALLOWED_BYTES) as f64;
        let bound = 1.0 + allowed / context.shape.most_live().max(1) as f64;
        bench.figure("bound_ratio", bound);
    }
}

impl StrandedContext {
    fn play(&self) {
        let thread = self.shape.thread(0);
        let mut survivors = self.blocks.list(0, self.survivors);
        let each = self.blocks.all().len() - self.survivors;
        for iteration in 0..self.iterations {
            thread.free(thread.allocate(self.large, iteration as u32));
            let mut blocks = self.blocks.list(self.survivors, each);
            while !blocks.is_full() {
                blocks.push(thread.allocate(self.small, blocks.len() as u32));
            }
            self.shape.point();
            let kept = blocks.iter().nth(self.keep);
            kept.into_iter().for_each(|block| survivors.push(block));
            for (place, block) in blocks.iter().enumerate() {
                if place != self.keep {
                    thread.free(block);
                }
            }
            self.purge.process();
            self.growth.note(iteration, &self.shape);
        }
        survivors.clear(&thread);
    }
}
