//! `churn` (LL): all threads free and allocate at random spots, either of one small shared buffer
//! or each of a buffer of its own.

use super::{Kernel, MemoryPoints};
use crate::api::Api;
use crate::bench::{Bench, KernelWork};
use crate::fail;
use crate::memory::{HarnessTable, Padded};
use crate::rng::SplitMix;
use crate::sizes::Sizes;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

pub const KERNEL: Kernel = Kernel {
    name: "churn",
    calls: &["malloc", "free"],
    parameters: &["spots", "objects", "sharing", "pad", "classes", "thread"],
    memory: MemoryPoints::Sampled,
    has_floor: true,
    run,
};

/// One step of a worker, drawn before the clock starts.
#[derive(Clone, Copy)]
struct ChurnStep {
    spot: u32,
    size: u32,
}

#[derive(Default)]
struct ChurnCounts {
    freed: Cell<u64>,
    bytes: Cell<u64>,
}

struct ChurnContext<'a> {
    api: Api,
    objects: usize,
    steps: &'a [ChurnStep],
    tallies: &'a [Padded<ChurnCounts>],
    spots: &'a [AtomicPtr<u8>],
    /// Entries of `spots` from one spot to the next.
    stride: usize,
    /// Spots of each thread; 0 if all share one buffer.
    private: usize,
}

// SAFETY: each worker uses its own steps and its own tally; spots are atomic.
unsafe impl Sync for ChurnContext<'_> {}

fn run(bench: &mut Bench) {
    let (count, objects) = (bench.count("spots").max(1), bench.count("objects"));
    let private = bench.parameter("sharing") == "private";
    let stride = if bench.flag("pad") {
        128 / size_of::<AtomicPtr<u8>>()
    } else {
        1
    };
    let sizes = Sizes::parse(bench.parameter("classes"));
    let buffers = if private { bench.threads } else { 1 };
    let spots = HarnessTable::<AtomicPtr<u8>>::zeroed(buffers * count * stride);
    let tallies = HarnessTable::<Padded<ChurnCounts>>::zeroed(bench.threads);
    let mut steps = HarnessTable::<ChurnStep>::zeroed(bench.threads * objects);
    for (index, own) in steps.chunks_mut(objects.max(1)).enumerate() {
        let mut random = SplitMix::new(bench.seed, index as u64);
        for step in own {
            let spot = random.below(count as u32);
            *step = ChurnStep {
                spot,
                size: sizes.draw(&mut random),
            };
        }
    }
    let bytes_per_round: u64 = steps.iter().map(|step| u64::from(step.size)).sum();

    let shared = ChurnContext {
        api: bench.api,
        objects,
        steps: &steps,
        tallies: &tallies,
        spots: &spots,
        stride,
        private: if private { count } else { 0 },
    };
    let (mut done, mut expected) = (KernelWork::default(), KernelWork::default());
    bench.begin();
    for round in bench.rounds() {
        let team = bench.gather(&shared, if private { alone } else { among_others });
        let began = team.release();
        bench.join(round, team, &began);
        let span = began.elapsed();
        let freed: u64 = tallies
            .iter()
            .map(|Padded(tally)| tally.freed.replace(0))
            .sum();
        let mallocs = (bench.threads * objects) as u64;
        bench.record(round, span, 0, mallocs + freed);
        done.malloc += mallocs;
        done.free += freed;
        done.checksum += tallies
            .iter()
            .map(|Padded(tally)| tally.bytes.replace(0))
            .sum::<u64>();
        expected.malloc += mallocs;
        expected.checksum += bytes_per_round;
    }
    for spot in spots.iter() {
        let block = spot.swap(ptr::null_mut(), Ordering::AcqRel);
        if !block.is_null() {
            // SAFETY: a live block that no worker holds any longer.
            unsafe { (bench.api.free)(block) };
            done.free += 1;
        }
    }
    // Which thread frees a block is a race; that each block is freed once is not.
    expected.free = expected.malloc;
    bench.account(&done, &expected);
    // Sizes of live blocks are not tracked in the loop; this is the upper bound.
    bench.requested_peak((buffers * count) as u64 * u64::from(sizes.largest()));
}

/// One buffer for all threads: a swap empties a spot, and a block that another thread stored there
/// in between is freed.
fn among_others(shared: &ChurnContext, index: usize) {
    let Api { malloc, free, .. } = shared.api;
    let (mut freed, mut bytes) = (0u64, 0u64);
    let steps = &shared.steps[index * shared.objects..(index + 1) * shared.objects];
    for step in steps {
        let spot = &shared.spots[step.spot as usize * shared.stride];
        let old = spot.swap(ptr::null_mut(), Ordering::AcqRel);
        if !old.is_null() {
            // SAFETY: the swap made this thread the owner of the block.
            unsafe { free(old) };
            freed += 1;
        }
        let block = allocate(malloc, step.size);
        bytes += u64::from(step.size);
        let faster = spot.swap(block, Ordering::AcqRel);
        if !faster.is_null() {
            // SAFETY: as above.
            unsafe { free(faster) };
            freed += 1;
        }
    }
    shared.tallies[index].0.freed.set(freed);
    shared.tallies[index].0.bytes.set(bytes);
}

/// A buffer per thread: plain loads and stores.
fn alone(shared: &ChurnContext, index: usize) {
    let Api { malloc, free, .. } = shared.api;
    let (mut freed, mut bytes) = (0u64, 0u64);
    let own = &shared.spots[index * shared.private * shared.stride..];
    let steps = &shared.steps[index * shared.objects..(index + 1) * shared.objects];
    for step in steps {
        let spot = &own[step.spot as usize * shared.stride];
        let old = spot.load(Ordering::Relaxed);
        if !old.is_null() {
            // SAFETY: only this thread uses this spot.
            unsafe { free(old) };
            freed += 1;
        }
        spot.store(allocate(malloc, step.size), Ordering::Relaxed);
        bytes += u64::from(step.size);
    }
    shared.tallies[index].0.freed.set(freed);
    shared.tallies[index].0.bytes.set(bytes);
}

#[inline(always)]
fn allocate(malloc: unsafe extern "C" fn(usize) -> *mut u8, size: u32) -> *mut u8 {
    // SAFETY: an ordinary call.
    let block = unsafe { malloc(size as usize) };
    if block.is_null() && size > 0 {
        fail::null("malloc", size as usize);
    }
    block
}
