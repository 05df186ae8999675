//! `fan-in`: many threads allocate, and one thread only frees, as reclaimers, loggers, and the garbage collection of
//! lock-free structures do.

use super::handover::{Handover, MOST_POINTS};
use super::*;
use crate::threads::wait_until;
use core::hint::spin_loop;
use core::sync::atomic::fence;

pub const KERNEL: Kernel = Kernel {
    memory: MemoryPoints::Own,
    ..Kernel::timed(
        "fan-in",
        &[
            "producers",
            "live",
            "classes",
            "queue",
            "operations",
            "consumer",
            "order",
        ],
        run,
    )
};

/// How often a producer spins before it yields to the consumer.
const SPINS: u32 = 64;
/// A working consumer makes one pair of calls of its own per this many frees.
const FREES_PER_PAIR: u64 = 64;
/// Idle time before the last point.
const IDLE_MS: u64 = 1000;

struct FanInContext {
    api: Api,
    threads: Handover,
    live: usize,
    queue: usize,
    operations: usize,
    consumer: Consumer,
    /// Sizes of a producer's blocks, first those that are live from the start.
    sizes: HarnessTable<u32>,
    /// The slot that an operation replaces.
    slots: HarnessTable<u32>,
    /// Live blocks of each producer.
    held: HarnessTable<AtomicPtr<u8>>,
    /// Sizes of the blocks in `held`, if memory is measured.
    held_bytes: HarnessTable<AtomicU32>,
    /// One ring of blocks per producer, which the consumer empties.
    rings: HarnessTable<AtomicPtr<u8>>,
    /// Sizes of the blocks in the rings, if memory is measured.
    ring_bytes: HarnessTable<AtomicU32>,
    counts: HarnessTable<Padded<FanInCounts>>,
    end: Rendezvous,
}

/// Whether the thread that frees ever allocates.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Consumer {
    Virgin,
    Allocates,
    Works,
}

#[derive(Default)]
struct FanInCounts {
    work: Cell<KernelWork>,
    /// Number of operations that found their place in the ring occupied.
    waited: Cell<u64>,
    /// Bytes allocated so far, read by the thread that takes points.
    allocated_bytes: AtomicU64,
    /// Blocks from the rings that the consumer has freed.
    freed: Cell<u64>,
    /// Bytes of the freed blocks, if memory is measured.
    freed_bytes: AtomicU64,
}

