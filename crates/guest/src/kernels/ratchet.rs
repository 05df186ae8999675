//! `ratchet`: a pool of threads serves requests, one at a time. Each request allocates a burst of blocks and frees it,
//! except for a few small blocks that survive for a while. Live memory never exceeds one request and the survivors;
//! resident memory may grow to the sum of what each thread once needed.

use super::shape::idle_moments;
use super::*;
use crate::sizes::Sizes;

pub const KERNEL: Kernel = Kernel::of_memory(
    "ratchet",
    &[
        "pool",
        "concurrent",
        "requests",
        "blocks",
        "classes",
        "pin",
        "pins",
        "idle-ms",
    ],
    run,
);

/// The same load on the clock: how long does a request take?
pub const TIMED: Kernel = Kernel {
    name: "ratchet-timed",
    memory: MemoryPoints::Own,
    ..KERNEL
};

/// About this many batches of requests have points.
const MOST_POINTS: usize = 160;

struct RatchetContext {
    shape: Shape,
    seed: u64,
    sizes: Sizes,
    blocks: usize,
    pin: usize,
    seats: HarnessTable<Padded<Seat>>,
    /// Posted at the end of each request.
    served: Semaphore,
    /// The meeting of all requests of a batch, each at its largest, with the main thread.
    at_peak: Rendezvous,
    /// Survivors, the oldest of which is the next to go.
    pins: Blocks,
    pinned: InTurn<Cell<usize>>,
    pins_taken: AtomicBool,
    /// Durations of requests, in nanoseconds: the first request of each thread, by thread, and all later ones, by the
    /// request's number from 1 on.
    first_ns: HarnessTable<Cell<u64>>,
    later_ns: HarnessTable<Cell<u64>>,
}

/// A thread of the pool, and its next request.
#[derive(Default)]
struct Seat {
    due: Semaphore,
    request: Cell<u64>,
    /// Whether the request waits at its largest, when memory is read.
    has_point: Cell<bool>,
    ends: Cell<bool>,
}

fn run(bench: &mut Bench) {
    let pool = bench.threads;
    let concurrent = bench.count("concurrent").clamp(1, pool);
    let batches = bench.count("requests") / concurrent;
    let (blocks, pins) = (bench.count("blocks"), bench.count("pins"));
    let sizes = bench.sizes();
    // Upper bound of a request's bytes: its blocks, as rounded up by an allocator, and its table of pointers.
    let request = blocks as u64 * (1.5 * sizes.mean() + 40.0) as u64;
    bench.needs(request * pool as u64);
    let every = batches.div_ceil(MOST_POINTS).max(1);
    // Two points for each batch that has points, one after each idle time, one after purging.
    let idle_ms = bench.number("idle-ms");
    let places = 2 * (batches / every) + 8 + idle_moments(idle_ms).count();
    let mut context = RatchetContext {
        shape: Shape::new(bench, pool + 1, places),
        seed: bench.seed,
        sizes,
        blocks,
        pin: bench.count("pin").max(1),
        seats: HarnessTable::zeroed(pool),
        served: Semaphore::default(),
        at_peak: Rendezvous::new(concurrent + 1),
        pins: Blocks::new(pins.max(1)),
        pinned: InTurn::default(),
        pins_taken: AtomicBool::new(false),
        first_ns: HarnessTable::zeroed(pool),
        later_ns: HarnessTable::zeroed(batches * concurrent + 1),
    };
    let main = context.shape.thread(pool);
    let mut heaps = [0u64; 3];
    let mut live = 0;
    bench.begin();
    for round in bench.rounds() {
        context.shape.points.begin();
        let team = bench.gather(&context, RatchetContext::serve);
        let began = team.release();
        let mut random = SplitMix::new(bench.seed, u64::MAX);
        let volume = context.shape.volume();
        for batch in 0..batches {
            let has_point = context.shape.points.wanted()
                && (batch % every == 0
                    || [1, 16, 64].contains(&(batch + 1))
                    || batch + 1 == batches);
            // Each request of a batch is served by a different thread.
            let mut drawn = 0;
            while drawn < concurrent {
                let seat = &context.seats[random.below(pool as u32) as usize];
                let request = (batch * concurrent + 1) as u64;
                if seat.request.get() < request {
                    drawn += 1;
                    seat.request.set(request + drawn as u64 - 1);
                    seat.has_point.set(has_point);
                    seat.due.post();
                }
            }
            if has_point {
                context.at_peak.wait();
                live = context.shape.live();
                context.shape.point();
                context.at_peak.wait();
            }
            (0..concurrent).for_each(|_| context.served.wait());
            if has_point {
                heaps[0] = context.shape.point();
            }
        }
        let span = began.elapsed();
        let ops = 2 * (context.shape.volume() - volume);
        let mut slept_ms = 0;
        for until_ms in idle_moments(idle_ms).filter(|_| context.shape.points.wanted()) {
            sys::sleep_ms(until_ms.saturating_sub(slept_ms));
            slept_ms = slept_ms.max(until_ms);
            heaps[1] = context.shape.point();
        }
        if context.shape.points.wanted() {
            bench.purge.process();
            heaps[2] = context.shape.point();
        }
        for seat in context.seats.iter() {
            seat.ends.set(true);
            seat.due.post();
        }
        bench.join(round, team, &began);
        let left = context.pinned.replace(0).min(pins);
        context.pins.all()[..left]
            .iter()
            .for_each(|pin| main.free(pin.get()));
        bench.record(round, span, ops);
        context.seats.iter().for_each(|seat| seat.reset());
    }
    context.shape.account(bench, None);
    context.shape.tell_no_reuse(bench);
    if !context.shape.points.wanted() {
        let RatchetContext {
            first_ns, later_ns, ..
        } = &mut context;
        for (name, times) in [("cold_request_ns", first_ns), ("warm_request_ns", later_ns)] {
            if let Some(median) = median(times) {
                bench.figure(name, median as f64);
            }
        }
    }
    if context.shape.points.wanted() && live > 0 {
        let names = [
            "ratchet_ratio",
            "ratchet_ratio_idle",
            "ratchet_ratio_purged",
        ];
        for (name, heap) in names.into_iter().zip(heaps) {
            bench.figure(name, heap as f64 / live as f64);
        }
    }
}

