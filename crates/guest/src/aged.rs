//! An aged heap for any kernel: before the clock starts, the threads that will work litter the
//! heap, and what is left of the litter stays until the kernel has ended. Kernels need no code for
//! that.

use crate::api::Api;
use crate::job::Job;
use crate::litter::Litter;
use crate::memory::{self, Resident, SetOnce};
use crate::report;
use crate::shape_blocks::ShapeThreads;
use crate::sizes::Sizes;
use core::cell::{Cell, OnceCell};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes needed per byte of litter, at most: for a heap with holes, and for the harness's tables.
const NEEDED: u64 = 3;

struct AgedHeap {
    api: Api,
    sizes: Sizes,
    bytes: u64,
    /// How many of every 100 blocks stay.
    stay: usize,
    seed: u64,
    littered: OnceCell<Littered>,
}

/// The litter made by the threads that work from the start.
struct Littered {
    threads: usize,
    /// Number of threads that have arrived so far.
    come: AtomicUsize,
    litter: Litter,
    /// What each thread allocated and freed.
    shape: ShapeThreads,
    before_bytes: u64,
    grown_bytes: Cell<u64>,
}

static AGED: SetOnce<AgedHeap> = SetOnce::unset();

/// Reads the setting from the job: bytes and sizes of the litter, and how much of it stays.
pub fn order(job: &Job<'_>, api: Api) {
    if job.get("litter.bytes").is_none() {
        return;
    }
    AGED.set(AgedHeap {
        api,
        sizes: Sizes::parse(job.word("litter.sizes")),
        bytes: job.number("litter.bytes"),
        stay: job.number("litter.stay") as usize,
        seed: job.number("seed"),
        littered: OnceCell::new(),
    });
}

/// Whether this process's memory may hold litter: then no figure compares it with what the kernel
/// requested.
pub fn is_ordered() -> bool {
    AGED.get().is_some()
}

/// Prepares the litter; called by the main thread before it creates the `threads` threads that work
/// from the start.
pub fn prepare(threads: usize) {
    let Some(heap) = AGED.get() else {
        return;
    };
    let needed = NEEDED * heap.bytes;
    if let Some(available) = memory::available_bytes().filter(|available| needed > *available) {
        fail!(
            "unsupported",
            "an aged heap needs about {} MiB, {} MiB are available",
            needed >> 20,
            available >> 20
        );
    }
    heap.littered.get_or_init(|| Littered {
        threads,
        come: AtomicUsize::new(0),
        litter: Litter::new(threads, heap.bytes, heap.stay, &heap.sizes, heap.seed),
        shape: ShapeThreads::new(heap.api, threads),
        before_bytes: Resident::counted().fileless,
        grown_bytes: Cell::new(0),
    });
}

/// Litters the heap if the calling thread works from the start; all these threads do so at once.
/// Called by each working thread before the clock starts.
pub fn come() {
    let Some((heap, littered)) = AGED
        .get()
        .and_then(|heap| Some((heap, heap.littered.get()?)))
    else {
        return;
    };
    let worker = littered.come.fetch_add(1, Relaxed);
    if worker >= littered.threads {
        return;
    }
    let thread = littered.shape.thread(worker);
    littered.litter.scatter(worker, &thread, &heap.sizes);
    if littered.litter.is_first_after_all(worker) {
        let now_bytes = Resident::counted().fileless;
        littered
            .grown_bytes
            .set(now_bytes.saturating_sub(littered.before_bytes));
    }
}

/// Frees what is left of the litter, and reports it; called by the main thread after the clock has
/// stopped.
pub fn sweep() {
    let Some(littered) = AGED.get().and_then(|heap| heap.littered.get()) else {
        return;
    };
    for (name, value) in [
        ("litter_blocks", littered.shape.blocks()),
        ("litter_live_bytes", littered.shape.live()),
        ("litter_resident_bytes", littered.grown_bytes.get()),
    ] {
        report::say("figure", format_args!("{name} {value}"));
    }
    let thread = littered.shape.thread(0);
    (0..littered.threads).for_each(|worker| littered.litter.sweep(worker, &thread));
    if littered.shape.live() > 0 {
        fail!(
            "error",
            "{} bytes of litter were not freed",
            littered.shape.live()
        );
    }
}
