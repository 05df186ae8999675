//! `robson`: Robson's adversary of 1971, which reads addresses and makes every allocator that does not move blocks hold
//! a known multiple of the live bytes. The result ranks no allocators, but shows whether memory is measured correctly
//! here.

use super::*;
use crate::heap_points::LEAST_OF_BOUND;
use crate::sys::page_bytes;

pub const KERNEL: Kernel =
    Kernel::of_memory("robson", &["unit", "live", "steps", "gate", "thread"], run);

struct RobsonContext {
    shape: Shape,
    blocks: Blocks,
    unit: usize,
    live: u64,
    steps: u32,
    /// The last step whose blocks are no larger than a page: from then on an allocator may return
    /// pages inside its heap.
    judged_step: u32,
    judged_heap_bytes: InTurn<Cell<u64>>,
}

fn run(bench: &mut Bench) {
    let (unit, live) = (bench.count("unit").max(8), bench.number("live"));
    let steps = (bench.number("steps") as u32).min(24);
    let blocks = (live / unit as u64) as usize;
    bench.needs(
        live.saturating_mul(2 + u64::from(steps)) + (blocks * size_of::<StampedBlock>()) as u64,
    );
    let context = RobsonContext {
        shape: Shape::new(bench, 1, steps as usize + 1),
        blocks: Blocks::new(blocks),
        unit,
        live: (blocks * unit) as u64,
        steps,
        judged_step: (page_bytes() / unit).max(1).ilog2().min(steps),
        judged_heap_bytes: InTurn::default(),
    };
    let body = |context: &RobsonContext, _| context.play();
    let ops = || context.shape.volume() / unit as u64;
    context.shape.play(bench, &context, body, ops);
    context.shape.account(bench, None);
    context.shape.tell_worst(bench);
    context.judge(bench);
}

impl RobsonContext {
    fn play(&self) {
        let thread = self.shape.thread(0);
        let mut blocks = self.blocks.list(0, self.blocks.all().len());
        let (mut stamp, mut live) = (0, 0);
        let mut offset = 0;
        for step in 0..=self.steps {
            let size = self.unit << step;
            if step > 0 {
                // Returns how many bytes beside the kept blocks cannot be used by any new block of this size.
                let gap = |offset| -> usize {
                    let kept = blocks.iter().filter(|block| covers(block, offset, size));
                    kept.map(|block| size - block.size()).sum()
                };
                let other = offset + size / 2;
                if gap(other) > gap(offset) {
                    offset = other;
                }
                blocks.retain(&thread, |_, block| covers(block, offset, size));
                live = blocks.iter().map(|block| block.size() as u64).sum();
            }
            while live + size as u64 <= self.live {
                blocks.push(thread.allocate(size, stamp));
                stamp = stamp.wrapping_add(1);
                live += size as u64;
            }
            let heap_bytes = self.shape.point();
            if step == self.judged_step {
                self.judged_heap_bytes.set(heap_bytes);
            }
        }
        blocks.clear(&thread);
    }

    fn judge(&self, bench: &Bench) {
        if !self.shape.points.wanted() || self.live == 0 {
            return;
        }
        let live = self.live as f64;
        let step = self.judged_step;
        let bound =
            1.0 + f64::from(step) / 2.0 - (((1u64 << step) - 1) * self.unit as u64) as f64 / live;
        let ratio = self.judged_heap_bytes.get() as f64 / live;
        bench.figure("robson_ratio", ratio);
        bench.figure("bound_ratio", bound);
        if bench.flag("gate") && ratio < LEAST_OF_BOUND * bound {
            fail!(
                "error",
                "memory is measured wrongly here: {ratio:.2} times what is live, and no allocator that moves no blocks \
                     can hold less than {bound:.2} (one that does: --set robson.gate=false)"
            );
        }
    }
}

/// Returns whether one of the block's bytes has an address that leaves this remainder when divided by `size`. Any
/// stretch of `size` bytes, wherever it begins, has exactly one such address, so no two blocks that are kept lie within
/// one such stretch of memory.
fn covers(block: &StampedBlock, rest: usize, size: usize) -> bool {
    let first = block.address().addr() % size;
    (rest + size - first) % size < block.size()
}
