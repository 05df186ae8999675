//! `fan-in`: many threads allocate, and one only frees: reclaimers, loggers, the garbage of lock-free
//! structures.

use super::{Kernel, MemoryPoints};
use crate::api::Api;
use crate::bench::{Bench, KernelWork};
use crate::fail;
use crate::heap_points::HeapPoints;
use crate::memory::{HarnessTable, Padded};
use crate::retained;
use crate::rng::SplitMix;
use crate::sizes::Sizes;
use crate::sys;
use crate::threads::{Rendezvous, Turns, wait_until};
use crate::timed_phases::Load;
use core::cell::Cell;
use core::hint::spin_loop;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

pub const KERNEL: Kernel = Kernel {
    name: "fan-in",
    calls: &["malloc", "free"],
    parameters: &[
        "producers",
        "live",
        "classes",
        "queue",
        "operations",
        "consumer",
        "order",
    ],
    memory: MemoryPoints::Own,
    has_floor: true,
    run,
};

/// A producer spins so often before it yields to the consumer.
const SPINS: u32 = 64;
/// Frees of a consumer that works for each pair of its own.
const FREES_PER_PAIR: u64 = 64;
/// Most points while the threads work.
const MOST_POINTS: usize = 1000;
/// Time between two points if the threads race.
const BETWEEN_POINTS_MS: u64 = 3;
/// Idle time before the last point.
const IDLE_MS: u64 = 1000;

struct FanInContext<'a> {
    api: Api,
    producers: usize,
    live: usize,
    queue: usize,
    operations: usize,
    consumer: Consumer,
    /// Sizes of a producer's blocks, first those that are live from the start.
    sizes: &'a [u32],
    /// The slot that an operation replaces.
    slots: &'a [u32],
    /// Live blocks of each producer.
    held: &'a [AtomicPtr<u8>],
    /// Their sizes, if memory is measured.
    held_bytes: &'a [AtomicU32],
    /// A ring of each producer's; the consumer empties it.
    rings: &'a [AtomicPtr<u8>],
    /// Sizes of the blocks there, if memory is measured.
    ring_bytes: &'a [AtomicU32],
    counts: &'a [Padded<FanInCounts>],
    producing: AtomicU32,
    working: AtomicU32,
    turns: Turns,
    end: Rendezvous,
}

// SAFETY: `held` and `sizes` of a producer are its own; a ring's entries are atomic.
unsafe impl Sync for FanInContext<'_> {}

/// Whether the thread that frees has ever allocated.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Consumer {
    Virgin,
    Allocates,
    Works,
}

#[derive(Default)]
struct FanInCounts {
    work: Cell<KernelWork>,
    /// Operations that found their place in the ring occupied.
    waited: Cell<u64>,
    /// Read by the thread that takes points.
    allocated_bytes: AtomicU64,
    /// Of the consumer: blocks of the rings that it freed.
    freed: Cell<u64>,
    /// Their bytes, if memory is measured.
    freed_bytes: AtomicU64,
}

