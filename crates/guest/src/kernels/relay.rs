//! `relay`: batches of messages pass through several threads before the last thread frees them.

use super::handover::{Handover, MOST_POINTS};
use super::*;

pub const KERNEL: Kernel = Kernel {
    memory: MemoryPoints::Own,
    ..Kernel::timed(
        "relay",
        &[
            "producers",
            "proxies",
            "consumers",
            "batches",
            "outstanding",
            "link",
            "order",
        ],
        run,
    )
};

/// Maximum number of messages in a batch; all messages of a batch have the same size, one of `SIZES`.
const MOST_MESSAGES: u32 = 16;
const SIZES: [u64; 4] = [48, 64, 96, 128];
const LARGEST: u64 = 128;
/// Number of batches that a queue can hold.
const QUEUE: usize = 4096;

struct RelayContext {
    api: Api,
    threads: Handover,
    consumers: usize,
    seed: u64,
    batches: usize,
    outstanding: u64,
    /// Whether the messages of a batch are linked through their own bytes, so that each hop reads them.
    inside: bool,
    drawn: HarnessTable<DrawnBatch>,
    /// Nodes of each producer: more than can be under way at a time.
    nodes: HarnessTable<BatchNode>,
    /// Places of each queue, to which many threads post and from which one thread takes.
    places: HarnessTable<AtomicPtr<BatchNode>>,
    /// How often each queue has been posted to.
    tails: HarnessTable<Padded<AtomicU64>>,
    counts: HarnessTable<Padded<RelayCounts>>,
    /// Messages that are not yet freed.
    under_way: AtomicU64,
}

/// A batch, drawn before the clock starts.
#[derive(Clone, Copy)]
struct DrawnBatch {
    queue: u32,
    messages: u16,
    size: u16,
}

/// A batch under way.
struct BatchNode {
    messages: [AtomicPtr<u8>; MOST_MESSAGES as usize],
    count: AtomicU32,
    size: AtomicU32,
    number: AtomicU64,
    busy: AtomicU32,
}

#[derive(Default)]
struct RelayCounts {
    work: Cell<KernelWork>,
    /// Bytes allocated by a producer or freed by a consumer, read by the thread that takes points.
    bytes: AtomicU64,
    batch_numbers: Cell<u64>,
}

