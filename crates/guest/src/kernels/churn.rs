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
    // Sizes of live blocks are not tracked in the loop; this is the upper bound.
    bench.requested_peak((buffers * count) as u64 * u64::from(sizes.largest()));
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
