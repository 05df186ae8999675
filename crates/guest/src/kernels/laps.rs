//! Shared by the kernels that time operations: workers live through the timed laps of a round, and
//! each worker reports what it did.

use super::*;

/// Maximum number of laps per round whose times are kept apart.
pub const MOST_LAPS: usize = 12;

/// The work that each worker did in a round.
pub struct Works(HarnessTable<Padded<Cell<KernelWork>>>);

impl Works {
    pub fn new(bench: &Bench) -> Works {
        Works(HarnessTable::zeroed(bench.threads))
    }

    /// Adds to the work that a worker did.
    pub fn add(&self, worker: usize, more: KernelWork) {
        let work = &self.0[worker];
        let mut sum = work.get();
        sum += more;
        work.set(sum);
    }

    /// Returns the work that all workers did since the last call.
    pub fn take(&self) -> KernelWork {
        let mut sum = KernelWork::default();
        self.0.iter().for_each(|work| sum += work.take());
        sum
    }
}

/// The parts of a round, and the work expected of it.
pub struct LapPlan {
    /// Number of teams of workers, which play one after the other.
    pub teams: usize,
    /// Number of laps of each team, [`MOST_LAPS`] at most.
    pub laps: usize,
    /// Number of operations on the clock, over all laps and workers.
    pub ops: u64,
    /// The work of all workers, on and off the clock.
    pub expected: KernelWork,
}

/// The times of all rounds.
#[derive(Default)]
pub struct LapTimes {
    /// The span of each lap, summed up over the measured rounds.
    pub spans: [Span; MOST_LAPS],
    /// The mean time that a worker took, summed up over all measured laps.
    pub mean_ns: u64,
    pub rounds: u64,
    /// Number of rounds that were not cold.
    pub measured: u64,
}

/// Runs all rounds.
pub fn run<L: Load>(bench: &mut Bench, load: &L, works: &Works, plan: &LapPlan) -> LapTimes {
    let [mut done, mut expected] = [KernelWork::default(); 2];
    let mut seen = LapTimes::default();
    bench.begin();
    for round in bench.rounds() {
        let mut whole = Span::default();
        for _ in 0..plan.teams {
            bench.laps(round, plan.laps, load, |lap, lapse| {
                whole += lapse.span;
                if !round.cold {
                    seen.spans[lap] += lapse.span;
                    seen.mean_ns += lapse.mean_ns;
                }
            });
        }
        seen.rounds += 1;
        seen.measured += u64::from(!round.cold);
        bench.record(round, whole, plan.ops);
        done += works.take();
        expected += plan.expected;
    }
    bench.account(&done, &expected);
    seen
}

/// Blocks of one size, which may be checked for what was written into them.
#[derive(Clone, Copy)]
pub struct SameSizeBlocks {
    api: Api,
    pub size: usize,
    touch: bool,
    /// Whether the bytes written into a block are read back and checked.
    verify: bool,
}

impl SameSizeBlocks {
    /// Describes the blocks that the parameters `size` and `touch` ask for.
    pub fn of(bench: &Bench) -> SameSizeBlocks {
        SameSizeBlocks {
            api: bench.api,
            size: bench.count("size").max(2),
            touch: bench.flag("touch"),
            verify: !null::serves(),
        }
    }

    /// Returns whether nothing is written into the blocks.
    pub fn are_bare(&self) -> bool {
        !self.touch
    }

    /// Allocates a block without writing into it.
    #[inline(always)]
    pub fn allocate_bare(&self) -> *mut u8 {
        self.api.block(self.size)
    }

    /// Frees a block without reading it.
    #[inline(always)]
    pub fn free_bare(&self, block: *mut u8) {
        // SAFETY: a live block, freed once.
        unsafe { (self.api.free)(block) };
    }

    /// Allocates a block with a stamp, which may be derived from the block's address.
    #[inline(always)]
    pub fn allocate(&self, stamp: impl Fn(*mut u8) -> u8) -> *mut u8 {
        let block = self.allocate_bare();
        if self.touch {
            // SAFETY: the block has at least two bytes.
            unsafe { touch::stamp(block, self.size, stamp(block)) };
        }
        block
    }

    /// Frees a block that must still have this stamp.
    #[inline(always)]
    pub fn free(&self, block: *mut u8, stamp: impl Fn(*mut u8) -> u8) {
        if self.touch && self.verify {
            // SAFETY: a live block of that size.
            unsafe { touch::verify(block, self.size, stamp(block)) };
        }
        self.free_bare(block);
    }
}