fn run(bench: &mut Bench) {
    let [producers, proxies, consumers] =
        ["producers", "proxies", "consumers"].map(|name| bench.count(name));
    if producers * consumers < 1 || bench.threads != producers + proxies + consumers {
        let threads = bench.threads;
        fail!(
            "error",
            "{threads} threads for {producers} + {proxies} + {consumers}"
        );
    }
    let (batches, outstanding) = (bench.count("batches"), bench.number("outstanding").max(1));
    let queues = consumers + proxies;
    // Each batch under way has at least one message, and a producer may begin one more batch.
    let pool = outstanding as usize + 1;
    let tables = producers * (batches * size_of::<DrawnBatch>() + pool * size_of::<BatchNode>());
    bench.needs((tables + queues * QUEUE * 8) as u64 + outstanding * LARGEST);
    let mut drawn = HarnessTable::<DrawnBatch>::zeroed(producers * batches);
    let mut made = KernelWork::default();
    for (producer, part) in drawn.chunks_mut(batches.max(1)).enumerate() {
        let mut random = SplitMix::new(bench.seed, producer as u64);
        for batch in part {
            let messages = 1 + random.below(MOST_MESSAGES);
            *batch = DrawnBatch {
                messages: messages as u16,
                size: SIZES[random.below(SIZES.len() as u32) as usize] as u16,
                queue: random.below(queues as u32),
            };
            made.malloc += u64::from(messages);
        }
    }
    made.free = made.malloc;
    made.checksum = producers as u64 * (batches as u64 * (batches as u64 + 1) / 2);
    let context = RelayContext {
        api: bench.api,
        threads: Handover::new(bench, producers, MOST_POINTS),
        consumers,
        seed: bench.seed,
        batches,
        outstanding,
        inside: bench.parameter("link") == "inside",
        drawn,
        nodes: HarnessTable::zeroed(producers * pool),
        places: HarnessTable::zeroed(queues * QUEUE),
        tails: HarnessTable::zeroed(queues),
        counts: HarnessTable::zeroed(bench.threads),
        under_way: AtomicU64::new(0),
    };
    let Handover { turns, points, .. } = &context.threads;
    let [mut done, mut expected] = [KernelWork::default(); 2];
    let (mut most, mut posts, mut rounds, mut volume) = (0, 0, 0, 0);
    bench.begin();
    for round in bench.rounds() {
        context.threads.begin();
        let began = bench.play_beside(round, &context, RelayContext::work, |_| {
            if points.wanted() {
                context.look(made.malloc, || {
                    let [made, freed] = context.bytes();
                    let live = made.saturating_sub(freed);
                    most = most.max(turns.point(points, made, live));
                });
            }
        });
        bench.record(round, began.elapsed(), 2 * made.malloc);
        volume += context.bytes()[0];
        most = most.max(points.take(volume, 0));
        for counts in context.counts.iter() {
            done += counts.work.take();
            done.checksum += counts.batch_numbers.take();
            counts.bytes.store(0, Relaxed);
        }
        for tail in context.tails.iter() {
            posts += tail.swap(0, Relaxed);
        }
        expected += made;
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
    points.tell();
}

impl RelayContext {
    /// Takes points until all threads have done their work: when the maximum number of messages is under way and when
    /// all are freed, or by the clock.
    fn look(&self, messages: u64, mut point: impl FnMut()) {
        let Handover {
            producers, turns, ..
        } = &self.threads;
        if !turns.are_taken() {
            return self.threads.until_done(|| {
                point();
                self.threads.pause();
            });
        }
        turns.again();
        let consumers = *producers..producers + self.consumers;
        let all = self.counts.len();
        let every = (2 * messages / self.outstanding)
            .div_ceil(MOST_POINTS as u64)
            .max(1);
        for turn in 0.. {
            let has_point = turn % every == 0;
            let mut any = turns.give(0..*producers);
            if has_point {
                point();
            }
            // Proxies post to lower queues only: after these turns no message is under way.
            any |= turns.give((consumers.end..all).rev());
            any |= turns.give(consumers.clone());
            if has_point {
                point();
            }
            if !any {
                break;
            }
        }
    }

    /// Returns how many messages may be under way when a producer makes more. If threads take turns, each producer has
    /// its share.
    fn most_under_way(&self, producer: usize) -> u64 {
        if self.threads.turns.are_taken() {
            self.outstanding * (producer as u64 + 1) / self.threads.producers as u64
        } else {
            self.outstanding
        }
    }

    fn work(&self, worker: usize) {
        let act = || match worker.checked_sub(self.threads.producers) {
            None => self.produce(worker),
            Some(queue) if queue < self.consumers => self.consume(worker, queue),
            Some(queue) => self.pass_on(worker, queue),
        };
        self.threads.work(worker, act);
    }

    /// Returns the bytes allocated, and the bytes freed.
    fn bytes(&self) -> [u64; 2] {
        let (producers, others) = self.counts.split_at(self.threads.producers);
        [producers, others].map(|workers| {
            let bytes = workers.iter().map(|counts| counts.bytes.load(Relaxed));
            bytes.sum()
        })
    }

    fn produce(&self, producer: usize) {
        let pool = self.nodes.len() / self.threads.producers;
        let nodes = self.nodes.part(producer, pool);
        let drawn = self.drawn.part(producer, self.batches);
        let counts = &self.counts[producer];
        let most = self.most_under_way(producer);
        let (mut next, mut bytes) = (0, 0);
        let mut work = KernelWork::default();
        for (number, batch) in drawn.iter().enumerate() {
            let has_room = || self.under_way.load(Acquire) <= most;
            self.threads.turns.wait(producer, has_room);
            self.under_way.fetch_add(u64::from(batch.messages), AcqRel);
            while nodes[next].busy.load(Acquire) != 0 {
                next = (next + 1) % pool;
            }
            let node = &nodes[next];
            node.busy.store(1, Relaxed);
            node.count.store(u32::from(batch.messages), Relaxed);
            node.size.store(u32::from(batch.size), Relaxed);
            node.number.store(number as u64 + 1, Relaxed);
            let mut linked = ptr::null_mut();
            for place in &node.messages[..usize::from(batch.messages)] {
                let message = self.api.block(usize::from(batch.size));
                // SAFETY: the block has at least a pointer's bytes.
                unsafe {
                    message.cast::<*mut u8>().write_volatile(linked);
                    message.add(usize::from(batch.size) - 1).write_volatile(0);
                    linked = message;
                }
                place.store(linked, Relaxed);
            }
            work.malloc += u64::from(batch.messages);
            bytes += u64::from(batch.messages) * u64::from(batch.size);
            counts.bytes.store(bytes, Relaxed);
            self.post(producer, batch.queue as usize, node);
        }
        counts.work.set(work);
        self.threads.has_produced();
    }

    fn post(&self, worker: usize, queue: usize, node: &BatchNode) {
        let ticket = self.tails[queue].fetch_add(1, AcqRel) as usize;
        let place = &self.places[queue * QUEUE + ticket % QUEUE];
        self.threads
            .turns
            .wait(worker, || place.load(Acquire).is_null());
        place.store(ptr::from_ref(node).cast_mut(), Release);
    }

    /// Passes the batches of a queue to `with`, in their order, until all messages of all producers are freed.
    fn each(&self, worker: usize, queue: usize, mut with: impl FnMut(&BatchNode)) {
        let mut next = 0;
        loop {
            let place = &self.places[queue * QUEUE + next % QUEUE];
            let goes_on = || !place.load(Acquire).is_null() || self.is_over();
            self.threads.turns.wait(worker, goes_on);
            let node = place.swap(ptr::null_mut(), AcqRel);
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
        self.threads.is_produced() && self.under_way.load(Acquire) == 0
    }

    /// Does a proxy's work: posts each batch to a queue with a lower number than the proxy's own queue.
    fn pass_on(&self, worker: usize, queue: usize) {
        let mut random = SplitMix::new(self.seed, worker as u64);
        self.each(worker, queue, |node| {
            self.post(worker, random.below(queue as u32) as usize, node)
        });
    }

    fn consume(&self, worker: usize, queue: usize) {
        let counts = &self.counts[worker];
        let mut work = KernelWork::default();
        let (mut bytes, mut numbers) = (0, 0);
        self.each(worker, queue, |node| {
            let count = node.count.load(Relaxed);
            for place in &node.messages[..count as usize] {
                // SAFETY: live, released once.
                unsafe { (self.api.free)(place.load(Relaxed)) };
            }
            work.free += u64::from(count);
            bytes += u64::from(count) * u64::from(node.size.load(Relaxed));
            counts.bytes.store(bytes, Relaxed);
            numbers += node.number.load(Relaxed);
            node.busy.store(0, Release);
            self.under_way.fetch_sub(u64::from(count), AcqRel);
        });
        counts.work.set(work);
        counts.batch_numbers.set(numbers);
    }
}

/// Follows the links from the last message to the first one.
fn read_through(node: &BatchNode) {
    let count = node.count.load(Relaxed) as usize;
    let mut message = node.messages[count - 1].load(Relaxed);
    for _ in 1..count {
        // SAFETY: each message but the first one begins with the address of the message before it.
        message = unsafe { message.cast::<*mut u8>().read_volatile() };
    }
}
