//! `memory` (LL): each producer allocates objects for its consumers in turn; a consumer waits for a
//! round of objects and frees them. The result is how much memory the process holds over time.

use super::*;
use crate::published;
use crate::watched;
use heapmark_wire::{Ledger, Watched};

pub const KERNEL: Kernel = Kernel::timed(
    "memory",
    &[
        "producers",
        "consumers",
        "objects",
        "n-per",
        "round",
        "touch",
        "sample",
        "every",
        "classes",
    ],
    run,
);

/// A producer reads the live bytes once per this many objects, since each reading costs a cache
/// miss per thread. Frees begin when a round is handed over, so the producer also reads them before
/// that, but not before every one of many short rounds.
const PEAK_EVERY: usize = 1024;

/// Upper bound of a point's size, in the guest's file and while the host reads it.
const POINT_BYTES: u64 = 16 << 10;

struct MemoryContext<'a> {
    api: Api,
    producers: usize,
    /// Number of consumers of each producer.
    consumers: usize,
    /// Number of objects that each producer allocates.
    objects: usize,
    round: usize,
    touch: bool,
    /// Number of operations from one point of the series to the next.
    every: usize,
    /// Sizes in the order of allocation, producer by producer.
    sizes: HarnessTable<u32>,
    /// Objects, indexed like `sizes`. Consumer c of a producer owns entries c, c + consumers, c + 2
    /// consumers, ... as its buffer.
    buffers: HarnessTable<Cell<*mut u8>>,
    filled: HarnessTable<Padded<Level>>,
    ledgers: &'a [Ledger],
    tallies: HarnessTable<Padded<MemoryCounts>>,
    watched: &'a Watched,
}

#[derive(Default)]
struct MemoryCounts {
    calls: Cell<u64>,
    bytes: Cell<u64>,
    peak_bytes: Cell<u64>,
}

fn run(bench: &mut Bench) {
    let (producers, consumers) = (bench.count("producers"), bench.count("consumers"));
    if bench.threads != producers + producers * consumers {
        fail!(
            "error",
            "{} threads for {producers} x {consumers}",
            bench.threads
        );
    }
    let per_consumer = bench.parameter("n-per") == "consumer";
    let objects = bench
        .count("objects")
        .saturating_mul(if per_consumer { consumers } else { 1 });
    let sizes = bench.sizes();
    let all = producers.saturating_mul(objects);
    let per_op = bench.parameter("sample") == "per-op";
    let every = if per_op {
        bench.count("every").max(1)
    } else {
        usize::MAX
    };
    // The harness keeps a size and a pointer for each object (12 bytes); 32 bytes allow for what
    // allocators add and round up to.
    let objects_bytes = (all as u64).saturating_mul(u64::from(sizes.largest()) + 32 + 12);
    // Points are kept as text until the process has ended: a few KiB each.
    let points = if published::wanted() {
        all.saturating_mul(2) / every
    } else {
        0
    };
    bench.needs(objects_bytes.saturating_add((points as u64).saturating_mul(POINT_BYTES)));
    let drawn = sizes.table(producers, objects, bench.seed, 0);
    let bytes_per_round = sum(&drawn);
    let shared = MemoryContext {
        api: bench.api,
        producers,
        consumers,
        objects,
        round: bench.count("round").max(1),
        touch: bench.flag("touch"),
        every,
        sizes: drawn,
        buffers: HarnessTable::zeroed(all),
        filled: HarnessTable::zeroed(producers * consumers),
        ledgers: bench.ledgers(),
        tallies: HarnessTable::zeroed(bench.threads),
        watched: bench.watched(),
    };

    let [mut done, mut expected] = [KernelWork::default(); 2];
    bench.begin();
    for round in bench.rounds() {
        shared.filled.iter().for_each(|level| level.empty());
        let body = |shared: &MemoryContext, index: usize| match index.checked_sub(shared.producers)
        {
            None => produce(shared, index),
            Some(consumer) => consume(shared, consumer),
        };
        let span = bench.play(round, &shared, body).elapsed();
        bench.record(round, span, 2 * all as u64);
        for (index, tally) in shared.tallies.iter().enumerate() {
            let calls = if index < producers {
                &mut done.malloc
            } else {
                &mut done.free
            };
            *calls += tally.calls.take();
            done.checksum += tally.bytes.take();
        }
        // Each object's bytes are counted once at allocation and once at free.
        expected += KernelWork::pairs(all as u64, 2 * bytes_per_round);
    }
    bench.account(&done, &expected);
    let peaks = shared.tallies.iter().map(|tally| tally.peak_bytes.get());
    bench.requested_peak(peaks.max().unwrap_or(0));
    bench.figure("requested_sum_bytes", bytes_per_round as f64);
}

