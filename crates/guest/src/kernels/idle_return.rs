//! `idle-return`: what happens to memory after a burst whose survivors are scattered, while the
//! process sleeps, ticks, or works elsewhere; and what the next burst costs then.

use super::shape::idle_moments;
use super::*;
use crate::threads::{Team, Workers};
use core::ops::Range;

pub const KERNEL: Kernel = Kernel::of_memory(
    "idle-return",
    &[
        "burst", "classes", "survivor", "idle-ms", "during", "makers",
    ],
    run,
);

/// Number of slots of the thread that works elsewhere, and the size of their blocks.
const BUSY_SLOTS: usize = 1000;
const SMALL_BYTES: usize = 64;

struct IdleReturnContext {
    shape: Shape,
    /// Sizes of a burst's blocks, thread after thread, in the order of allocation.
    sizes: HarnessTable<u32>,
    /// The order in which a thread frees its blocks; the first blocks survive.
    order: HarnessTable<u32>,
    /// Where each thread's part of the tables begins; the last entry is the end.
    parts: HarnessTable<usize>,
    first: Blocks,
    second: Blocks,
    /// One block in this many survives.
    survivor: usize,
    /// Whether threads end after their burst.
    ends: bool,
    /// Whether the second burst is due.
    again: AtomicBool,
    meeting: Rendezvous,
    elsewhere: Elsewhere,
}

/// A thread that replaces its own small blocks all the time.
struct Elsewhere {
    slots: Blocks,
    /// A lock that is held during a replacement, and while a point is taken.
    held: AtomicBool,
    /// Whether a point is due: otherwise, on a busy machine, the thread would take the lock again
    /// and again.
    due: AtomicBool,
    ends: AtomicBool,
}

fn run(bench: &mut Bench) {
    let threads = bench.threads;
    let classes = bench.sizes();
    let (burst, seed) = (bench.count("burst") / threads, bench.seed);
    // Sizes are drawn twice, the first time only to count the blocks.
    let draw = |thread: usize, note: &mut dyn FnMut(u32)| {
        let mut random = SplitMix::new(seed, thread as u64);
        let mut bytes = 0;
        while bytes < burst {
            let size = classes.draw(&mut random).max(1);
            bytes += size as usize;
            note(size);
        }
    };
    let mut parts = HarnessTable::<usize>::zeroed(threads + 1);
    for thread in 0..threads {
        let mut count = 0;
        draw(thread, &mut |_| count += 1);
        parts[thread + 1] = parts[thread] + count;
    }
    let all = parts[threads];
    bench.needs((3 * burst * threads + 2 * all * (size_of::<StampedBlock>() + 4)) as u64);
    let mut sizes = HarnessTable::<u32>::zeroed(all);
    let mut order = HarnessTable::<u32>::zeroed(all);
    for thread in 0..threads {
        let mut place = parts[thread];
        draw(thread, &mut |size| {
            sizes[place] = size;
            place += 1;
        });
        let order = &mut order[parts[thread]..place];
        for (place, entry) in order.iter_mut().enumerate() {
            *entry = place as u32;
        }
        SplitMix::new(!seed, thread as u64).shuffle(order);
    }
    let idle_ms = bench.number("idle-ms");
    let moments = idle_moments(idle_ms).count();
    let context = IdleReturnContext {
        // Besides the makers, the main thread ticks, and another thread may work elsewhere.
        shape: Shape::new(bench, threads + 2, moments + 4),
        first: Blocks::new(all),
        second: Blocks::new(all),
        survivor: bench.count("survivor").max(1),
        ends: bench.parameter("makers") == "end",
        again: AtomicBool::new(false),
        meeting: Rendezvous::new(threads + 1),
        elsewhere: Elsewhere {
            slots: Blocks::new(BUSY_SLOTS),
            held: AtomicBool::new(false),
            due: AtomicBool::new(false),
            ends: AtomicBool::new(false),
        },
        sizes,
        order,
        parts,
    };
    let (shape, during) = (&context.shape, bench.parameter("during"));
    // Milliseconds since the burst and bytes of the resident heap: right after the burst, after
    // each idle time, and after purging.
    let mut heaps = HarnessTable::<(u64, u64)>::zeroed(moments + 2);
    let mut spans = [Span::default(); 2];
    let (mut live, mut rounds) = (0, 0);
    bench.begin();
    for round in bench.rounds() {
        shape.points.begin();
        context.again.store(false, Release);
        context.elsewhere.ends.store(false, Release);
        let makers = bench.gather(&context, IdleReturnContext::make);
        let began = makers.release();
        spans[0] = context.time_burst();
        live = shape.live();
        let makers = if context.ends {
            bench.join(round, makers, &began);
            None
        } else {
            Some(makers)
        };
        heaps[0] = (0, shape.point());
        let busy = (during == "busy").then(|| {
            let body = |context: &IdleReturnContext, _| context.work_elsewhere();
            let team = Team::gather(Workers::Threads(1), &context, body);
            (team.let_go(), team)
        });
        let start_ns = now_ns();
        for (place, until_ms) in idle_moments(idle_ms).enumerate() {
            if shape.points.wanted() {
                let ticks = (during == "tick").then(|| shape.thread(threads));
                idle(start_ns + until_ms * 1_000_000, ticks);
                context.elsewhere.due.store(true, Release);
                context.elsewhere.hold();
                context.elsewhere.due.store(false, Release);
                heaps[place + 1] = (until_ms, shape.point());
                context.elsewhere.let_go();
            }
        }
        context.elsewhere.ends.store(true, Release);
        if let Some((began, team)) = busy {
            team.join(&began, |_, _| {});
        }
        bench.purge.process();
        heaps[moments + 1] = (0, shape.point());
        context.again.store(true, Release);
        let makers = makers.unwrap_or_else(|| {
            let makers = bench.gather(&context, IdleReturnContext::make);
            makers.let_go();
            makers
        });
        spans[1] = context.time_burst();
        bench.join(round, makers, &began);
        bench.record(round, began.elapsed(), 4 * all as u64);
        rounds += 1;
    }
    let bytes = sum(&context.sizes);
    // Ticks and work elsewhere depend on the time.
    let expected =
        (during == "sleep").then(|| freed_again(2 * rounds * all as u64, 2 * rounds * bytes));
    shape.account(bench, expected);
    shape.tell_no_reuse(bench);
    if shape.points.wanted() {
        tell(bench, &heaps, live, spans);
    }
}

