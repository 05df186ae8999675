//! `scatter-loops` (RP): threads walk over many slots with a fixed stride, free some blocks,
//! replace others, and hand batches of blocks to each other. Two generations of threads run two
//! sequences each: fresh threads, reuse within a thread, and a warm allocator under new threads.
//!
//! The program behind the document changed after the document was written; both versions are
//! kernels here.

mod mailbox;
mod tables;
mod worker;

use super::*;
use crate::aged;
use crate::bench::Round;
use crate::memory;
use mailbox::{Batch, Desk};
use tables::Distribution;
use worker::{Room, ScatterContext, ScatterCounts};

const PARAMETERS: &[&str] = &[
    "mode",
    "distribution",
    "cross-rate",
    "loops",
    "blocks",
    "ops",
    "min-size",
    "max-size",
    "cap-seconds",
];

/// The present version of the program.
pub const CURRENT: Kernel = Kernel::timed("scatter-loops", PARAMETERS, |bench| run(bench, false));

/// The version that the document describes, from April 2017.
pub const LEGACY: Kernel = Kernel {
    calls: &["malloc", "free", "posix_memalign"],
    ..Kernel::timed("scatter-loops-legacy", PARAMETERS, |bench| run(bench, true))
};

const GENERATIONS: u64 = 2;
const SEQUENCES: u64 = 2;

/// Live bytes and memory at a moment when all threads wait.
#[derive(Clone, Copy, Default)]
struct ScatterSample {
    live_bytes: u64,
    rss_bytes: u64,
    mapped_bytes: u64,
}

/// Sums over the measured rounds, in addition to what every kernel reports.
#[derive(Default)]
struct ScatterTotals {
    ops: u64,
    clock_ns: u64,
    cpu_ns: u64,
    aborted: u64,
    batches: u64,
    peak_bytes: u64,
    sample: ScatterSample,
}

fn run(bench: &mut Bench, legacy: bool) {
    let (blocks, loops, ops) = (
        bench.count("blocks").max(1),
        bench.number("loops"),
        bench.number("ops"),
    );
    let cross_rate = if bench.threads == 1 {
        0
    } else {
        bench.number("cross-rate")
    };
    let cap_s: f64 = bench.parameter("cap-seconds").parse().unwrap_or(f64::MAX);
    let (sizes, fill_sizes) = sizes(bench, legacy);
    let (allocations, frees) = (tables::allocations(ops), tables::frees(ops));

    let mean = sum(&sizes) / sizes.len() as u64;
    let in_batches = if cross_rate > 0 { ops } else { 0 };
    bench.needs(bench.threads as u64 * (blocks as u64 + in_batches) * (mean + 32));
    let tallies = HarnessTable::<Padded<Cell<ScatterCounts>>>::zeroed(bench.threads);
    let mut held = HarnessTable::<u32>::zeroed(bench.threads * blocks);
    let batches_each = if cross_rate > 0 {
        loops.div_ceil(cross_rate) as usize
    } else {
        0
    };
    let mut batches = HarnessTable::<Batch>::reserved(bench.threads * batches_each);
    let most_in_batch = allocations.iter().copied().max().unwrap_or(0) as usize;
    // An array of pointers does not stay intact in blocks that overlap.
    let aside = if null::serves() { bench.threads } else { 0 };
    let mut slots_aside = HarnessTable::<*mut u8>::zeroed(aside * blocks);
    let mut batches_aside = HarnessTable::<*mut u8>::reserved(aside * batches_each * most_in_batch);
    let mut rooms = HarnessTable::<Padded<Cell<Room>>>::reserved(bench.threads);
    for (index, room) in rooms.iter_mut().enumerate() {
        room.set(Room {
            held: held[index * blocks..].as_mut_ptr(),
            batches: batches[index * batches_each..].as_mut_ptr(),
            slots_aside: place(&mut slots_aside, index * blocks),
            batches_aside: place(&mut batches_aside, index * batches_each * most_in_batch),
            most_in_batch,
        });
    }

    let [mut done, mut expected] = [KernelWork::default(); 2];
    let mut totals = ScatterTotals::default();
    bench.begin();
    for round in bench.rounds() {
        let (mut span, mut ops) = (Span::default(), 0);
        for _ in 0..GENERATIONS {
            let desks = HarnessTable::<Padded<Desk>>::zeroed(bench.threads);
            let shared = ScatterContext {
                api: bench.api,
                legacy,
                threads: bench.threads,
                blocks,
                loops,
                cross_rate,
                marked: sizes
                    .iter()
                    .chain(fill_sizes.iter())
                    .all(|&size| size >= worker::MARK_BYTES),
                cap_ns: (cap_s * 1e9) as u64,
                sizes: &sizes,
                fill_sizes: &fill_sizes,
                allocations: &allocations,
                frees: &frees,
                meeting: Rendezvous::new(bench.threads + 1),
                ended: AtomicU64::new(0),
                desks: &desks,
                rooms: &rooms,
                tallies: &tallies,
            };
            span += generation(bench, round, &shared, &mut totals);
            for tally in tallies.iter() {
                let tally = tally.take();
                // The slot array does not count: it is allocated outside the threads' clocks.
                ops += tally.allocations + tally.frees - 2;
                totals.peak_bytes = totals.peak_bytes.max(tally.peak_bytes);
                account(&tally, &shared, &mut done, &mut expected);
                if !round.cold {
                    totals.clock_ns += tally.clock_ns;
                    totals.cpu_ns += tally.cpu_ns;
                    totals.aborted += tally.aborted;
                    totals.batches += tally.batches;
                }
            }
        }
        bench.record(round, span, ops);
        totals.ops += if round.cold { 0 } else { ops };
    }
    bench.account(&done, &expected);
    totals.peak_bytes += (bench.threads * blocks * size_of::<*mut u8>()) as u64;
    report(bench, legacy, &totals);
}

