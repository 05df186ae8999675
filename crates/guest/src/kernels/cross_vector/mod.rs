//! `cross-vector` (MM): all threads pass over one shared vector, each in its own order; they fill
//! empty slots and empty full ones. With several threads, most blocks are freed by a thread other
//! than the one that allocated them.

mod arrays;

use super::*;
use crate::aged;
use crate::memory;
use crate::purge::PurgeCall;
use crate::rng::MersenneTwister;
use arrays::Arrays;
use core::sync::atomic::AtomicI64;

pub const KERNEL: Kernel = Kernel::timed(
    "cross-vector",
    &[
        "volume", "max-size", "passes", "start", "counting", "purge", "thread",
    ],
    run,
);

/// Bytes of a block's header, which holds the block's own size for the thread that frees the block.
const HEADER: u32 = size_of::<u32>() as u32;
/// If counting is `padded`, a thread sums up the live bytes of all threads once per this many
/// allocations.
const LOOK_EVERY: u64 = 1024;

struct CrossVectorContext<'a> {
    api: Api,
    purge: Option<PurgeCall>,
    passes: u64,
    arrays: &'a Arrays,
    live: LiveBytes,
    tallies: &'a HarnessTable<Padded<Cell<CrossVectorCounts>>>,
}

/// The work of one thread in a round.
#[derive(Clone, Copy, Default)]
struct CrossVectorCounts {
    mallocs: u64,
    frees: u64,
    cas_failures: u64,
    /// Sum of the numbers of the slots that the thread has visited.
    visited: u64,
    /// Highest sum of the live bytes of all threads that this thread has read.
    peak_bytes: i64,
}

/// Each thread's requested live bytes. One thread's count may be negative, since other threads free
/// its blocks.
struct LiveBytes {
    counters: HarnessTable<AtomicI64>,
    stride: usize,
    look_every: u64,
}

impl LiveBytes {
    /// Makes a counter per thread. If `exact`, the counters are adjacent and summed up at every
    /// allocation, as in the document's program.
    fn new(threads: usize, exact: bool) -> LiveBytes {
        let (stride, look_every) = if exact {
            (1, 1)
        } else {
            (128 / size_of::<AtomicI64>(), LOOK_EVERY)
        };
        LiveBytes {
            counters: HarnessTable::zeroed(threads * stride),
            stride,
            look_every,
        }
    }

    fn of(&self, thread: usize) -> &AtomicI64 {
        &self.counters[thread * self.stride]
    }

    fn sum(&self) -> i64 {
        self.counters
            .iter()
            .step_by(self.stride)
            .map(|counter| counter.load(Relaxed))
            .sum()
    }
}

fn run(bench: &mut Bench) {
    let (max, passes) = (bench.number("max-size") as u32, bench.number("passes"));
    let slots = (bench.number("volume") / u64::from(max / 2).max(1)).clamp(1, u64::from(u32::MAX));
    let (exact, counts_purge) = (bench.parameter("counting") == "exact", bench.flag("purge"));
    let threads = bench.threads as u64;
    bench.needs(slots * (u64::from(max / 2) + 4 * threads + 36));
    let tallies = HarnessTable::<Padded<Cell<CrossVectorCounts>>>::zeroed(bench.threads);

    let [mut done, mut expected] = [KernelWork::default(); 2];
    let (mut peak_bytes, mut arrays_bytes, mut cas_failures, mut ops_measured) = (0, 0, 0, 0);
    for round in bench.rounds() {
        bench.begin();
        let mut arrays = Arrays::allocate(&bench.api, slots as usize, bench.threads);
        fill(
            &mut arrays,
            bench.threads,
            max,
            bench.number("start") as u32,
        );
        arrays_bytes = arrays.bytes();
        let shared = CrossVectorContext {
            api: bench.api,
            purge: counts_purge.then_some(bench.purge),
            passes,
            arrays: &arrays,
            live: LiveBytes::new(bench.threads, exact),
            tallies: &tallies,
        };
        let began = bench.play(round, &shared, worker);
        arrays.free(&bench.api);
        let purge_ns = bench.purge(counts_purge);
        let span = began.elapsed();

        let array_count = Arrays::count(bench.threads) as u64;
        let mut work = KernelWork::pairs(array_count, 0);
        for tally in tallies.iter() {
            let tally = tally.take();
            work.malloc += tally.mallocs;
            work.free += tally.frees;
            work.checksum = work.checksum.wrapping_add(tally.visited);
            peak_bytes = peak_bytes.max(tally.peak_bytes);
            cas_failures += if round.cold { 0 } else { tally.cas_failures };
        }
        bench.record_purged(round, span, purge_ns, work.malloc + work.free);
        ops_measured += if round.cold {
            0
        } else {
            work.malloc + work.free
        };
        done.malloc += work.malloc;
        done.free += work.free;
        done.checksum = done.checksum.wrapping_add(work.checksum);
        // A single thread fills the vector in every odd pass. Several threads race for which of
        // them allocates. In any case, every block is freed, and every thread visits every slot in
        // each pass and while clearing.
        expected.malloc += if threads == 1 {
            array_count + slots * passes.div_ceil(2)
        } else {
            work.malloc
        };
        expected.free = expected.malloc;
        let once = (u128::from(slots) * u128::from(slots - 1) / 2) as u64;
        expected.checksum = expected
            .checksum
            .wrapping_add(once.wrapping_mul(threads * (passes + 1)));
    }
    bench.account(&done, &expected);
    let requested = peak_bytes.max(0) as u64 + arrays_bytes;
    bench.requested_peak(requested);
    bench.figure("arrays_bytes", arrays_bytes as f64);
    bench.figure("cas_failures", cas_failures as f64);
    bench.figure(
        "cas_failures_per_million_ops",
        cas_failures as f64 * 1e6 / ops_measured.max(1) as f64,
    );
    bench.figure("counting_exact", f64::from(u8::from(exact)));
    // The document's own formula: peak of the whole process over the requested peak. An aged heap's
    // litter would be in the former alone.
    if !aged::is_ordered() {
        bench.figure(
            "overhead_ratio",
            memory::peak_resident_bytes() as f64 / requested as f64,
        );
    }
}