fn tell(bench: &Bench, heaps: &[(u64, u64)], live: u64, [first, second]: [Span; 2]) {
    let [idle @ .., (_, purged)] = heaps else {
        return;
    };
    let excess = |heap: u64| heap.saturating_sub(live) as f64;
    let returned = |heap: u64| 1.0 - excess(heap) / excess(heaps[0].1);
    for (ms, heap) in idle {
        if *ms > 0 {
            bench.figure(format_args!("returned_share_{ms}_ms"), returned(*heap));
        }
    }
    bench.figure(
        "returned_share",
        idle.last().map_or(0.0, |(_, heap)| returned(*heap)),
    );
    bench.figure("returned_share_purged", returned(*purged));
    let between = |pair: &[(u64, u64)]| {
        let seconds = (pair[1].0 - pair[0].0) as f64 / 1000.0;
        (excess(pair[0].1) + excess(pair[1].1)) / 2.0 * seconds
    };
    let byte_seconds: f64 = idle.windows(2).map(between).sum();
    bench.figure("above_live_gib_s", byte_seconds / f64::from(1 << 30));
    bench.figure(
        "next_burst_ratio",
        second.wall_ns as f64 / first.wall_ns.max(1) as f64,
    );
    let faults = second.minor_faults as f64 / first.minor_faults.max(1) as f64;
    bench.figure("next_burst_faults_ratio", faults);
}

/// Sleeps until the given time; with `ticks`, makes a pair of calls each millisecond.
fn idle(until_ns: u64, ticks: Option<ShapeThread>) {
    while let Some(rest_ns) = until_ns.checked_sub(now_ns()).filter(|rest| *rest > 0) {
        let longest_ns = if ticks.is_some() {
            1_000_000
        } else {
            500_000_000
        };
        sys::sleep_ns(rest_ns.min(longest_ns));
        ticks
            .iter()
            .for_each(|thread| thread.free(thread.allocate(SMALL_BYTES, 0)));
    }
}

impl IdleReturnContext {
    /// Does a maker's work: the first burst, the second burst, or one after the other.
    fn make(&self, worker: usize) {
        let thread = self.shape.thread(worker);
        let part = self.parts[worker]..self.parts[worker + 1];
        let order = &self.order[part.clone()];
        let (kept, gone) = order.split_at(order.len() / self.survivor);
        if !self.again.load(Acquire) {
            self.burst(&thread, &self.first, &part);
            free(&thread, &self.first, &part, gone);
            self.meeting.wait();
            if self.ends {
                return;
            }
        }
        self.burst(&thread, &self.second, &part);
        free(&thread, &self.second, &part, order);
        free(&thread, &self.first, &part, kept);
        self.meeting.wait();
    }

    /// Plays one burst. The main thread's clock starts before the second meeting and stops after
    /// the third. Before the fourth, the main thread takes a point.
    fn burst(&self, thread: &ShapeThread, blocks: &Blocks, part: &Range<usize>) {
        self.meeting.wait();
        self.meeting.wait();
        for place in part.clone() {
            let block = thread.allocate(self.sizes[place] as usize, place as u32);
            blocks.all()[place].set(block);
        }
        self.meeting.wait();
        self.meeting.wait();
    }

    /// Times a burst, takes a point, and waits until the burst's blocks are freed.
    fn time_burst(&self) -> Span {
        // All threads have arrived, but may begin only once the clock runs.
        self.meeting.wait();
        let start = Moment::start();
        self.meeting.wait();
        self.meeting.wait();
        let span = start.elapsed();
        self.shape.point();
        self.meeting.wait();
        self.meeting.wait();
        span
    }

    fn work_elsewhere(&self) {
        let thread = self.shape.thread(self.parts.len());
        let mut slots = self.elsewhere.slots.list(0, BUSY_SLOTS);
        while !slots.is_full() {
            slots.push(thread.allocate(SMALL_BYTES, 0));
        }
        let mut random = SplitMix::new(0, 0);
        while !self.elsewhere.ends.load(Acquire) {
            while self.elsewhere.due.load(Acquire) {
                sys::give_way();
            }
            self.elsewhere.hold();
            slots.swap_free(&thread, random.below(BUSY_SLOTS as u32) as usize);
            slots.push(thread.allocate(SMALL_BYTES, 0));
            self.elsewhere.let_go();
        }
        slots.clear(&thread);
    }
}

impl Elsewhere {
    fn hold(&self) {
        while self.held.swap(true, Acquire) {
            sys::give_way();
        }
    }

    fn let_go(&self) {
        self.held.store(false, Release);
    }
}

fn free(thread: &ShapeThread, blocks: &Blocks, part: &Range<usize>, places: &[u32]) {
    let blocks_of_part = &blocks.all()[part.clone()];
    places
        .iter()
        .for_each(|&place| thread.free(blocks_of_part[place as usize].get()));
}