/// Returns a place in a table; null if there is no table.
fn place(table: &mut HarnessTable<*mut u8>, at: usize) -> *mut *mut u8 {
    if table.is_empty() {
        ptr::null_mut()
    } else {
        table[at..].as_mut_ptr()
    }
}

/// Returns the table of sizes, and the table from which the legacy version fills empty slots.
fn sizes(bench: &Bench, legacy: bool) -> (HarnessTable<u32>, HarnessTable<u32>) {
    let (min, max) = (bench.number("min-size"), bench.number("max-size"));
    // The program of 2017 added the smallest size a second time to every random size.
    let twice = if legacy { min } else { 0 };
    if max + twice >= u64::from(u32::MAX) {
        fail!("unsupported", "blocks of up to {} bytes", max + twice);
    }
    if bench.parameter("mode") == "fixed" {
        return (tables::fixed(min as u32), tables::fixed(min as u32));
    }
    let distribution = match bench.parameter("distribution") {
        "even" => Distribution::Even,
        "linear" => Distribution::Linear,
        _ => Distribution::Exponential,
    };
    let (min, max) = ((min + twice) as u32, (max + twice) as u32);
    (
        tables::sizes(distribution, min, max),
        tables::sizes(Distribution::Exponential, min, max),
    )
}

/// Runs one generation of threads. The clock stops while memory is sampled.
fn generation(
    bench: &mut Bench,
    round: Round,
    shared: &ScatterContext,
    totals: &mut ScatterTotals,
) -> Span {
    let team = bench.gather(shared, worker::run);
    let opened = team.let_go();
    // Before this meeting, the threads allocate their slot arrays, which is not counted.
    shared.meeting.wait();
    let mut began = Moment::start();
    shared.meeting.wait();
    let mut span = Span::default();
    for _ in 0..SEQUENCES {
        // All threads end their loops before the first meeting, and free the batches still under
        // way before the second.
        shared.meeting.wait();
        shared.meeting.wait();
        span += began.elapsed();
        if shared.legacy && !round.cold {
            let sample = ScatterSample {
                live_bytes: shared.live_bytes(),
                rss_bytes: memory::Resident::now().rss,
                mapped_bytes: memory::mapped_bytes(),
            };
            totals.peak_bytes = totals.peak_bytes.max(sample.live_bytes);
            let kept = &mut totals.sample;
            if sample.live_bytes > kept.live_bytes || sample.rss_bytes > kept.rss_bytes {
                *kept = sample;
            }
        }
        began = Moment::start();
        shared.meeting.wait();
    }
    bench.join(round, team, &opened);
    span += began.elapsed();
    span
}

