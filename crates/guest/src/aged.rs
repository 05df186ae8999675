//! An aged heap below any kernel: before the clock starts, the threads that will work litter the
//! heap, and what is left of the litter stays until the kernel has ended. No kernel knows of it.

use crate::api::Api;
use crate::job::Job;
use crate::litter::Litter;
use crate::memory::{self, Resident, SetOnce};
use crate::report;
use crate::shape_blocks::ShapeThreads;
use crate::sizes::Sizes;
use core::cell::{Cell, OnceCell};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Needed of each byte of litter, at most: a heap with holes, and the harness's tables.
const NEEDED: u64 = 3;

struct AgedHeap {
    api: Api,
    sizes: Sizes,
    bytes: u64,
    /// So many of 100 blocks stay.
    stay: usize,
    seed: u64,
    littered: OnceCell<Littered>,
}

/// The litter of so many threads.
struct Littered {
    threads: usize,
    /// Threads that have come so far.
    come: AtomicUsize,
    litter: Litter,
    /// What each of them did.
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

/// By the main thread, before it creates the threads that work from the start: so many.
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

/// By each thread that works, before the clock starts. Those that are there from the start litter
/// the heap, all at once.
pub fn come() {
    let Some((heap, own)) = AGED
        .get()
        .and_then(|heap| Some((heap, heap.littered.get()?)))
    else {
        return;
    };
    let worker = own.come.fetch_add(1, Relaxed);
    if worker >= own.threads {
        return;
    }
    let thread = own.shape.thread(worker);
    own.litter.scatter(worker, &thread, &heap.sizes);
    if own.litter.is_first_after_all(worker) {
        let now_bytes = Resident::counted().fileless;
        own.grown_bytes
            .set(now_bytes.saturating_sub(own.before_bytes));
    }
}

/// By the main thread, after the clock: frees what is left of the litter, and reports it.
pub fn sweep() {
    let Some(own) = AGED.get().and_then(|heap| heap.littered.get()) else {
        return;
    };
    for (name, value) in [
        ("litter_blocks", own.shape.blocks()),
        ("litter_live_bytes", own.shape.live()),
        ("litter_resident_bytes", own.grown_bytes.get()),
    ] {
        report::say("figure", format_args!("{name} {value}"));
    }
    let thread = own.shape.thread(0);
    (0..own.threads).for_each(|worker| own.litter.sweep(worker, &thread));
    if own.shape.live() > 0 {
        fail!(
            "error",
            "{} bytes of litter were not freed",
            own.shape.live()
        );
    }
}