fn run(bench: &mut Bench) {
    let producers = bench.count("producers");
    if producers < 1 || bench.threads != producers + 1 {
        let threads = bench.threads;
        fail!(
            "error",
            "{threads} threads for {producers} producers and a consumer"
        );
    }
    let (live, queue) = (bench.count("live").max(1), bench.count("queue").max(1));
    let operations = bench.count("operations");
    let classes = bench.sizes();
    let per_producer = live + operations;
    // rpmalloc holds 5.4 times the bound.
    let each = (6.0 * classes.mean() + 64.0) as u64;
    bench.needs((producers * per_producer * 8) as u64 + (producers * (live + queue)) as u64 * each);
    null::overlap(classes.largest() as usize, bench.threads);
    let mut sizes = HarnessTable::<u32>::zeroed(producers * per_producer);
    let mut slots = HarnessTable::<u32>::zeroed(producers * operations);
    for producer in 0..producers {
        let mut random = SplitMix::new(bench.seed, producer as u64);
        sizes[producer * per_producer..][..per_producer].fill_with(|| classes.draw(&mut random));
        slots[producer * operations..][..operations].fill_with(|| random.below(live as u32));
    }
    let all = sum(&sizes);
    let is_one_size = sizes.iter().all(|size| *size == sizes[0]);
    let if_measured = |count: usize| if retained::is_wanted() { count } else { 0 };
    let context = FanInContext {
        api: bench.api,
        threads: Handover::new(bench, producers, MOST_POINTS + 1),
        live,
        queue,
        operations,
        consumer: match bench.parameter("consumer") {
            "virgin" => Consumer::Virgin,
            "allocates" => Consumer::Allocates,
            _ => Consumer::Works,
        },
        sizes,
        slots,
        held: HarnessTable::zeroed(producers * live),
        held_bytes: HarnessTable::zeroed(if_measured(producers * live)),
        rings: HarnessTable::zeroed(producers * queue),
        ring_bytes: HarnessTable::zeroed(if_measured(producers * queue)),
        counts: HarnessTable::zeroed(bench.threads),
        end: Rendezvous::new(bench.threads + 1),
    };
    let points = &context.threads.points;
    let [mut done, mut expected] = [KernelWork::default(); 2];
    let (mut waited, mut most, mut most_live) = (0, 0, 0);
    let (mut wall_ns, mut rounds) = (0, 0);
    let (mut idle_bytes, mut volume) = (0, 0);
    bench.begin();
    for round in bench.rounds() {
        context.threads.begin();
        let span = if points.wanted() {
            let began = bench.play_beside(round, &context, FanInContext::watched, |_| {
                context.look(|| {
                    let live_bytes = context.live_bytes();
                    let turns = &context.threads.turns;
                    most = most.max(turns.point(points, context.volume(), live_bytes));
                    most_live = most_live.max(live_bytes);
                });
                sys::sleep_ms(IDLE_MS);
                let live_bytes = context.live_bytes();
                idle_bytes = points.take_touched(context.volume(), live_bytes, live_bytes);
                context.end.wait();
            });
            began.elapsed()
        } else {
            bench.lap(round, &context)
        };
        if !round.cold {
            wall_ns += span.wall_ns;
            rounds += 1;
        }
        bench.record(round, span, 2 * (producers * operations) as u64);
        volume += context.volume();
        for counts in context.counts.iter() {
            done += counts.work.take();
            waited += counts.waited.take();
            counts.allocated_bytes.store(0, Relaxed);
            counts.freed_bytes.store(0, Relaxed);
        }
        let freed = context.counts[producers].freed.take();
        let own_pairs = match context.consumer {
            Consumer::Virgin => 0,
            Consumer::Allocates => 1,
            Consumer::Works => freed / FREES_PER_PAIR,
        };
        // Number of blocks handed over.
        let handed = (producers * operations) as u64;
        expected += KernelWork::pairs((producers * per_producer) as u64 + own_pairs, handed);
        done.checksum += freed;
    }
    bench.account(&done, &expected);
    let mean_bound = (producers * (live + queue)) as u64 * all / (producers * per_producer) as u64;
    let bound = if is_one_size || !points.wanted() {
        mean_bound
    } else {
        // The number of large blocks that are live at a time is a matter of chance.
        most_live
    };
    bench.requested_peak(bound);
    let handed = (producers * operations * rounds) as f64;
    if points.wanted() {
        bench.figure("peak_over_bound", most as f64 / bound as f64);
        bench.figure("idle_over_bound", idle_bytes as f64 / bound as f64);
    } else if wall_ns > 0 {
        bench.figure("frees_per_s", handed / wall_ns as f64 * 1e9);
    }
    bench.figure("backpressure_share", waited as f64 / handed.max(1.0));
    points.tell_no_reuse(bench, volume, bound);
    points.tell();
}

impl FanInContext {
    /// Plays a worker's round in a process that measures memory, and waits at the end until the last point has been
    /// taken.
    fn watched(&self, worker: usize) {
        self.threads.work(worker, || {
            self.before(worker, 0);
            self.timed(worker, 0);
        });
        self.end.wait();
        self.after(worker, 0);
    }

    /// Takes points until all threads have done their work: when all rings are full and when they are
    /// empty, or by the clock.
    fn look(&self, mut point: impl FnMut()) {
        let Handover {
            producers, turns, ..
        } = &self.threads;
        if !turns.are_taken() {
            return self.threads.until_done(|| {
                self.threads.pause();
                point();
            });
        }
        turns.again();
        let every = (2 * self.operations / self.queue)
            .div_ceil(MOST_POINTS)
            .max(1);
        for turn in 0.. {
            let has_point = turn % every == 0;
            if !turns.give(0..*producers) {
                break;
            }
            if has_point {
                point();
            }
            turns.give(*producers..producers + 1);
            if has_point {
                point();
            }
        }
    }

    fn volume(&self) -> u64 {
        let producers = self.counts[..self.threads.producers].iter();
        producers
            .map(|counts| counts.allocated_bytes.load(Relaxed))
            .sum()
    }

    /// Returns the live bytes if memory is measured. While threads race, the result is a few blocks too low.
    fn live_bytes(&self) -> u64 {
        let volume = self.volume();
        let consumer = &self.counts[self.threads.producers];
        // The freed bytes are read last, so that blocks freed meanwhile do not count as live.
        volume.saturating_sub(consumer.freed_bytes.load(Relaxed))
    }

    fn allocate(&self, size: u32) -> *mut u8 {
        let block = self.api.allocate(size as usize);
        for offset in (0..size as usize).step_by(64) {
            // SAFETY: within the block; every line is touched.
            unsafe { block.add(offset).write_volatile(0) };
        }
        block
    }