fn run(bench: &mut Bench) {
    let producers = bench.count("producers");
    if producers < 1 || bench.threads != producers + 1 {
        let threads = bench.threads;
        fail::give_up(
            "error",
            format_args!("{threads} threads for {producers} producers and a consumer"),
        );
    }
    let (live, queue) = (bench.count("live").max(1), bench.count("queue").max(1));
    let operations = bench.count("operations");
    let classes = Sizes::parse(bench.parameter("classes"));
    let own = live + operations;
    // rpmalloc holds 5.4 times the bound.
    let each = (6.0 * classes.mean() + 64.0) as u64;
    bench.needs((producers * own * 8) as u64 + (producers * (live + queue)) as u64 * each);
    let mut sizes = HarnessTable::<u32>::zeroed(producers * own);
    let mut slots = HarnessTable::<u32>::zeroed(producers * operations);
    for producer in 0..producers {
        let mut random = SplitMix::new(bench.seed, producer as u64);
        sizes[producer * own..][..own]
            .iter_mut()
            .for_each(|size| *size = classes.draw(&mut random));
        slots[producer * operations..][..operations]
            .iter_mut()
            .for_each(|slot| *slot = random.below(live as u32));
    }
    let all: u64 = sizes.iter().map(|&size| u64::from(size)).sum();
    let held = HarnessTable::<AtomicPtr<u8>>::zeroed(producers * live);
    let rings = HarnessTable::<AtomicPtr<u8>>::zeroed(producers * queue);
    let if_measured = |count: usize| if retained::is_wanted() { count } else { 0 };
    let held_bytes = HarnessTable::<AtomicU32>::zeroed(if_measured(producers * live));
    let ring_bytes = HarnessTable::<AtomicU32>::zeroed(if_measured(producers * queue));
    let counts = HarnessTable::<Padded<FanInCounts>>::zeroed(bench.threads);
    let context = FanInContext {
        api: bench.api,
        producers,
        live,
        queue,
        operations,
        consumer: match bench.parameter("consumer") {
            "virgin" => Consumer::Virgin,
            "allocates" => Consumer::Allocates,
            _ => Consumer::Works,
        },
        sizes: &sizes,
        slots: &slots,
        held: &held,
        held_bytes: &held_bytes,
        rings: &rings,
        ring_bytes: &ring_bytes,
        counts: &counts,
        producing: AtomicU32::new(0),
        working: AtomicU32::new(0),
        turns: Turns::of(bench),
        end: Rendezvous::new(bench.threads + 1),
    };
    let points = HeapPoints::new(if_measured(MOST_POINTS + 1));
    let (mut done, mut expected) = (KernelWork::default(), KernelWork::default());
    let (mut waited, mut most, mut most_live) = (0, 0, 0);
    let (mut wall_ns, mut rounds) = (0, 0);
    let (mut idle_bytes, mut volume) = (0, 0);
    bench.begin();
    for round in bench.rounds() {
        context.producing.store(producers as u32, Ordering::Release);
        context
            .working
            .store(bench.threads as u32, Ordering::Release);
        points.begin();
        let mut span = None;
        if points.wanted() {
            let team = bench.gather(&context, |context, worker| context.watched(worker));
            let began = team.release();
            context.look(|| {
                let live_bytes = context.live_bytes();
                let heap = context.turns.point(&points, context.volume(), live_bytes);
                most = most.max(heap);
                most_live = most_live.max(live_bytes);
            });
            sys::sleep_ms(IDLE_MS);
            idle_bytes =
                points.take_touched(context.volume(), context.live_bytes(), context.live_bytes());
            context.end.wait();
            bench.join(round, team, &began);
            span = Some(began.elapsed());
        } else {
            bench.laps(round, 1, &context, |_, lapse| span = Some(lapse.span));
        }
        let span = span.unwrap_or_default();
        if !round.cold {
            wall_ns += span.wall_ns;
            rounds += 1;
        }
        bench.record(round, span, 0, 2 * (producers * operations) as u64);
        volume += context.volume();
        for Padded(counts) in counts.iter() {
            done.add(&counts.work.take());
            waited += counts.waited.replace(0);
            counts.allocated_bytes.store(0, Ordering::Relaxed);
            counts.freed_bytes.store(0, Ordering::Relaxed);
        }
        let freed = counts[producers].0.freed.take();
        let own_pairs = match context.consumer {
            Consumer::Virgin => 0,
            Consumer::Allocates => 1,
            Consumer::Works => freed / FREES_PER_PAIR,
        };
        let blocks = (producers * own) as u64 + own_pairs;
        expected.add(&KernelWork {
            malloc: blocks,
            free: blocks,
            // Blocks handed over.
            checksum: (producers * operations) as u64,
            ..KernelWork::default()
        });
        done.checksum += freed;
    }
    bench.account(&done, &expected);
    let mean_bound = (producers * (live + queue)) as u64 * all / (producers * own) as u64;
    let is_one_size = sizes.iter().all(|size| *size == sizes[0]);
    let bound = if is_one_size || !points.wanted() {
        mean_bound
    } else {
        // How many large blocks can be live at a time is chance.
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
    points.tell(bench);
}

impl FanInContext<'_> {
    /// In a process that measures memory: waits at the end, until the last point has been taken.
    fn watched(&self, worker: usize) {
        self.turns.begin(worker);
        self.before(worker, 0);
        self.timed(worker, 0);
        self.working.fetch_sub(1, Ordering::AcqRel);
        self.turns.leave(worker);
        self.end.wait();
        self.after(worker, 0);
    }

    /// Takes points until all threads have done their work: when all rings are full and when they are
    /// empty, or by the clock.
    fn look(&self, mut point: impl FnMut()) {
        if !self.turns.are_taken() {
            while self.working.load(Ordering::Acquire) > 0 {
                sys::sleep_ms(BETWEEN_POINTS_MS);
                point();
            }
            return;
        }
        self.turns.again();
        let every = (2 * self.operations / self.queue)
            .div_ceil(MOST_POINTS)
            .max(1);
        for turn in 0.. {
            let has_point = turn % every == 0;
            if !self.turns.give(0..self.producers) {
                break;
            }
            if has_point {
                point();
            }
            self.turns.give(self.producers..self.producers + 1);
            if has_point {
                point();
            }
        }
    }

    fn volume(&self) -> u64 {
        let producers = self.counts[..self.producers].iter();
        producers
            .map(|Padded(counts)| counts.allocated_bytes.load(Ordering::Relaxed))
            .sum()
    }

    /// Live bytes if memory is measured; a few blocks too low while threads race.
    fn live_bytes(&self) -> u64 {
        let volume = self.volume();
        let consumer = &self.counts[self.producers].0;
        // Read last: what is freed meanwhile must not count as live.
        volume.saturating_sub(consumer.freed_bytes.load(Ordering::Relaxed))
    }

    fn allocate(&self, size: u32) -> *mut u8 {
        // SAFETY: an ordinary call; every line of the block is touched.
        unsafe {
            let block = (self.api.malloc)(size as usize);
            if block.is_null() && size > 0 {
                fail::null("malloc", size as usize);
            }
            for offset in (0..size as usize).step_by(64) {
                block.add(offset).write_volatile(0);
            }
            block
        }
    }

    fn produce(&self, producer: usize) {
        let counts = &self.counts[producer].0;
        let sizes = &self.sizes[producer * (self.live + self.operations)..][self.live..];
        let slots = &self.slots[producer * self.operations..][..self.operations];
        let held = &self.held[producer * self.live..][..self.live];
        let ring = &self.rings[producer * self.queue..][..self.queue];
        let mut bytes = counts.allocated_bytes.load(Ordering::Relaxed);
        let (mut waited, mut next) = (0, 0);
        for (number, (&slot, &size)) in slots.iter().zip(sizes).enumerate() {
            if number > 0 && number % self.queue == 0 {
                // The ring is full; unless threads race, all of it is freed now.
                self.turns.pass(producer);
            }
            let block = self.allocate(size);
            bytes += u64::from(size);
            counts.allocated_bytes.store(bytes, Ordering::Relaxed);
            let old = held[slot as usize].swap(block, Ordering::Relaxed);
            let place = &ring[next];
            if !place.load(Ordering::Acquire).is_null() {
                waited += 1;
                wait_for_room(place);
            }
            if let Some(ring_bytes) = self.ring_bytes.get(producer * self.queue + next) {
                let held_bytes = &self.held_bytes[producer * self.live + slot as usize];
                ring_bytes.store(held_bytes.swap(size, Ordering::Relaxed), Ordering::Relaxed);
            }
            place.store(old, Ordering::Release);
            next = if next + 1 == ring.len() { 0 } else { next + 1 };
        }
        counts.waited.set(waited);
        self.producing.fetch_sub(1, Ordering::AcqRel);
    }

    fn consume(&self) {
        let counts = &self.counts[self.producers].0;
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
            // Before the scan: what producers handed over until then is found by it.
            let last = self.producing.load(Ordering::Acquire) == 0;
            let before = freed;
            for (index, place) in self.rings.iter().enumerate() {
                if place.load(Ordering::Relaxed).is_null() {
                    continue;
                }
                if let Some(bytes) = self.ring_bytes.get(index) {
                    // Before the producer may use the place again.
                    fence(Ordering::Acquire);
                    freed_bytes += u64::from(bytes.load(Ordering::Relaxed));
                }
                let block = place.swap(ptr::null_mut(), Ordering::AcqRel);
                // SAFETY: handed over, released once.
                unsafe { (self.api.free)(block) };
                freed += 1;
                counts.freed_bytes.store(freed_bytes, Ordering::Relaxed);
                if self.consumer == Consumer::Works && freed % FREES_PER_PAIR == 0 {
                    pair();
                }
            }
            if freed == before {
                if last {
                    break;
                }
                if self.turns.are_taken() {
                    self.turns.pass(self.producers);
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
        if place.load(Ordering::Acquire).is_null() {
            return;
        }
        spin_loop();
    }
    wait_until(|| place.load(Ordering::Acquire).is_null());
}

impl Load for FanInContext<'_> {
    fn before(&self, worker: usize, _lap: usize) {
        if worker == self.producers {
            return;
        }
        let sizes = &self.sizes[worker * (self.live + self.operations)..][..self.live];
        let held = &self.held[worker * self.live..][..self.live];
        for (place, &size) in held.iter().zip(sizes) {
            place.store(self.allocate(size), Ordering::Relaxed);
        }
        let held_bytes = self.held_bytes.iter().skip(worker * self.live);
        for (place, &size) in held_bytes.zip(sizes) {
            place.store(size, Ordering::Relaxed);
        }
        let bytes = sizes.iter().map(|&size| u64::from(size)).sum();
        self.counts[worker]
            .0
            .allocated_bytes
            .store(bytes, Ordering::Relaxed);
    }

    fn timed(&self, worker: usize, _lap: usize) {
        if worker == self.producers {
            self.consume();
        } else {
            self.produce(worker);
        }
    }

    fn after(&self, worker: usize, _lap: usize) {
        if worker == self.producers {
            return;
        }
        for place in &self.held[worker * self.live..][..self.live] {
            // SAFETY: live, released once.
            unsafe { (self.api.free)(place.load(Ordering::Relaxed)) };
        }
        self.counts[worker].0.work.set(KernelWork {
            malloc: (self.live + self.operations) as u64,
            free: self.live as u64,
            ..KernelWork::default()
        });
    }
}
