//! `speed` (LL): one routine is called for all objects of a worker, then the next routine. A chain
//! of one routine shows the routine's latency; a longer chain shows the state that a routine leaves
//! for the next.

mod chain;

use super::*;
use crate::sizes::Sizes;
use chain::{Call, Chain, ChainStep, DOCUMENT, DRAWS, REALLOC_DRAW, SETS};

pub const KERNEL: Kernel = Kernel {
    calls: &["malloc", "calloc", "realloc", "free"],
    ..Kernel::timed(
        "speed",
        &[
            "chain",
            "objects",
            "touch",
            "carry-over",
            "classes",
            "thread",
        ],
        run,
    )
};

struct SpeedContext<'a> {
    api: Api,
    /// One chain per lap.
    chains: &'a [Chain<'a>],
    objects: usize,
    touch: bool,
    /// Distance from one set or list to the next, in entries: whole cache lines.
    stride: usize,
    /// Blocks by worker, then by set.
    blocks: HarnessTable<AtomicPtr<u8>>,
    /// Sizes by worker, then by list.
    sizes: HarnessTable<u32>,
    works: Works,
}

fn run(bench: &mut Bench) {
    let objects = bench.count("objects");
    let (list, count) = chains(bench.parameter("chain"), bench.flag("carry-over"));
    let chains = &list[..count];
    let classes = bench.sizes();
    let stride = objects.next_multiple_of(32);
    let tables = SETS * size_of::<AtomicPtr<u8>>() + DRAWS * size_of::<u32>();
    bench.needs(
        (bench.threads * stride) as u64 * (tables as u64 + u64::from(classes.largest()) + 16),
    );
    let mut sizes = HarnessTable::<u32>::zeroed(bench.threads * DRAWS * stride);
    let sums = draw(&classes, bench.seed, objects, stride, &mut sizes);
    let shared = SpeedContext {
        api: bench.api,
        chains,
        objects,
        touch: bench.flag("touch"),
        stride,
        blocks: HarnessTable::zeroed(bench.threads * SETS * stride),
        sizes,
        works: Works::new(bench),
    };
    let per_step = (bench.threads * objects) as u64;
    let steps: usize = chains.iter().map(|chain| chain.steps().count()).sum();
    let (expected, peak) = expected(chains, per_step, &sums);
    let plan = LapPlan {
        teams: 1,
        laps: count,
        ops: per_step * steps as u64,
        expected,
    };
    let seen = laps::run(bench, &shared, &shared.works, &plan);
    bench.requested_peak(peak);
    for (chain, total) in chains.iter().zip(&seen.spans) {
        let calls = (seen.measured * objects as u64 * chain.steps().count() as u64) as f64;
        bench.figure(
            format_args!("ns_per_call_{}", chain.name),
            total.wall_ns as f64 / calls,
        );
        bench.figure(
            format_args!("minor_faults_{}", chain.name),
            total.minor_faults as f64 / seen.measured as f64,
        );
    }
}

