//! `relay`: batches of messages pass through several threads before the last one frees them.

use super::{Kernel, MemoryPoints};
use crate::api::Api;
use crate::bench::{Bench, KernelWork};
use crate::fail;
use crate::heap_points::HeapPoints;
use crate::memory::{HarnessTable, Padded};
use crate::retained;
use crate::rng::SplitMix;
use crate::sys;
use crate::threads::Turns;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

pub const KERNEL: Kernel = Kernel {
    name: "relay",
    calls: &["malloc", "free"],
    parameters: &[
        "producers",
        "proxies",
        "consumers",
        "batches",
        "outstanding",
        "link",
        "order",
    ],
    memory: MemoryPoints::Own,
    has_floor: true,
    run,
};

/// Messages of a batch, all of one of these sizes.
const MOST_MESSAGES: u32 = 16;
const SIZES: [u64; 4] = [48, 64, 96, 128];
const LARGEST: u64 = 128;
/// Batches that a queue holds.
const QUEUE: usize = 4096;
/// Most points while the threads work.
const MOST_POINTS: usize = 1000;
/// Time between two points if the threads race.
const BETWEEN_POINTS_MS: u64 = 3;

struct RelayContext<'a> {
    api: Api,
    producers: usize,
    consumers: usize,
    batches: usize,
    outstanding: u64,
    /// The messages of a batch are linked inside themselves, so each hop reads them.
    inside: bool,
    drawn: &'a [Drawn],
    /// Of each producer: more than can be under way.
    nodes: &'a [Node],
    /// Of each queue: many threads post, one takes.
    places: &'a [AtomicPtr<Node>],
    /// How often each queue has been posted to.
    tails: &'a [Padded<AtomicU64>],
    counts: &'a [Padded<RelayCounts>],
    producing: AtomicU32,
    /// Messages that are not yet freed.
    under_way: AtomicU64,
    working: AtomicU32,
    turns: Turns,
}

/// A batch, drawn before the clock.
#[derive(Clone, Copy)]
struct Drawn {
    queue: u32,
    messages: u16,
    size: u16,
}

/// A batch under way.
struct Node {
    messages: [AtomicPtr<u8>; MOST_MESSAGES as usize],
    count: AtomicU32,
    size: AtomicU32,
    number: AtomicU64,
    busy: AtomicU32,
}

#[derive(Default)]
struct RelayCounts {
    work: Cell<KernelWork>,
    /// Allocated by a producer, freed by a consumer; read by the thread that takes points.
    bytes: AtomicU64,
    batch_numbers: Cell<u64>,
}

// SAFETY: nodes and queues are made of atomics; each worker uses its own counts.
unsafe impl Sync for RelayContext<'_> {}

