//! `pair-edge`: one block is allocated, touched and freed, again and again, at a size at which an
//! allocator may go to the kernel and back each time.

use super::laps::{self, LapPlan, Works, pairs};
use super::{Kernel, MemoryPoints, touch};
use crate::api::Api;
use crate::bench::Bench;
use crate::fail;
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
    api: Api,
    size: usize,
    is_kept: bool,
    touch: bool,
    /// What is written can be read again.
    verify: bool,
    pairs: usize,
    /// Of each worker, the block that lives around its pairs.
    kept: HarnessTable<Padded<Cell<*mut u8>>>,
    works: Works,
}

// SAFETY: each worker uses its own entry of `kept`.
unsafe impl Sync for PairLoad {}

fn run(bench: &mut Bench) {
    let load = PairLoad {
        api: bench.api,
        size: bench.count("size").max(2),
        is_kept: bench.flag("kept"),
        touch: bench.flag("touch"),
        verify: !null::serves(),
        pairs: bench.count("pairs"),
        kept: HarnessTable::zeroed(bench.threads),
        works: Works::new(bench),
    };
    let at_a_time = (bench.threads * load.size * (1 + usize::from(load.is_kept))) as u64;
    bench.needs(at_a_time);
    null::overlap(load.size, bench.threads);
    let threads = bench.threads as u64;
    let blocks = threads * load.blocks();
    let plan = LapPlan {
        teams: 1,
        laps: 1,
        ops: threads * load.pairs as u64,
        expected: pairs(blocks, blocks * load.size as u64),
    };
    laps::run(bench, &load, &load.works, &plan);
    bench.requested_peak(at_a_time);
}

impl Load for PairLoad {
    fn before(&self, worker: usize, _lap: usize) {
        if self.is_kept {
            self.kept[worker].0.set(self.allocate(0));
        }
        (0..BEFORE).for_each(|pair| self.pair(pair));
    }

    fn timed(&self, _worker: usize, _lap: usize) {
        (0..self.pairs).for_each(|pair| self.pair(pair));
    }

    fn after(&self, worker: usize, _lap: usize) {
        if self.is_kept {
            self.free(self.kept[worker].0.get(), 0);
        }
        let blocks = self.blocks();
        let work = pairs(blocks, blocks * self.size as u64);
        self.works.add(worker, &work);
    }
}

impl PairLoad {
    /// Blocks of each worker.
    fn blocks(&self) -> u64 {
        (self.pairs + BEFORE + usize::from(self.is_kept)) as u64
    }

    #[inline(always)]
    fn pair(&self, pair: usize) {
        self.free(self.allocate(pair as u8), pair as u8);
    }

    #[inline(always)]
    fn allocate(&self, stamp: u8) -> *mut u8 {
        // SAFETY: an ordinary call; the block has at least two bytes.
        unsafe {
            let block = (self.api.malloc)(self.size);
            if block.is_null() {
                fail::null("malloc", self.size);
            }
            if self.touch {
                touch::stamp(block, self.size, stamp);
            }
            block
        }
    }

    #[inline(always)]
    fn free(&self, block: *mut u8, stamp: u8) {
        // SAFETY: a live block of that size, freed once.
        unsafe {
            if self.touch && self.verify {
                touch::verify(block, self.size, stamp);
            }
            (self.api.free)(block);
        }
    }
}