/// Draws sizes and orders as the document does.
fn fill(arrays: &mut Arrays, threads: usize, max: u32, start: u32) {
    let mut twister = MersenneTwister::new(start);
    // The largest size becomes 0, as in the document's program.
    arrays.sizes().fill_with(|| twister.up_to(max) % max.max(1));
    arrays
        .identity()
        .iter_mut()
        .enumerate()
        .for_each(|(slot, entry)| *entry = slot as u32);
    for thread in 0..threads {
        let mut twister = MersenneTwister::new(thread as u32);
        for last in 0..arrays.identity().len() {
            let (slot, place) = (arrays.identity()[last], twister.up_to(last as u32) as usize);
            let order = arrays.order(thread);
            order[last] = order[place];
            order[place] = slot;
        }
    }
    arrays.vector().fill_with(AtomicPtr::default);
}

fn worker(shared: &CrossVectorContext, index: usize) {
    let api = shared.api;
    let (vector, sizes, order) = shared.arrays.view(index);
    let counter = shared.live.of(index);
    let (mut tally, mut live, mut until_look) =
        (CrossVectorCounts::default(), 0, shared.live.look_every);
    for _ in 0..shared.passes {
        for &slot in order {
            let place = &vector[slot as usize];
            tally.visited = tally.visited.wrapping_add(u64::from(slot));
            if !place.load(Relaxed).is_null() {
                live -= empty(place, api.free, &mut tally.frees);
                counter.store(live, Relaxed);
                continue;
            }
            let bytes = sizes[slot as usize] + HEADER;
            let block = allocate(&api, bytes);
            tally.mallocs += 1;
            live += i64::from(bytes);
            counter.store(live, Relaxed);
            until_look -= 1;
            if until_look == 0 {
                until_look = shared.live.look_every;
                tally.peak_bytes = tally.peak_bytes.max(shared.live.sum());
            }
            if place
                .compare_exchange(ptr::null_mut(), block, Release, Relaxed)
                .is_err()
            {
                // SAFETY: a live block that no other thread has seen.
                unsafe { (api.free)(block) };
                tally.frees += 1;
                tally.cas_failures += 1;
                live -= i64::from(bytes);
                counter.store(live, Relaxed);
            }
        }
        // A pass often ends at a peak: with one thread, every odd pass does.
        tally.peak_bytes = tally.peak_bytes.max(shared.live.sum());
    }
    for &slot in order {
        tally.visited = tally.visited.wrapping_add(u64::from(slot));
        // A thread's own stores are visible to it without a swap, and blocks that other threads
        // store later are cleared by those threads.
        let place = &vector[slot as usize];
        if !place.load(Relaxed).is_null() {
            live -= empty(place, api.free, &mut tally.frees);
            counter.store(live, Relaxed);
        }
    }
    shared.tallies[index].set(tally);
    if let Some(purge) = &shared.purge {
        purge.thread();
    }
}

/// Allocates a block, stores its size in it and writes to each of its pages.
#[inline(always)]
fn allocate(api: &Api, bytes: u32) -> *mut u8 {
    let block = api.block(bytes as usize);
    // SAFETY: all within the block: each block has space for the header, and malloc's blocks are
    // aligned for it.
    unsafe {
        touch::pages(block, bytes as usize);
        block.cast::<u32>().write_volatile(bytes);
    }
    block
}

/// Frees the block in a slot, unless another thread was faster, and returns the block's bytes.
#[inline(always)]
fn empty(place: &AtomicPtr<u8>, free: unsafe extern "C" fn(*mut u8), frees: &mut u64) -> i64 {
    let block = place.swap(ptr::null_mut(), Acquire);
    if block.is_null() {
        return 0;
    }
    *frees += 1;
    // SAFETY: the swap made this thread the owner. The value that is read only counts live bytes.
    unsafe {
        let bytes = block.cast::<u32>().read_volatile();
        free(block);
        i64::from(bytes)
    }
}