fn run(bench: &mut Bench) {
    let [producers, proxies, consumers] =
        ["producers", "proxies", "consumers"].map(|name| bench.count(name));
    if producers * consumers < 1 || bench.threads != producers + proxies + consumers {
        let threads = bench.threads;
        fail::give_up(
            "error",
            format_args!("{threads} threads for {producers} + {proxies} + {consumers}"),
        );
    }
    let (batches, outstanding) = (bench.count("batches"), bench.number("outstanding").max(1));
    let queues = consumers + proxies;
    // Each batch under way has a message at least, and a producer may begin one more.
    let pool = outstanding as usize + 1;
    let tables = producers * (batches * size_of::<Drawn>() + pool * size_of::<Node>());
    bench.needs((tables + queues * QUEUE * 8) as u64 + outstanding * LARGEST);
    let mut drawn = HarnessTable::<Drawn>::zeroed(producers * batches);
    let mut made = KernelWork::default();
    for (producer, own) in drawn.chunks_mut(batches.max(1)).enumerate() {
        let mut random = SplitMix::new(bench.seed, producer as u64);
        for batch in own {
            let messages = 1 + random.below(MOST_MESSAGES);
            *batch = Drawn {
                messages: messages as u16,
                size: SIZES[random.below(SIZES.len() as u32) as usize] as u16,
                queue: random.below(queues as u32),
            };
            made.malloc += u64::from(messages);
        }
    }
    made.free = made.malloc;
    made.checksum = producers as u64 * (batches as u64 * (batches as u64 + 1) / 2);
    let nodes = HarnessTable::<Node>::zeroed(producers * pool);
    let places = HarnessTable::<AtomicPtr<Node>>::zeroed(queues * QUEUE);
    let tails = HarnessTable::<Padded<AtomicU64>>::zeroed(queues);
    let counts = HarnessTable::<Padded<RelayCounts>>::zeroed(bench.threads);
    let context = RelayContext {
        api: bench.api,
        producers,
        consumers,
        batches,
        outstanding,
        inside: bench.parameter("link") == "inside",
        drawn: &drawn,
        nodes: &nodes,
        places: &places,
        tails: &tails,
        counts: &counts,
        producing: AtomicU32::new(0),
        under_way: AtomicU64::new(0),
        working: AtomicU32::new(0),
        turns: Turns::of(bench),
    };
    let points = HeapPoints::new(if retained::is_wanted() {
        MOST_POINTS
    } else {
        0
    });
    let (mut done, mut expected) = (KernelWork::default(), KernelWork::default());
    let (mut most, mut posts, mut rounds, mut volume) = (0, 0, 0, 0);
    bench.begin();
    for round in bench.rounds() {
        context.producing.store(producers as u32, Ordering::Release);
        context
            .working
            .store(bench.threads as u32, Ordering::Release);
        points.begin();
        let team = bench.gather(&context, |context, worker| context.work(worker));
        let began = team.release();
        if points.wanted() {
            context.look(made.malloc, || {
                let [made, freed] = context.bytes();
                let live = made.saturating_sub(freed);
                most = most.max(context.turns.point(&points, made, live));
            });
        }
        bench.join(round, team, &began);
        bench.record(round, began.elapsed(), 0, 2 * made.malloc);
        volume += context.bytes()[0];
        most = most.max(points.take(volume, 0));
        for Padded(counts) in counts.iter() {
            done.add(&counts.work.take());
            done.checksum += counts.batch_numbers.take();
            counts.bytes.store(0, Ordering::Relaxed);
        }
        posts += tails
            .iter()
            .map(|Padded(tail)| tail.swap(0, Ordering::Relaxed))
            .sum::<u64>();
        expected.add(&made);
        rounds += 1;
    }
    bench.account(&done, &expected);
    let bound = outstanding * LARGEST;
    bench.requested_peak(bound);
    bench.figure(
        "hops_per_batch",
        posts as f64 / (producers * batches * rounds).max(1) as f64,
    );
    if points.wanted() {
        bench.figure("peak_over_bound", most as f64 / bound as f64);
    }
    points.tell_no_reuse(bench, volume, bound);
    points.tell(bench);
}