/// Returns the median of the times that are not 0; `None` if all are 0.
fn median(times: &mut [Cell<u64>]) -> Option<u64> {
    times.sort_unstable_by_key(Cell::get);
    let known = &times[times.partition_point(|time| time.get() == 0)..];
    Some(known.get(known.len() / 2)?.get())
}

impl Seat {
    fn reset(&self) {
        self.request.set(0);
        self.ends.set(false);
    }
}

impl RatchetContext {
    fn serve(&self, worker: usize) {
        let (seat, thread) = (&self.seats[worker], self.shape.thread(worker));
        let mut is_first = true;
        loop {
            seat.due.wait();
            if seat.ends.get() {
                return;
            }
            let (request, began_ns) = (seat.request.get(), now_ns());
            self.request(&thread, request, seat.has_point.get());
            let took_ns = now_ns() - began_ns;
            match is_first {
                true => self.first_ns[worker].set(took_ns),
                false => self.later_ns[request as usize].set(took_ns),
            }
            is_first = false;
            self.served.post();
        }
    }

    fn request(&self, thread: &ShapeThread, request: u64, has_point: bool) {
        // The table comes from the allocator under test, as a request's would.
        let table = thread.untouched(self.blocks * size_of::<*mut u8>(), 0);
        let entry = |index: usize| table.address().cast::<*mut u8>().wrapping_add(index);
        let mut random = SplitMix::new(self.seed, request);
        for index in 0..self.blocks {
            let size = self.sizes.draw(&mut random);
            let block = thread.allocate(size as usize, index as u32);
            // SAFETY: within the table.
            unsafe { entry(index).write(block.address()) };
        }
        if has_point {
            self.at_peak.wait();
            self.at_peak.wait();
        }
        // Draws the same sizes again.
        let mut random = SplitMix::new(self.seed, request);
        for index in 0..self.blocks {
            let size = self.sizes.draw(&mut random);
            // SAFETY: within the table, and written above.
            let address = unsafe { entry(index).read() };
            let block = StampedBlock::at(address, size, index as u32);
            if index % self.pin == 0 {
                self.keep(thread, block);
            } else {
                thread.free(block);
            }
        }
        thread.release(table);
    }

    /// Keeps a block as a survivor, and frees the oldest survivor if there is no room.
    fn keep(&self, thread: &ShapeThread, block: StampedBlock) {
        while self.pins_taken.swap(true, Acquire) {
            sys::give_way();
        }
        let pinned = self.pinned.replace(self.pinned.get() + 1);
        let pins = self.pins.all();
        let oldest = pins[pinned % pins.len()].replace(block);
        self.pins_taken.store(false, Release);
        if pinned >= pins.len() {
            thread.free(oldest);
        }
    }
}
