//! `grow`: blocks that realloc makes larger step by step, as strings, vectors and buffers do, and
//! then smaller by halves. Does the allocator extend a block in place, or move it?

use super::*;

pub const KERNEL: Kernel = Kernel {
    calls: &["malloc", "free", "realloc"],
    ..Kernel::timed(
        "grow",
        &[
            "from",
            "limit",
            "step",
            "neighbours",
            "between",
            "ladders",
            "teams",
            "thread",
        ],
        run,
    )
};

/// Length of the stamp in a block's first bytes.
const STAMP_BYTES: usize = size_of::<u64>();
/// Size of a block that is allocated between two steps and stays.
const BETWEEN_BYTES: usize = 100;
/// From this size on, moving a block need not copy it: its pages can be moved.
const COPIED_BELOW: usize = 128 << 10;

struct GrowLoad {
    api: Api,
    /// All sizes of a block: up, then down from the step `steps_up` on.
    sizes: HarnessTable<u32>,
    steps_up: usize,
    /// Number of blocks that grow in turn.
    ladders: usize,
    /// Number of times that all blocks grow and shrink.
    times: usize,
    /// Number of blocks that each worker leaves between steps: one after each upward step of each
    /// ladder, or none at all.
    fences_each: usize,
    verify: bool,
    blocks: HarnessTable<Cell<*mut u8>>,
    fences: HarnessTable<Cell<*mut u8>>,
    moves: HarnessTable<Padded<Moves>>,
    works: Works,
}

#[derive(Default)]
struct Moves {
    up: Cell<u64>,
    down: Cell<u64>,
    /// Bytes of those moved blocks that are too small to move without copying.
    copied_bytes: Cell<u64>,
}

fn run(bench: &mut Bench) {
    let from = bench.count("from").max(STAMP_BYTES + 1);
    let step = Step::parse(bench.parameter("step"));
    let limit = bench.count("limit").min(u32::MAX as usize);
    let count = step.sizes(from, limit).count();
    let mut sizes = HarnessTable::<u32>::zeroed(count);
    for (place, size) in sizes.iter_mut().zip(step.sizes(from, limit)) {
        *place = size as u32;
    }
    let steps_up = sizes
        .windows(2)
        .take_while(|pair| pair[1] > pair[0])
        .count();
    let ladders = 1 + bench.count("neighbours");
    let (times, teams) = (bench.count("ladders"), bench.count("teams"));
    let fences_each = if bench.flag("between") {
        ladders * steps_up
    } else {
        0
    };
    let top = sizes[steps_up] as usize;
    let at_a_time = bench.threads * (ladders * top + fences_each * BETWEEN_BYTES);
    bench.needs(2 * at_a_time as u64);
    null::overlap(top, bench.threads);
    let load = GrowLoad {
        api: bench.api,
        steps_up,
        ladders,
        times,
        fences_each,
        verify: !null::serves(),
        blocks: HarnessTable::zeroed(bench.threads * ladders),
        fences: HarnessTable::zeroed(bench.threads * fences_each),
        moves: HarnessTable::zeroed(bench.threads),
        works: Works::new(bench),
        sizes,
    };
    let all = (bench.threads * teams * times * ladders) as u64;
    let (up, steps) = (load.steps_up as u64, load.sizes.len() as u64 - 1);
    let plan = LapPlan {
        teams,
        laps: 1,
        ops: all * steps,
        expected: load.work(bench.threads * teams),
    };
    let seen = laps::run(bench, &load, &load.works, &plan);
    bench.requested_peak(at_a_time as u64);
    let sum = |of: fn(&Moves) -> &Cell<u64>| {
        let moves = load.moves.iter();
        moves.map(|moves| of(moves).get()).sum::<u64>() as f64
    };
    // Cold rounds are counted, too: each round makes the same calls.
    let [all_up, all_down] = [up, steps - up].map(|steps| (seen.rounds * all * steps) as f64);
    if load.verify && all_up > 0.0 {
        bench.figure("moved_share", sum(|moves| &moves.up) / all_up);
        bench.figure(
            "copied_bytes_per_step",
            sum(|moves| &moves.copied_bytes) / all_up,
        );
    }
    if load.verify && all_down > 0.0 {
        bench.figure("moved_back_share", sum(|moves| &moves.down) / all_down);
    }
}

/// How a block grows.
#[derive(Clone, Copy)]
enum Step {
    By(usize),
    /// By a factor, given in halves.
    Times(usize),
}