/// Returns one chain, or all chains of the document, which run in sequence in this process.
fn chains(word: &str, carry_over: bool) -> ([Chain<'_>; DOCUMENT.len()], usize) {
    let parse = |name| {
        Chain::parse(name).unwrap_or_else(|| fail!("error", "`{name}` is no chain of routines"))
    };
    if word != "all" {
        return ([parse(word); DOCUMENT.len()], 1);
    }
    let mut chains = DOCUMENT.map(parse);
    for index in 1..chains.len() {
        if carry_over && let [.., previous, next] = &mut chains[..=index] {
            next.carry_over_from(previous);
        }
    }
    (chains, DOCUMENT.len())
}

/// Draws all sizes and returns the sum of each list over all workers.
fn draw(
    classes: &Sizes,
    seed: u64,
    objects: usize,
    stride: usize,
    sizes: &mut [u32],
) -> [u64; DRAWS] {
    let mut sums = [0; DRAWS];
    for (index, list) in sizes.chunks_mut(stride).enumerate() {
        let mut random = SplitMix::new(seed, index as u64);
        for size in &mut list[..objects] {
            // Some libraries free on a reallocation to 0 bytes and others do not: 1 byte is
            // requested instead.
            let least = u32::from(index % DRAWS == REALLOC_DRAW);
            *size = classes.draw(&mut random).max(least);
            sums[index % DRAWS] += u64::from(*size);
        }
    }
    sums
}

/// Returns the work that one round must do, computed from the chains alone, and the peak of live
/// bytes between two steps.
fn expected(chains: &[Chain<'_>], per_step: u64, sums: &[u64; DRAWS]) -> (KernelWork, u64) {
    let mut expected = KernelWork::default();
    let (mut live, mut peak) = ([0; SETS], 0);
    for chain in chains {
        let first = chain.fills.then_some(ChainStep::FILL);
        let last = chain.freed_sets().map(ChainStep::free);
        for step in first.into_iter().chain(chain.steps()).chain(last) {
            *match step.call {
                Call::Malloc => &mut expected.malloc,
                Call::Calloc => &mut expected.calloc,
                Call::Realloc => &mut expected.realloc,
                Call::Free => &mut expected.free,
            } += per_step;
            live[step.set] = if step.call == Call::Free {
                0
            } else {
                sums[step.draw]
            };
            expected.checksum += live[step.set];
            peak = peak.max(live.iter().sum());
        }
    }
    (expected, peak)
}

impl Load for SpeedContext<'_> {
    fn before(&self, worker: usize, lap: usize) {
        if self.chains[lap].fills {
            self.all_objects(worker, ChainStep::FILL);
        }
    }

    fn timed(&self, worker: usize, lap: usize) {
        for step in self.chains[lap].steps() {
            self.all_objects(worker, step);
        }
    }

    fn after(&self, worker: usize, lap: usize) {
        for set in self.chains[lap].freed_sets() {
            self.all_objects(worker, ChainStep::free(set));
        }
    }
}

impl SpeedContext<'_> {
    /// Does one step: calls a routine for each object of a set.
    fn all_objects(&self, worker: usize, step: ChainStep) {
        let Api {
            malloc,
            free,
            calloc,
            realloc,
            ..
        } = self.api;
        let blocks = &self.blocks[(worker * SETS + step.set) * self.stride..][..self.objects];
        let sizes = &self.sizes[(worker * DRAWS + step.draw) * self.stride..][..self.objects];
        let calls = blocks.len() as u64;
        let mut work = KernelWork::default();
        // SAFETY: ordinary calls; `realloc` and `free` get the blocks of the step before, each
        // block once.
        unsafe {
            match step.call {
                Call::Malloc => {
                    work.malloc = calls;
                    work.checksum = self.fill(blocks, sizes, |_, size| malloc(size));
                }
                Call::Calloc => {
                    work.calloc = calls;
                    work.checksum = self.fill(blocks, sizes, |_, size| calloc(1, size));
                }
                Call::Realloc => {
                    work.realloc = calls;
                    work.checksum = self.fill(blocks, sizes, |place, size| {
                        realloc(place.load(Relaxed), size)
                    });
                }
                Call::Free => {
                    work.free = calls;
                    blocks.iter().for_each(|place| free(place.load(Relaxed)));
                }
            }
        }
        self.works.add(worker, work);
    }

    /// Stores the result of `call` at each place, and returns the bytes requested.
    #[inline(always)]
    fn fill(
        &self,
        places: &[AtomicPtr<u8>],
        sizes: &[u32],
        call: impl Fn(&AtomicPtr<u8>, usize) -> *mut u8,
    ) -> u64 {
        let mut bytes = 0;
        for (place, &size) in places.iter().zip(sizes) {
            let block = call(place, size as usize);
            if block.is_null() && size > 0 {
                report::no_block("malloc, calloc or realloc", size as usize);
            }
            if self.touch && size > 0 {
                // SAFETY: the block has a first byte.
                unsafe { block.write_volatile(1) };
            }
            place.store(block, Relaxed);
            bytes += u64::from(size);
        }
        bytes
    }
}
