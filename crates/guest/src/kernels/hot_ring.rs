//! `hot-ring`: a ring of a few blocks of one size. A block is allocated into one slot, and the
//! block in the next slot is freed: how long an allocator's fastest path takes.

use super::laps::SameSizeBlocks;
use super::*;

pub const KERNEL: Kernel = Kernel::timed(
    "hot-ring",
    &["ring", "size", "touch", "pairs", "thread"],
    run,
);

/// Maximum length of a worker's ring.
const MOST: usize = 64;

struct RingLoad {
    blocks: SameSizeBlocks,
    ring: usize,
    pairs: usize,
    slots: HarnessTable<Cell<*mut u8>>,
    works: Works,
}

fn run(bench: &mut Bench) {
    let load = RingLoad {
        blocks: SameSizeBlocks::of(bench),
        ring: bench.count("ring").clamp(1, MOST),
        pairs: bench.count("pairs"),
        slots: HarnessTable::zeroed(bench.threads * MOST),
        works: Works::new(bench),
    };
    let at_a_time = (bench.threads * load.ring * load.blocks.size) as u64;
    bench.needs(at_a_time);
    null::overlap(load.blocks.size, bench.threads);
    let blocks = bench.threads as u64 * load.count();
    let plan = LapPlan {
        teams: 1,
        laps: 1,
        ops: (bench.threads * load.pairs) as u64,
        expected: KernelWork::pairs(blocks, blocks * load.blocks.size as u64),
    };
    laps::run(bench, &load, &load.works, &plan);
    bench.requested_peak(at_a_time);
}

impl Load for RingLoad {
    /// Fills all slots but the first one.
    fn before(&self, worker: usize, _lap: usize) {
        let slots = self.slots_of(worker);
        slots
            .iter()
            .skip(1)
            .for_each(|place| place.set(self.blocks.allocate(by_address)));
    }

    fn timed(&self, worker: usize, _lap: usize) {
        // Fields of `self` would be loaded again after each call to the allocator.
        let blocks = self.blocks;
        if blocks.are_bare() {
            self.turn(
                worker,
                || blocks.allocate_bare(),
                |block| blocks.free_bare(block),
            );
        } else {
            self.turn(
                worker,
                || blocks.allocate(by_address),
                |block| blocks.free(block, by_address),
            );
        }
    }

    fn after(&self, worker: usize, _lap: usize) {
        let slots = self.slots_of(worker);
        let empty = self.pairs % self.ring;
        for (_, place) in slots.iter().enumerate().filter(|(slot, _)| *slot != empty) {
            self.blocks.free(place.get(), by_address);
        }
        let work = KernelWork::pairs(self.count(), self.count() * self.blocks.size as u64);
        self.works.add(worker, work);
    }
}

impl RingLoad {
    fn slots_of(&self, worker: usize) -> &[Cell<*mut u8>] {
        &self.slots[worker * MOST..][..self.ring]
    }

    #[inline(always)]
    fn turn(&self, worker: usize, allocate: impl Fn() -> *mut u8, free: impl Fn(*mut u8)) {
        let (slots, mut left) = (self.slots_of(worker), self.pairs);
        while left >= slots.len() {
            for pair in slots.windows(2) {
                pair[0].set(allocate());
                free(pair[1].get());
            }
            slots[slots.len() - 1].set(allocate());
            free(slots[0].get());
            left -= slots.len();
        }
        for pair in slots.windows(2).take(left) {
            pair[0].set(allocate());
            free(pair[1].get());
        }
    }

    /// Returns the number of blocks that each worker allocates.
    fn count(&self) -> u64 {
        (self.pairs + self.ring - 1) as u64
    }
}

/// Returns a block's stamp: the lowest byte of the block's address.
fn by_address(block: *mut u8) -> u8 {
    block.addr() as u8
}
