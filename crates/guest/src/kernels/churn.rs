//! `churn` (LL): all threads free and allocate at random spots, either in one small shared buffer
//! or each in a buffer of its own.

use super::*;

pub const KERNEL: Kernel = Kernel::timed(
    "churn",
    &["spots", "objects", "sharing", "pad", "classes", "thread"],
    run,
);

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

struct ChurnContext {
    api: Api,
    objects: usize,
    steps: HarnessTable<ChurnStep>,
    tallies: HarnessTable<Padded<ChurnCounts>>,
    spots: HarnessTable<AtomicPtr<u8>>,
    /// Distance from one spot to the next, in entries of `spots`.
    stride: usize,
    /// Number of spots of each thread; 0 if all threads share one buffer.
    private: usize,
}

fn run(bench: &mut Bench) {
    let (count, objects) = (bench.count("spots").max(1), bench.count("objects"));
    let private = bench.parameter("sharing") == "private";
    let stride = if bench.flag("pad") {
        128 / size_of::<AtomicPtr<u8>>()
    } else {
        1
    };
    let sizes = bench.sizes();
    let buffers = if private { bench.threads } else { 1 };
    let mut steps = HarnessTable::<ChurnStep>::zeroed(bench.threads * objects);
    for (index, part) in steps.chunks_mut(objects.max(1)).enumerate() {
        let mut random = SplitMix::new(bench.seed, index as u64);
        for step in part {
            let spot = random.below(count as u32);
            *step = ChurnStep {
                spot,
                size: sizes.draw(&mut random),
            };
        }
    }
    let bytes_per_round: u64 = steps.iter().map(|step| u64::from(step.size)).sum();
    // From the second round on, each begins with the blocks that the last one left.
    let rounds = bench.rounds_in_all().min(2);
    let requested_peak = requested_peak(&steps, objects, count, private, rounds);

    let shared = ChurnContext {
        api: bench.api,
        objects,
        steps,
        tallies: HarnessTable::zeroed(bench.threads),
        spots: HarnessTable::zeroed(buffers * count * stride),
        stride,
        private: if private { count } else { 0 },
    };
    let [mut done, mut expected] = [KernelWork::default(); 2];
    bench.begin();
    for round in bench.rounds() {
        let body = if private { alone } else { among_others };
        let span = bench.play(round, &shared, body).elapsed();
        let mallocs = (bench.threads * objects) as u64;
        let mut work = KernelWork {
            malloc: mallocs,
            ..KernelWork::default()
        };
        for tally in shared.tallies.iter() {
            work.free += tally.freed.get();
            work.checksum += tally.bytes.get();
        }
        bench.record(round, span, mallocs + work.free);
        done += work;
        // Threads race for which of them frees a block, but each block is freed exactly once.
        expected += KernelWork::pairs(mallocs, bytes_per_round);
    }
    for spot in shared.spots.iter() {
        let block = spot.swap(ptr::null_mut(), AcqRel);
        if !block.is_null() {
            // SAFETY: a live block that no worker holds any longer.
            unsafe { (bench.api.free)(block) };
            done.free += 1;
        }
    }
    bench.account(&done, &expected);
    bench.requested_peak(requested_peak);
}

/// The highest sum of the sizes of live blocks: each thread's own, added up, or, if they share the spots, as if they
/// took turns step by step.
fn requested_peak(
    steps: &[ChurnStep],
    objects: usize,
    spots: usize,
    private: bool,
    rounds: u64,
) -> u64 {
    let threads = steps.len() / objects.max(1);
    let mut sizes = HarnessTable::<u32>::zeroed(spots);
    let mut peak_of = |buffer: core::ops::Range<usize>| {
        let (mut live, mut peak) = (0, 0);
        sizes.fill(0);
        for _ in 0..rounds {
            for turn in 0..objects {
                for thread in buffer.clone() {
                    let step = steps[thread * objects + turn];
                    let size = &mut sizes[step.spot as usize];
                    live = live - u64::from(*size) + u64::from(step.size);
                    *size = step.size;
                    peak = peak.max(live);
                }
            }
        }
        peak
    };
    if private {
        (0..threads).map(|thread| peak_of(thread..thread + 1)).sum()
    } else {
        peak_of(0..threads)
    }
}

/// Plays on one buffer for all threads: a swap empties a spot, and a block that another thread
/// stored there in between is freed.
fn among_others(shared: &ChurnContext, index: usize) {
    let api = shared.api;
    let (mut freed, mut bytes) = (0u64, 0u64);
    let steps = &shared.steps[index * shared.objects..(index + 1) * shared.objects];
    for step in steps {
        let spot = &shared.spots[step.spot as usize * shared.stride];
        let old = spot.swap(ptr::null_mut(), AcqRel);
        if !old.is_null() {
            // SAFETY: the swap made this thread the owner of the block.
            unsafe { (api.free)(old) };
            freed += 1;
        }
        let block = api.allocate(step.size as usize);
        bytes += u64::from(step.size);
        let faster = spot.swap(block, AcqRel);
        if !faster.is_null() {
            // SAFETY: as above.
            unsafe { (api.free)(faster) };
            freed += 1;
        }
    }
    shared.tallies[index].freed.set(freed);
    shared.tallies[index].bytes.set(bytes);
}

/// Plays on a buffer per thread, with plain loads and stores.
fn alone(shared: &ChurnContext, index: usize) {
    let api = shared.api;
    let (mut freed, mut bytes) = (0u64, 0u64);
    let spots = &shared.spots[index * shared.private * shared.stride..];
    let steps = &shared.steps[index * shared.objects..(index + 1) * shared.objects];
    for step in steps {
        let spot = &spots[step.spot as usize * shared.stride];
        let old = spot.load(Relaxed);
        if !old.is_null() {
            // SAFETY: only this thread uses this spot.
            unsafe { (api.free)(old) };
            freed += 1;
        }
        spot.store(api.allocate(step.size as usize), Relaxed);
        bytes += u64::from(step.size);
    }
    shared.tallies[index].freed.set(freed);
    shared.tallies[index].bytes.set(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_the_blocks_that_live_at_once() {
        let step = |spot, size| ChurnStep { spot, size };
        // Spot 0 holds 10, then 40; spot 1 holds 20 meanwhile, then 1.
        let steps = [step(0, 10), step(1, 20), step(0, 40), step(1, 1)];
        assert_eq!(requested_peak(&steps, 4, 2, false, 1), 60);
        assert_eq!(requested_peak(&steps, 4, 2, true, 2), 60);
        // Two threads with two steps each: alone each has both its blocks, on shared spots in turns 10, 40, 20 + 40, 20 + 1.
        assert_eq!(requested_peak(&steps, 2, 2, true, 1), 30 + 41);
        assert_eq!(requested_peak(&steps, 2, 2, false, 1), 60);
        // The second round begins with what is left of the first.
        let left = [step(0, 5), step(1, 7), step(0, 1)];
        assert_eq!(requested_peak(&left, 3, 2, false, 1), 12);
        let kept = [step(1, 9), step(0, 5), step(1, 1)];
        assert_eq!(requested_peak(&kept, 3, 2, false, 2), 14);
    }
}
