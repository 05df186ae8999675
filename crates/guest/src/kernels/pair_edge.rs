//! `pair-edge`: one block is allocated, touched and freed, again and again, at a size at which an
//! allocator may go to the kernel and back each time.

use super::laps::SameSizeBlocks;
use super::*;

pub const KERNEL: Kernel = Kernel::timed(
    "pair-edge",
    &["size", "kept", "touch", "pairs", "thread"],
    run,
);

/// Number of pairs before the clock starts. An allocator that adapts, as glibc does to the first
/// large block that is freed, has adapted by then.
const BEFORE: usize = 3;

struct PairLoad {
    blocks: SameSizeBlocks,
    is_kept: bool,
    pairs: usize,
    /// For each worker, a block that stays live while the worker makes its pairs.
    kept: HarnessTable<Padded<Cell<*mut u8>>>,
    works: Works,
}

fn run(bench: &mut Bench) {
    let load = PairLoad {
        blocks: SameSizeBlocks::of(bench),
        is_kept: bench.flag("kept"),
        pairs: bench.count("pairs"),
        kept: HarnessTable::zeroed(bench.threads),
        works: Works::new(bench),
    };
    let size = load.blocks.size;
    let at_a_time = (bench.threads * size * (1 + usize::from(load.is_kept))) as u64;
    bench.needs(at_a_time);
    null::overlap(size, bench.threads);
    let threads = bench.threads as u64;
    let blocks = threads * load.count();
    let plan = LapPlan {
        teams: 1,
        laps: 1,
        ops: threads * load.pairs as u64,
        expected: KernelWork::pairs(blocks, blocks * size as u64),
    };
    laps::run(bench, &load, &load.works, &plan);
    bench.requested_peak(at_a_time);
}

impl Load for PairLoad {
    fn before(&self, worker: usize, _lap: usize) {
        if self.is_kept {
            self.kept[worker].set(self.blocks.allocate(|_| 0));
        }
        (0..BEFORE).for_each(|pair| self.pair(pair));
    }

    fn timed(&self, _worker: usize, _lap: usize) {
        (0..self.pairs).for_each(|pair| self.pair(pair));
    }

    fn after(&self, worker: usize, _lap: usize) {
        if self.is_kept {
            self.blocks.free(self.kept[worker].get(), |_| 0);
        }
        let work = KernelWork::pairs(self.count(), self.count() * self.blocks.size as u64);
        self.works.add(worker, work);
    }
}

impl PairLoad {
    /// Returns the number of blocks that each worker allocates.
    fn count(&self) -> u64 {
        (self.pairs + BEFORE + usize::from(self.is_kept)) as u64
    }

    #[inline(always)]
    fn pair(&self, pair: usize) {
        let stamp = |_| pair as u8;
        self.blocks.free(self.blocks.allocate(stamp), stamp);
    }
}