    fn produce(&self, producer: usize) {
        let counts = &self.counts[producer];
        let sizes = &self.sizes[producer * (self.live + self.operations)..][self.live..];
        let slots = self.slots.part(producer, self.operations);
        let held = self.held.part(producer, self.live);
        let ring = self.rings.part(producer, self.queue);
        let mut bytes = counts.allocated_bytes.load(Relaxed);
        let (mut waited, mut next) = (0, 0);
        for (number, (&slot, &size)) in slots.iter().zip(sizes).enumerate() {
            if number > 0 && number % self.queue == 0 {
                // The ring is full; unless threads race, all of it is freed now.
                self.threads.turns.pass(producer);
            }
            let block = self.allocate(size);
            bytes += u64::from(size);
            counts.allocated_bytes.store(bytes, Relaxed);
            let old = held[slot as usize].swap(block, Relaxed);
            let place = &ring[next];
            if !place.load(Acquire).is_null() {
                waited += 1;
                wait_for_room(place);
            }
            if let Some(ring_bytes) = self.ring_bytes.get(producer * self.queue + next) {
                let held_bytes = &self.held_bytes[producer * self.live + slot as usize];
                ring_bytes.store(held_bytes.swap(size, Relaxed), Relaxed);
            }
            place.store(old, Release);
            next = if next + 1 == ring.len() { 0 } else { next + 1 };
        }
        counts.waited.set(waited);
        self.threads.has_produced();
    }

    fn consume(&self) {
        let counts = &self.counts[self.threads.producers];
        let mut work = KernelWork::default();
        let mut pair = || {
            // SAFETY: an ordinary call.
            unsafe { (self.api.free)(self.allocate(64)) };
            work.malloc += 1;
        };
        if self.consumer == Consumer::Allocates {
            pair();
        }
        let (mut freed, mut freed_bytes) = (0, 0);
        loop {
            // The flag is read before the scan, which then finds everything that producers have handed over.
            let last = self.threads.is_produced();
            let before = freed;
            for (index, place) in self.rings.iter().enumerate() {
                if place.load(Relaxed).is_null() {
                    continue;
                }
                if let Some(bytes) = self.ring_bytes.get(index) {
                    // The size is read before the producer may use the place again.
                    fence(Acquire);
                    freed_bytes += u64::from(bytes.load(Relaxed));
                }
                let block = place.swap(ptr::null_mut(), AcqRel);
                // SAFETY: handed over, released once.
                unsafe { (self.api.free)(block) };
                freed += 1;
                counts.freed_bytes.store(freed_bytes, Relaxed);
                if self.consumer == Consumer::Works && freed % FREES_PER_PAIR == 0 {
                    pair();
                }
            }
            if freed == before {
                if last {
                    break;
                }
                let Handover {
                    producers, turns, ..
                } = &self.threads;
                if turns.are_taken() {
                    turns.pass(*producers);
                } else {
                    sys::give_way();
                }
            }
        }
        work.free = work.malloc + freed;
        counts.work.set(work);
        counts.freed.set(freed);
    }
}

/// Spins a little, then yields until the consumer has taken the block.
fn wait_for_room(place: &AtomicPtr<u8>) {
    for _ in 0..SPINS {
        if place.load(Acquire).is_null() {
            return;
        }
        spin_loop();
    }
    wait_until(|| place.load(Acquire).is_null());
}

impl Load for FanInContext {
    fn before(&self, worker: usize, _lap: usize) {
        if worker == self.threads.producers {
            return;
        }
        let sizes = &self.sizes[worker * (self.live + self.operations)..][..self.live];
        let held = self.held.part(worker, self.live);
        for (place, &size) in held.iter().zip(sizes) {
            place.store(self.allocate(size), Relaxed);
        }
        let held_bytes = self.held_bytes.iter().skip(worker * self.live);
        for (place, &size) in held_bytes.zip(sizes) {
            place.store(size, Relaxed);
        }
        self.counts[worker]
            .allocated_bytes
            .store(sum(sizes), Relaxed);
    }

    fn timed(&self, worker: usize, _lap: usize) {
        if worker == self.threads.producers {
            self.consume();
        } else {
            self.produce(worker);
        }
    }

    fn after(&self, worker: usize, _lap: usize) {
        if worker == self.threads.producers {
            return;
        }
        for place in self.held.part(worker, self.live) {
            // SAFETY: live, released once.
            unsafe { (self.api.free)(place.load(Relaxed)) };
        }
        self.counts[worker].work.set(KernelWork {
            malloc: (self.live + self.operations) as u64,
            free: self.live as u64,
            ..KernelWork::default()
        });
    }
}
