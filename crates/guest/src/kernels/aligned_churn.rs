//! `aligned-churn`: large aligned blocks come and go, and after each of them a small block is
//! allocated that stays.

use super::aligned::wanted_alignment;
use super::shape::Growth;
use super::*;

pub const KERNEL: Kernel = Kernel {
    calls: &["malloc", "posix_memalign", "free"],
    ..Kernel::of_memory(
        "aligned-churn",
        &["alignment", "large", "small", "iterations", "thread"],
        run,
    )
};

struct AlignedContext {
    shape: Shape,
    survivors: Blocks,
    alignment: usize,
    large: usize,
    small: usize,
    iterations: usize,
    growth: Growth,
}

fn run(bench: &mut Bench) {
    let (alignment, iterations) = (wanted_alignment(bench), bench.count("iterations"));
    let (large, small) = (bench.count("large"), bench.count("small").max(1));
    let each = small + size_of::<StampedBlock>();
    bench.needs((2 * large + iterations * each) as u64);
    let context = AlignedContext {
        shape: Shape::new(bench, 1, 2 * iterations),
        survivors: Blocks::new(iterations),
        alignment,
        large,
        small,
        iterations,
        growth: Growth::over(iterations),
    };
    let body = |context: &AlignedContext, _| context.play();
    let ops = 4 * iterations as u64;
    let rounds = context.shape.play(bench, &context, body, || ops) * iterations as u64;
    let expected = KernelWork {
        malloc: rounds,
        posix_memalign: rounds,
        free: 2 * rounds,
        checksum: 2 * rounds * (large + small) as u64,
        ..KernelWork::default()
    };
    context.shape.account(bench, Some(expected));
    context.shape.tell_no_reuse(bench);
    context.growth.tell(bench, &context.shape);
}

impl AlignedContext {
    fn play(&self) {
        let thread = self.shape.thread(0);
        let mut survivors = self.survivors.list(0, self.iterations);
        let mut last = None;
        for iteration in 0..self.iterations {
            let next = thread.allocate_aligned(self.alignment, self.large, iteration as u32);
            self.shape.point();
            if let Some(block) = last.replace(next) {
                thread.free(block);
            }
            survivors.push(thread.allocate(self.small, iteration as u32));
            self.growth.note(iteration, &self.shape);
        }
        if let Some(block) = last {
            thread.free(block);
        }
        survivors.clear(&thread);
    }
}
