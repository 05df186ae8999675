//! `same-thread` (MM): every thread allocates its share of the blocks, all threads wait for each
//! other, then every thread frees its own blocks.

use super::*;
use crate::purge::PurgeCall;
use crate::rng::MersenneTwister;
use crate::threads::Barrier;
use core::slice;

pub const KERNEL: Kernel = Kernel::timed(
    "same-thread",
    &[
        "volume", "min-size", "max-size", "start", "layout", "touch", "purge", "thread",
    ],
    run,
);

struct SameThreadContext<'a> {
    api: Api,
    purge: Option<PurgeCall>,
    threads: usize,
    /// Whether adjacent entries belong to different threads: the document's own false sharing.
    interleaved: bool,
    touch: bool,
    sizes: &'a [u32],
    pointers: *mut *mut u8,
    all_allocated: Barrier,
    sums: &'a [Padded<Cell<u64>>],
}

// SAFETY: each worker writes only its own entries of `pointers` and its own sum.
unsafe impl Sync for SameThreadContext<'_> {}

fn run(bench: &mut Bench) {
    let (min, max) = (
        bench.number("min-size") as u32,
        bench.number("max-size") as u32,
    );
    let blocks = (bench.number("volume") / u64::from(max / 2).max(1)).max(1) as usize;
    let start = bench.number("start") as u32;
    let (interleaved, touch) = (
        bench.parameter("layout") == "interleaved",
        bench.flag("touch"),
    );
    let counts_purge = bench.flag("purge");
    let mean = (u64::from(min) + u64::from(max)) / 2 + 16;
    bench.needs(blocks as u64 * (mean + 12));
    let sums = HarnessTable::<Padded<Cell<u64>>>::zeroed(bench.threads);

    let [mut done, mut expected] = [KernelWork::default(); 2];
    let mut requested = 0;
    for round in bench.rounds() {
        bench.begin();
        // Both arrays come from the allocator under test, as the document's overhead formula
        // requires.
        let array = |entry_bytes: usize| bench.api.allocate(blocks * entry_bytes);
        let pointers: *mut *mut u8 = array(size_of::<*mut u8>()).cast();
        let sizes_at: *mut u32 = array(size_of::<u32>()).cast();
        // SAFETY: freshly allocated for `blocks` entries; every entry is written before it is read.
        let sizes = unsafe {
            pointers.write_bytes(0, blocks);
            sizes_at.write_bytes(0, blocks);
            slice::from_raw_parts_mut(sizes_at, blocks)
        };
        let mut twister = MersenneTwister::new(start);
        sizes.fill_with(|| min + twister.up_to(max - min));
        requested = sum(sizes);

        let shared = SameThreadContext {
            api: bench.api,
            purge: counts_purge.then_some(bench.purge),
            threads: bench.threads,
            interleaved,
            touch,
            sizes,
            pointers,
            all_allocated: Barrier::default(),
            sums: &sums,
        };
        let began = bench.play(round, &shared, worker);
        // SAFETY: both arrays are live and no worker is left.
        unsafe {
            (bench.api.free)(pointers.cast());
            (bench.api.free)(sizes_at.cast());
        }
        let purge_ns = bench.purge(counts_purge);
        bench.record_purged(round, began.elapsed(), purge_ns, 2 * blocks as u64);

        let read = sums.iter().map(|sum| sum.take()).sum();
        done += KernelWork::pairs(blocks as u64 + 2, read);
        expected += KernelWork::pairs(blocks as u64 + 2, requested);
    }
    bench.account(&done, &expected);
    let arrays = blocks as u64 * (size_of::<*mut u8>() + size_of::<u32>()) as u64;
    bench.requested_peak(requested + arrays);
    // The document's own overhead is (peak - arrays) / requested: the host reads the peak, these
    // are the other two.
    bench.figure("arrays_bytes", arrays as f64);
    bench.figure("requested_sum_bytes", requested as f64);
}

fn worker(shared: &SameThreadContext, index: usize) {
    // Kept in locals, since the compiler must assume that a call to malloc may change `shared`.
    let SameThreadContext {
        sizes,
        pointers,
        touch,
        ..
    } = *shared;
    let blocks = sizes.len();
    let (first, end, step) = if shared.interleaved {
        (index, blocks, shared.threads)
    } else {
        (
            index * blocks / shared.threads,
            (index + 1) * blocks / shared.threads,
            1,
        )
    };
    let api = shared.api;
    let mut sum = 0u64;
    let mut at = first;
    while at < end {
        // SAFETY: below `end`, which is at most `blocks`.
        let size = unsafe { *sizes.get_unchecked(at) } as usize;
        let block = api.allocate(size);
        if touch {
            // SAFETY: the block has that many bytes.
            unsafe { touch::pages(block, size) };
        }
        sum += size as u64;
        // SAFETY: this entry is this worker's.
        unsafe { *pointers.add(at) = block };
        at += step;
    }
    shared.sums[index].set(sum);
    shared.all_allocated.wait(shared.threads);
    at = first;
    while at < end {
        // SAFETY: this worker's entry holds a live block of its own (or NULL for size 0).
        unsafe { (api.free)(*pointers.add(at)) };
        at += step;
    }
    if let Some(purge) = &shared.purge {
        purge.thread();
    }
}