/// Adds one thread's work in a generation, and the work that the parameters predict. The number of
/// batches handed over depends on a race, and the number of empty slots follows from the walk, so
/// both are taken as counted; so are the steps of a sequence that reached its cap.
fn account(
    tally: &ScatterCounts,
    shared: &ScatterContext,
    done: &mut KernelWork,
    expected: &mut KernelWork,
) {
    done.malloc += tally.allocations - tally.aligned;
    done.posix_memalign += tally.aligned;
    done.free += tally.frees;
    done.checksum += tally.free_steps;

    let over_sequences = |table: &[u64]| -> u64 {
        (0..SEQUENCES as usize)
            .map(|sequence| tables::steps(table, sequence, shared.loops))
            .sum()
    };
    let (allocation_steps, free_steps) = if tally.aborted == 0 {
        (
            over_sequences(shared.allocations),
            over_sequences(shared.frees),
        )
    } else {
        (tally.allocation_steps, tally.free_steps)
    };
    let slot_array = 1;
    let allocated = slot_array + allocation_steps + tally.beyond_steps;
    expected.malloc += allocated - tally.aligned;
    expected.posix_memalign += tally.aligned;
    expected.free += allocated;
    expected.checksum += free_steps;
    // A legacy thread has filled all its slots before it frees them.
    if shared.legacy {
        done.checksum += tally.released;
        expected.checksum += SEQUENCES * shared.blocks as u64;
    }
}

fn report(bench: &Bench, legacy: bool, totals: &ScatterTotals) {
    let ScatterTotals {
        ops,
        clock_ns,
        cpu_ns,
        peak_bytes,
        sample,
        ..
    } = *totals;
    bench.requested_peak(peak_bytes);
    bench.figure("mops_cpu_ref", ops as f64 * 1e3 / clock_ns.max(1) as f64);
    bench.figure("mops_cpu", ops as f64 * 1e3 / cpu_ns.max(1) as f64);
    bench.figure("batches", totals.batches as f64);
    bench.figure("aborted_sequences", totals.aborted as f64);
    let over = |memory: u64, live: u64| 100.0 * (memory as f64 - live as f64) / live.max(1) as f64;
    let grown = |memory: u64| memory.saturating_sub(bench.outside_bytes());
    // An aged heap's litter is resident, too, and no thread requested it.
    let is_fresh = !aged::is_ordered();
    if is_fresh {
        bench.figure(
            "peak_overhead_percent",
            over(grown(memory::peak_resident_bytes()), peak_bytes),
        );
    }
    if legacy {
        bench.figure("sampled_live_bytes", sample.live_bytes as f64);
        bench.figure("sampled_rss_bytes", sample.rss_bytes as f64);
        bench.figure("sampled_mapped_bytes", sample.mapped_bytes as f64);
    }
    if legacy && is_fresh {
        // The document's own figure, and the same figure without what was resident before the first
        // operation.
        bench.figure(
            "sampled_overhead_percent",
            over(sample.rss_bytes, sample.live_bytes),
        );
        bench.figure(
            "sampled_overhead_net_percent",
            over(grown(sample.rss_bytes), sample.live_bytes),
        );
    }
}