impl RelayContext<'_> {
    /// Takes points until all threads have done their work: when as many messages are under way as
    /// may be and when all are freed, or by the clock.
    fn look(&self, messages: u64, mut point: impl FnMut()) {
        if !self.turns.are_taken() {
            while self.working.load(Ordering::Acquire) > 0 {
                point();
                sys::sleep_ms(BETWEEN_POINTS_MS);
            }
            return;
        }
        self.turns.again();
        let consumers = self.producers..self.producers + self.consumers;
        let all = self.counts.len();
        let every = (2 * messages / self.outstanding)
            .div_ceil(MOST_POINTS as u64)
            .max(1);
        for turn in 0.. {
            let has_point = turn % every == 0;
            let mut any = self.turns.give(0..self.producers);
            if has_point {
                point();
            }
            // Proxies post to lower queues only: after these turns no message is under way.
            any |= self.turns.give((consumers.end..all).rev());
            any |= self.turns.give(consumers.clone());
            if has_point {
                point();
            }
            if !any {
                break;
            }
        }
    }

    /// How many messages may be under way before a producer makes more: in turns each has its share.
    fn most_under_way(&self, producer: usize) -> u64 {
        if self.turns.are_taken() {
            self.outstanding * (producer as u64 + 1) / self.producers as u64
        } else {
            self.outstanding
        }
    }

    fn work(&self, worker: usize) {
        self.turns.begin(worker);
        match worker.checked_sub(self.producers) {
            None => self.produce(worker),
            Some(queue) if queue < self.consumers => self.consume(worker, queue),
            Some(queue) => self.pass_on(worker, queue),
        }
        self.working.fetch_sub(1, Ordering::AcqRel);
        self.turns.leave(worker);
    }

    /// Bytes allocated, and bytes freed.
    fn bytes(&self) -> [u64; 2] {
        let (producers, others) = self.counts.split_at(self.producers);
        [producers, others].map(|workers| {
            let bytes = workers
                .iter()
                .map(|Padded(counts)| counts.bytes.load(Ordering::Relaxed));
            bytes.sum()
        })
    }

    fn produce(&self, producer: usize) {
        let own = self.nodes.len() / self.producers;
        let nodes = &self.nodes[producer * own..][..own];
        let drawn = &self.drawn[producer * self.batches..][..self.batches];
        let counts = &self.counts[producer].0;
        let most = self.most_under_way(producer);
        let (mut next, mut bytes) = (0, 0);
        let mut work = KernelWork::default();
        for (number, batch) in drawn.iter().enumerate() {
            let has_room = || self.under_way.load(Ordering::Acquire) <= most;
            self.turns.wait(producer, has_room);
            self.under_way
                .fetch_add(u64::from(batch.messages), Ordering::AcqRel);
            while nodes[next].busy.load(Ordering::Acquire) != 0 {
                next = (next + 1) % own;
            }
            let node = &nodes[next];
            node.busy.store(1, Ordering::Relaxed);
            node.count
                .store(u32::from(batch.messages), Ordering::Relaxed);
            node.size.store(u32::from(batch.size), Ordering::Relaxed);
            node.number.store(number as u64 + 1, Ordering::Relaxed);
            let mut linked = ptr::null_mut();
            for place in &node.messages[..usize::from(batch.messages)] {
                // SAFETY: an ordinary call; the block has at least a pointer's bytes.
                unsafe {
                    let message = (self.api.malloc)(usize::from(batch.size));
                    if message.is_null() {
                        fail::null("malloc", usize::from(batch.size));
                    }
                    message.cast::<*mut u8>().write_volatile(linked);
                    message.add(usize::from(batch.size) - 1).write_volatile(0);
                    linked = message;
                }
                place.store(linked, Ordering::Relaxed);
            }
            work.malloc += u64::from(batch.messages);
            bytes += u64::from(batch.messages) * u64::from(batch.size);
            counts.bytes.store(bytes, Ordering::Relaxed);
            self.post(producer, batch.queue as usize, node);
        }
        counts.work.set(work);
        self.producing.fetch_sub(1, Ordering::AcqRel);
    }

    fn post(&self, worker: usize, queue: usize, node: &Node) {
        let ticket = self.tails[queue].0.fetch_add(1, Ordering::AcqRel) as usize;
        let place = &self.places[queue * QUEUE + ticket % QUEUE];
        self.turns
            .wait(worker, || place.load(Ordering::Acquire).is_null());
        place.store(ptr::from_ref(node).cast_mut(), Ordering::Release);
    }

    /// The batches of a queue in their order, until all messages of all producers are freed.
    fn each(&self, worker: usize, queue: usize, mut with: impl FnMut(&Node)) {
        let mut next = 0;
        loop {
            let place = &self.places[queue * QUEUE + next % QUEUE];
            let goes_on = || !place.load(Ordering::Acquire).is_null() || self.is_over();
            self.turns.wait(worker, goes_on);
            let node = place.swap(ptr::null_mut(), Ordering::AcqRel);
            // SAFETY: null, or a node of the table, which its producer does not touch before it is
            // free again.
            let Some(node) = (unsafe { node.as_ref() }) else {
                return;
            };
            next += 1;
            if self.inside {
                read_through(node);
            }
            with(node);
        }
    }

    fn is_over(&self) -> bool {
        self.producing.load(Ordering::Acquire) == 0 && self.under_way.load(Ordering::Acquire) == 0
    }

    /// A proxy posts to a queue with a lower number than its own.
    fn pass_on(&self, worker: usize, queue: usize) {
        let mut random = SplitMix::new(queue as u64, 0);
        self.each(worker, queue, |node| {
            self.post(worker, random.below(queue as u32) as usize, node)
        });
    }

    fn consume(&self, worker: usize, queue: usize) {
        let counts = &self.counts[worker].0;
        let mut work = KernelWork::default();
        let (mut bytes, mut numbers) = (0, 0);
        self.each(worker, queue, |node| {
            let count = node.count.load(Ordering::Relaxed);
            for place in &node.messages[..count as usize] {
                // SAFETY: live, released once.
                unsafe { (self.api.free)(place.load(Ordering::Relaxed)) };
            }
            work.free += u64::from(count);
            bytes += u64::from(count) * u64::from(node.size.load(Ordering::Relaxed));
            counts.bytes.store(bytes, Ordering::Relaxed);
            numbers += node.number.load(Ordering::Relaxed);
            node.busy.store(0, Ordering::Release);
            self.under_way.fetch_sub(u64::from(count), Ordering::AcqRel);
        });
        counts.work.set(work);
        counts.batch_numbers.set(numbers);
    }
}

/// Follows the links from the last message to the first one.
fn read_through(node: &Node) {
    let count = node.count.load(Ordering::Relaxed) as usize;
    let mut message = node.messages[count - 1].load(Ordering::Relaxed);
    for _ in 1..count {
        // SAFETY: each but the first one begins with the address of the one before it.
        message = unsafe { message.cast::<*mut u8>().read_volatile() };
    }
}