fn produce(shared: &MemoryContext, producer: usize) {
    let range = producer * shared.objects..(producer + 1) * shared.objects;
    let (sizes, buffers) = (&shared.sizes[range.clone()], &shared.buffers[range]);
    let filled = shared.filled.part(producer, shared.consumers);
    let (ledger, tally) = (&shared.ledgers[producer], &shared.tallies[producer]);
    let look = || {
        tally.peak_bytes.set(
            tally
                .peak_bytes
                .get()
                .max(shared.watched.live_bytes().unwrap_or(0)),
        )
    };
    // `row` is the number of objects that the current consumer got before this object.
    let (mut row, mut consumer, mut full_at) = (0, 0, shared.round);
    let (mut until_point, mut look_from, mut bytes) = (shared.every, 0, 0);
    for (index, (&size, buffer)) in sizes.iter().zip(buffers).enumerate() {
        buffer.set(allocate(shared, size));
        bytes += u64::from(size);
        ledger.request(u64::from(size));
        // The point is taken before the consumer is notified; otherwise the consumer's frees would
        // be part of it.
        until_point -= 1;
        if until_point == 0 {
            until_point = shared.every;
            watched::record();
        }
        if index % PEAK_EVERY == 0 {
            look();
        }
        if row + 1 == full_at {
            if index >= look_from {
                look_from = index + PEAK_EVERY;
                look();
            }
            filled[consumer].raise(full_at as u32);
        }
        consumer += 1;
        if consumer == shared.consumers {
            (row, consumer) = (row + 1, 0);
            full_at += if row == full_at { shared.round } else { 0 };
        }
    }
    look();
    for (consumer, level) in filled.iter().enumerate() {
        level.raise(quota(shared, consumer) as u32);
    }
    tally.calls.set(sizes.len() as u64);
    tally.bytes.set(bytes);
}

/// Does the work of one consumer; `index` counts the consumers of all producers.
fn consume(shared: &MemoryContext, index: usize) {
    let (producer, consumer) = (index / shared.consumers, index % shared.consumers);
    let range = producer * shared.objects..(producer + 1) * shared.objects;
    let (sizes, buffers) = (&shared.sizes[range.clone()], &shared.buffers[range]);
    let free = shared.api.free;
    let (ledger, tally) = (
        &shared.ledgers[shared.producers + index],
        &shared.tallies[shared.producers + index],
    );
    let (mut freed, mut until_point, mut bytes) = (0, shared.every, 0);
    let quota = quota(shared, consumer);
    while freed < quota {
        let end = (freed + shared.round).min(quota);
        shared.filled[index].wait_for(end as u32);
        for turn in freed..end {
            let place = turn * shared.consumers + consumer;
            let size = u64::from(sizes[place]);
            ledger.release(size);
            // SAFETY: the producer published it, and only this thread frees it.
            unsafe { free(buffers[place].get()) };
            bytes += size;
            until_point -= 1;
            if until_point == 0 {
                until_point = shared.every;
                watched::record();
            }
        }
        freed = end;
    }
    tally.calls.set(quota as u64);
    tally.bytes.set(bytes);
}

/// Returns the number of objects that this consumer gets from its producer.
fn quota(shared: &MemoryContext, consumer: usize) -> usize {
    (shared.objects + shared.consumers - 1 - consumer) / shared.consumers
}

#[inline(always)]
fn allocate(shared: &MemoryContext, size: u32) -> *mut u8 {
    let block = shared.api.allocate(size as usize);
    if shared.touch {
        // SAFETY: the block has that many bytes.
        unsafe { touch::pages(block, size as usize) };
    }
    block
}

/// The number of objects in a buffer. A waiting consumer sleeps in the kernel: if threads outnumber
/// CPUs, a spinning consumer would take a CPU that the producers need.
#[derive(Default)]
struct Level {
    objects: AtomicU32,
}

impl Level {
    fn empty(&self) {
        self.objects.store(0, Relaxed);
    }

    fn raise(&self, objects: u32) {
        self.objects.store(objects, Release);
        sys::wake(self.objects.as_ptr(), 1);
    }

    fn wait_for(&self, objects: u32) {
        loop {
            let filled = self.objects.load(Acquire);
            if filled >= objects {
                return;
            }
            // The call returns at once if the level has risen in the meantime.
            sys::sleep_on(self.objects.as_ptr(), filled);
        }
    }
}
