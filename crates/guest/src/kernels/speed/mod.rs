//! `speed` (LL): one routine over all objects of a worker, then the next one. A chain of one
//! routine shows its latency; a longer one shows the state that a routine leaves for the next.

mod chain;

use super::{Kernel, MemoryPoints};
use crate::api::Api;
use crate::bench::{Bench, KernelWork};
use crate::fail;
use crate::measured::Span;
use crate::memory::{HarnessTable, Padded};
use crate::rng::SplitMix;
use crate::sizes::Sizes;
use crate::timed_phases::Load;
use chain::{Call, Chain, ChainStep, DOCUMENT, DRAWS, REALLOC_DRAW, SETS};
use core::cell::Cell;
use core::sync::atomic::{AtomicPtr, Ordering};

pub const KERNEL: Kernel = Kernel {
    name: "speed",
    calls: &["malloc", "calloc", "realloc", "free"],
    parameters: &[
        "chain",
        "objects",
        "touch",
        "carry-over",
        "classes",
        "thread",
    ],
    memory: MemoryPoints::Sampled,
    has_floor: true,
    run,
};

struct SpeedContext<'a> {
    api: Api,
    /// One chain per lap.
    chains: &'a [Chain<'a>],
    objects: usize,
    touch: bool,
    /// Entries from one set or list to the next: whole cache lines.
    stride: usize,
    /// By worker, then by set.
    blocks: &'a [AtomicPtr<u8>],
    /// By worker, then by list.
    sizes: &'a [u32],
    tallies: &'a [Padded<Cell<KernelWork>>],
}

// SAFETY: each worker uses its own tally; blocks are atomic.
unsafe impl Sync for SpeedContext<'_> {}

fn run(bench: &mut Bench) {
    let objects = bench.count("objects");
    let (list, count) = chains(bench.parameter("chain"), bench.flag("carry-over"));
    let chains = &list[..count];
    let classes = Sizes::parse(bench.parameter("classes"));
    let stride = objects.next_multiple_of(32);
    let tables = SETS * size_of::<AtomicPtr<u8>>() + DRAWS * size_of::<u32>();
    bench.needs(
        (bench.threads * stride) as u64 * (tables as u64 + u64::from(classes.largest()) + 16),
    );
    let blocks = HarnessTable::<AtomicPtr<u8>>::zeroed(bench.threads * SETS * stride);
    let mut sizes = HarnessTable::<u32>::zeroed(bench.threads * DRAWS * stride);
    let sums = draw(&classes, bench.seed, objects, stride, &mut sizes);
    let tallies = HarnessTable::<Padded<Cell<KernelWork>>>::zeroed(bench.threads);
    let (api, touch) = (bench.api, bench.flag("touch"));
    let shared = SpeedContext {
        api,
        chains,
        objects,
        touch,
        stride,
        blocks: &blocks,
        sizes: &sizes,
        tallies: &tallies,
    };

    let per_step = (bench.threads * objects) as u64;
    let steps: usize = chains.iter().map(|chain| chain.steps().count()).sum();
    let (mut done, mut expected, mut peak) = (KernelWork::default(), KernelWork::default(), 0);
    let (mut measured, mut totals) = (0u64, [Span::default(); DOCUMENT.len()]);
    bench.begin();
    for round in bench.rounds() {
        let mut laps = [Span::default(); DOCUMENT.len()];
        bench.laps(round, count, &shared, |lap, lapse| laps[lap] = lapse.span);
        let mut whole = Span::default();
        laps.iter().for_each(|lap| whole = whole + *lap);
        bench.record(round, whole, 0, per_step * steps as u64);
        if !round.cold {
            totals
                .iter_mut()
                .zip(&laps)
                .for_each(|(total, lap)| *total = *total + *lap);
            measured += 1;
        }
        tallies
            .iter()
            .for_each(|Padded(tally)| done.add(&tally.take()));
        peak = expect(chains, per_step, &sums, &mut expected);
    }
    bench.account(&done, &expected);
    bench.requested_peak(peak);
    for (chain, total) in chains.iter().zip(&totals) {
        let calls = (measured * objects as u64 * chain.steps().count() as u64) as f64;
        bench.figure(
            format_args!("ns_per_call_{}", chain.name),
            total.wall_ns as f64 / calls,
        );
        bench.figure(
            format_args!("minor_faults_{}", chain.name),
            total.minor_faults as f64 / measured as f64,
        );
    }
}

/// One chain, or all chains of the document in sequence in this process.
fn chains(word: &str, carry_over: bool) -> ([Chain<'_>; DOCUMENT.len()], usize) {
    let parse = |name| {
        Chain::parse(name).unwrap_or_else(|| {
            fail::give_up("error", format_args!("`{name}` is no chain of routines"))
        })
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
            // Some libraries free on a reallocation to 0 bytes and others do not: 1 byte instead.
            let least = u32::from(index % DRAWS == REALLOC_DRAW);
            *size = classes.draw(&mut random).max(least);
            sums[index % DRAWS] += u64::from(*size);
        }
    }
    sums
}

/// Adds what one round must do, computed from the chains alone, and returns the peak of live bytes
/// between two steps.
fn expect(
    chains: &[Chain<'_>],
    per_step: u64,
    sums: &[u64; DRAWS],
    expected: &mut KernelWork,
) -> u64 {
    let (mut live, mut peak) = ([0; SETS], 0);
    for chain in chains {
        let first = chain.fills.then_some(ChainStep::FILL);
        let last = chain
            .frees
            .iter()
            .enumerate()
            .filter(|(_, frees)| **frees)
            .map(|(set, _)| ChainStep::free(set));
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
    peak
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
        for (set, _) in self.chains[lap]
            .frees
            .iter()
            .enumerate()
            .filter(|(_, frees)| **frees)
        {
            self.all_objects(worker, ChainStep::free(set));
        }
    }
}

impl SpeedContext<'_> {
    /// One step: a routine for each object of a set.
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
        // SAFETY: ordinary calls; `realloc` and `free` get the blocks of the step before, each
        // block once.
        let work = unsafe {
            match step.call {
                Call::Malloc => {
                    let checksum = self.fill(blocks, sizes, |_, size| malloc(size));
                    KernelWork {
                        malloc: calls,
                        checksum,
                        ..KernelWork::default()
                    }
                }
                Call::Calloc => {
                    let checksum = self.fill(blocks, sizes, |_, size| calloc(1, size));
                    KernelWork {
                        calloc: calls,
                        checksum,
                        ..KernelWork::default()
                    }
                }
                Call::Realloc => {
                    let checksum = self.fill(blocks, sizes, |place, size| {
                        realloc(place.load(Ordering::Relaxed), size)
                    });
                    KernelWork {
                        realloc: calls,
                        checksum,
                        ..KernelWork::default()
                    }
                }
                Call::Free => {
                    blocks
                        .iter()
                        .for_each(|place| free(place.load(Ordering::Relaxed)));
                    KernelWork {
                        free: calls,
                        ..KernelWork::default()
                    }
                }
            }
        };
        let tally = &self.tallies[worker].0;
        let mut sum = tally.get();
        sum.add(&work);
        tally.set(sum);
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
                fail::null("malloc, calloc or realloc", size as usize);
            }
            if self.touch && size > 0 {
                // SAFETY: the block has a first byte.
                unsafe { block.write_volatile(1) };
            }
            place.store(block, Ordering::Relaxed);
            bytes += u64::from(size);
        }
        bytes
    }
}