impl Step {
    fn parse(word: &str) -> Step {
        match word {
            "8-bytes" => Step::By(8),
            "64-bytes" => Step::By(64),
            "half" => Step::Times(3),
            "double" => Step::Times(4),
            _ => Step::Times(8),
        }
    }

    fn next(self, size: usize) -> usize {
        match self {
            Step::By(bytes) => size + bytes,
            Step::Times(halves) => size * halves / 2,
        }
    }

    /// Returns all sizes from the smallest to the largest one, and then back down by halving.
    fn sizes(self, from: usize, limit: usize) -> impl Iterator<Item = usize> {
        let up = core::iter::successors(Some(from), move |&size| {
            Some(self.next(size)).filter(|&next| next <= limit)
        });
        let top = up.clone().last().unwrap_or(from);
        let down = core::iter::successors(Some(top / 2), |&size| Some(size / 2));
        up.chain(down.take_while(move |&size| size >= from))
    }
}

impl Load for GrowLoad {
    fn timed(&self, worker: usize, _lap: usize) {
        (0..self.times).for_each(|_| self.climb(worker));
    }

    fn after(&self, worker: usize, _lap: usize) {
        self.works.add(worker, self.work(1));
    }
}

impl GrowLoad {
    /// Returns the work of this many workers.
    fn work(&self, workers: usize) -> KernelWork {
        let climbs = (workers * self.times) as u64;
        let ladders = climbs * self.ladders as u64;
        let blocks = ladders + climbs * self.fences_each as u64;
        KernelWork {
            realloc: ladders * (self.sizes.len() as u64 - 1),
            ..KernelWork::pairs(blocks, ladders * sum(&self.sizes))
        }
    }

    /// Climbs all ladders of a worker once.
    fn climb(&self, worker: usize) {
        let blocks = &self.blocks[worker * self.ladders..][..self.ladders];
        let fences = &self.fences[worker * self.fences_each..][..self.fences_each];
        let moves = &self.moves[worker];
        let mut fence = fences.iter();
        let first = self.sizes[0] as usize;
        for (ladder, place) in blocks.iter().enumerate() {
            let block = self.api.block(first);
            self.write(block, 0, first, stamp(ladder, 0));
            place.set(block);
        }
        for step in 1..self.sizes.len() {
            let [old, new] = [self.sizes[step - 1], self.sizes[step]].map(|size| size as usize);
            let grows = new > old;
            for (ladder, place) in blocks.iter().enumerate() {
                let block = place.get();
                // SAFETY: live; the block that it returns takes its place.
                let moved = unsafe { (self.api.realloc)(block, new) };
                if moved.is_null() {
                    report::no_block("realloc", new);
                }
                if moved != block {
                    let count = if grows { &moves.up } else { &moves.down };
                    count.set(count.get() + 1);
                    if grows && old < COPIED_BELOW {
                        moves
                            .copied_bytes
                            .set(moves.copied_bytes.get() + old as u64);
                    }
                }
                self.verify(moved, old, new, stamp(ladder, step - 1));
                self.write(moved, old, new, stamp(ladder, step));
                place.set(moved);
                if grows && let Some(place) = fence.next() {
                    place.set(self.api.block(BETWEEN_BYTES));
                }
            }
        }
        for place in blocks.iter().chain(fences) {
            // SAFETY: live, freed once.
            unsafe { (self.api.free)(place.get()) };
        }
    }

    /// Writes the stamp into the block's first bytes and last byte, and touches each new page.
    fn write(&self, block: *mut u8, old: usize, new: usize, stamp: u64) {
        // SAFETY: within the block of `new` bytes, which are more than the stamp's.
        unsafe {
            let mut page = old.next_multiple_of(touch::PAGE);
            while page < new {
                block.add(page).write_volatile(0);
                page += touch::PAGE;
            }
            block.add(new - 1).write_volatile(stamp as u8);
            block.cast::<u64>().write_unaligned(stamp);
        }
    }

    /// Ends the process unless the bytes written before the step are still there: all of a block
    /// that grew, or the beginning of a block that shrank.
    fn verify(&self, block: *mut u8, old: usize, new: usize, stamp: u64) {
        if !self.verify {
            return;
        }
        // SAFETY: within the block.
        let is_intact = unsafe {
            block.cast::<u64>().read_unaligned() == stamp
                && (new < old || block.add(old - 1).read_volatile() == stamp as u8)
        };
        if !is_intact {
            touch::broken(old);
        }
    }
}

/// Returns the stamp of a ladder's block after a step.
fn stamp(ladder: usize, step: usize) -> u64 {
    (ladder as u64) << 32 | step as u64
}
