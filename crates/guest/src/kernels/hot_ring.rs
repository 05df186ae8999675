//! `hot-ring`: a ring of a few blocks of one size. One is allocated into a slot, the one in the
//! next slot is freed: what an allocator's fastest path takes.

use super::laps::{self, LapPlan, Works, pairs};
use super::{Kernel, MemoryPoints, touch};
use crate::api::Api;
use crate::bench::Bench;
use crate::fail;
use crate::memory::HarnessTable;
use crate::null;
use crate::timed_phases::Load;
use core::cell::Cell;

pub const KERNEL: Kernel = Kernel {
    name: "hot-ring",
    calls: &["malloc", "free"],
    parameters: &["ring", "size", "touch", "pairs", "thread"],
    memory: MemoryPoints::Sampled,
    has_floor: true,
    run,
};

/// Longest ring, of a worker.
const MOST: usize = 64;

struct RingLoad {
    api: Api,
    ring: usize,
    size: usize,
    touch: bool,
    verify: bool,
    pairs: usize,
    blocks: HarnessTable<Cell<*mut u8>>,
    works: Works,
}

// SAFETY: each worker uses its own part of `blocks`.
unsafe impl Sync for RingLoad {}

fn run(bench: &mut Bench) {
    let load = RingLoad {
        api: bench.api,
        ring: bench.count("ring").clamp(1, MOST),
        size: bench.count("size").max(2),
        touch: bench.flag("touch"),
        verify: !null::serves(),
        pairs: bench.count("pairs"),
        blocks: HarnessTable::zeroed(bench.threads * MOST),
        works: Works::new(bench),
    };
    let at_a_time = (bench.threads * load.ring * load.size) as u64;
    bench.needs(at_a_time);
    null::overlap(load.size, bench.threads);
    let blocks = bench.threads as u64 * load.count();
    let plan = LapPlan {
        teams: 1,
        laps: 1,
        ops: (bench.threads * load.pairs) as u64,
        expected: pairs(blocks, blocks * load.size as u64),
    };
    laps::run(bench, &load, &load.works, &plan);
    bench.requested_peak(at_a_time);
}

impl Load for RingLoad {
    /// All slots but the first one are full.
    fn before(&self, worker: usize, _lap: usize) {
        let blocks = &self.blocks[worker * MOST..][..self.ring];
        blocks
            .iter()
            .skip(1)
            .for_each(|place| place.set(self.allocate()));
    }

    fn timed(&self, worker: usize, _lap: usize) {
        let blocks = &self.blocks[worker * MOST..][..self.ring];
        let mut slot = 0;
        for _ in 0..self.pairs {
            blocks[slot].set(self.allocate());
            slot = if slot + 1 == blocks.len() {
                0
            } else {
                slot + 1
            };
            self.free(blocks[slot].get());
        }
    }

    fn after(&self, worker: usize, _lap: usize) {
        let blocks = &self.blocks[worker * MOST..][..self.ring];
        let empty = self.pairs % self.ring;
        for (_, place) in blocks.iter().enumerate().filter(|(slot, _)| *slot != empty) {
            self.free(place.get());
        }
        let work = pairs(self.count(), self.count() * self.size as u64);
        self.works.add(worker, &work);
    }
}

impl RingLoad {
    /// Blocks of each worker.
    fn count(&self) -> u64 {
        (self.pairs + self.ring - 1) as u64
    }

    #[inline(always)]
    fn allocate(&self) -> *mut u8 {
        // SAFETY: an ordinary call; the block has at least two bytes.
        unsafe {
            let block = (self.api.malloc)(self.size);
            if block.is_null() {
                fail::null("malloc", self.size);
            }
            if self.touch {
                touch::stamp(block, self.size, block.addr() as u8);
            }
            block
        }
    }

    #[inline(always)]
    fn free(&self, block: *mut u8) {
        // SAFETY: live, freed once.
        unsafe {
            if self.touch && self.verify {
                touch::verify(block, self.size, block.addr() as u8);
            }
            (self.api.free)(block);
        }
    }
}
