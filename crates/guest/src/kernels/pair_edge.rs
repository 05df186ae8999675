//! `pair-edge`: one block is allocated, touched and freed, again and again, at a size at which an
//! allocator may go to the kernel and back each time.

use super::laps::{self, LapPlan, SameSizeBlocks, Works, pairs};
use super::{Kernel, MemoryPoints};
use crate::bench::Bench;
use crate::memory::{HarnessTable, Padded};
use crate::null;
use crate::timed_phases::Load;
use core::cell::Cell;

pub const KERNEL: Kernel = Kernel {
    name: "pair-edge",
    calls: &["malloc", "free"],
    parameters: &["size", "kept", "touch", "pairs", "thread"],
    memory: MemoryPoints::Sampled,
    has_floor: true,
    run,
};

/// Pairs before the clock: an allocator that learns, as glibc does from the first large block that
/// is freed, has learned by then.
const BEFORE: usize = 3;

struct PairLoad {
    blocks: SameSizeBlocks,
    is_kept: bool,
    pairs: usize,
    /// Of each worker, the block that lives around its pairs.
    kept: HarnessTable<Padded<Cell<*mut u8>>>,
    works: Works,
}

// SAFETY: each worker uses its own entry of `kept`.
unsafe impl Sync for PairLoad {}

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
        expected: pairs(blocks, blocks * size as u64),
    };
    laps::run(bench, &load, &load.works, &plan);
    bench.requested_peak(at_a_time);
}

impl Load for PairLoad {
    fn before(&self, worker: usize, _lap: usize) {
        if self.is_kept {
            self.kept[worker].0.set(self.blocks.allocate(|_| 0));
        }
        (0..BEFORE).for_each(|pair| self.pair(pair));
    }

    fn timed(&self, _worker: usize, _lap: usize) {
        (0..self.pairs).for_each(|pair| self.pair(pair));
    }

    fn after(&self, worker: usize, _lap: usize) {
        if self.is_kept {
            self.blocks.free(self.kept[worker].0.get(), |_| 0);
        }
        let work = pairs(self.count(), self.count() * self.blocks.size as u64);
        self.works.add(worker, &work);
    }
}

impl PairLoad {
    /// Blocks of each worker.
    fn count(&self) -> u64 {
        (self.pairs + BEFORE + usize::from(self.is_kept)) as u64
    }

    #[inline(always)]
    fn pair(&self, pair: usize) {
        let stamp = |_| pair as u8;
        self.blocks.free(self.blocks.allocate(stamp), stamp);
    }
}
