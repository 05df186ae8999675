//! `steady`: a heap in its steady state. Sizes and lifetimes belong together: most blocks die young, some live long,
//! and as many bytes die as are born.

mod ring;
mod schedule;

use super::*;
use crate::bench::Round;
use crate::lifetimes::Lifetimes;
use crate::placement;
use crate::threads::Turns;
use ring::Rings;
use schedule::{Draws, Schedule, ThreadSchedule, stamp};

pub const KERNEL: Kernel = Kernel {
    memory: MemoryPoints::Own,
    ..Kernel::timed(
        "steady",
        &["lifetimes", "operations", "touch", "use", "thread"],
        run,
    )
};

/// Number of births after which a thread frees the blocks that other threads have handed over.
const BETWEEN_DRAINS: usize = 64;
/// Births in a thread's turn, if memory is measured.
const TURN: usize = 1024;
/// Maximum number of memory points.
const MOST_POINTS: usize = 250;
/// Number of reads whose addresses are recorded.
const PLACED_READS: usize = 100_000;

struct SteadyContext {
    shape: Shape,
    schedule: Schedule,
    survivors: usize,
    /// Births of each thread on the clock; the same number comes before the clock starts.
    operations: usize,
    fills: bool,
    /// Whether contents are checked; the null allocator's blocks hold nothing.
    verifies: bool,
    slots: usize,
    blocks: Blocks,
    rings: Rings,
    workers: HarnessTable<Padded<SteadyCounts>>,
    /// Addresses that the first thread reads, if memory is measured.
    placed: HarnessTable<Cell<usize>>,
    turns: Turns,
    /// Whether the main thread, which would otherwise give the turns, is the only thread. If so, its loop takes the
    /// points.
    looks_itself: bool,
    end: Rendezvous,
    /// Sums over all points of the resident heap and of the live bytes.
    seen: InTurn<[Cell<u64>; 2]>,
}

#[derive(Default)]
struct SteadyCounts {
    /// Deaths between the births on the clock.
    deaths: Cell<u64>,
    freed_for_others: Cell<u64>,
    /// Sum of all reads.
    reads: Cell<u64>,
}

fn run(bench: &mut Bench) {
    let threads = bench.threads;
    let lifetimes = Lifetimes::parse(bench.parameter("lifetimes"), threads);
    let operations = bench.count("operations").max(1);
    let [survivors, live_bytes] = lifetimes.live();
    let draws = Draws {
        threads,
        survivors: (survivors + 0.5) as usize,
        births: 2 * operations,
        uses: bench.count("use"),
        seed: bench.seed,
    };
    if draws.survivors + draws.births >= u32::MAX as usize {
        fail!(
            "unsupported",
            "more than 2^32 blocks of a thread: lower `operations` or `live`"
        );
    }
    bench.needs(Schedule::table_bytes(&draws) + (2.0 * live_bytes) as u64 * threads as u64);
    let schedule = Schedule::new(&lifetimes, draws);
    let slots = schedule.slots();
    let is_measured = retained::is_wanted();
    let takes_turns = is_measured && !bench.is_on_main();
    let placed = if is_measured { PLACED_READS } else { 0 };
    let context = SteadyContext {
        shape: Shape::new(bench, threads, MOST_POINTS + 1),
        schedule,
        survivors: draws.survivors,
        operations,
        fills: bench.parameter("touch") == "all",
        verifies: !null::serves(),
        slots,
        blocks: Blocks::new(threads * slots),
        rings: Rings::new(threads),
        workers: HarnessTable::zeroed(threads),
        placed: HarnessTable::zeroed(placed.min(operations * draws.uses)),
        turns: Turns::among(if takes_turns { threads } else { 0 }),
        looks_itself: is_measured && bench.is_on_main(),
        end: Rendezvous::new(threads + 1),
        seen: Default::default(),
    };
    null::overlap(lifetimes.largest() as usize, threads);
    let (mut rounds, mut deaths, mut for_others) = (0, 0, 0);
    bench.begin();
    for round in bench.rounds() {
        context.shape.points.begin();
        let span = context.round(bench, round);
        bench.record(round, span, (threads * operations) as u64);
        rounds += 1;
        for worker in context.workers.iter() {
            deaths += worker.deaths.take();
            for_others += worker.freed_for_others.take();
        }
    }
    let blocks = threads * (draws.survivors + draws.births);
    let bytes: u64 = (0..threads)
        .map(|thread| context.schedule.of(thread).bytes)
        .sum();
    let expected = freed_again(rounds * blocks as u64, rounds * bytes);
    let peak_bytes = context.schedule.peak_bytes();
    context
        .shape
        .account_with_peak(bench, Some(expected), peak_bytes);
    context.shape.tell_worst(bench);
    let [heap_bytes, live_bytes] = context.seen.each_ref().map(|sum| sum.get() as f64);
    if live_bytes > 0.0 {
        bench.figure("steady_overhead", heap_bytes / live_bytes);
    }
    bench.figure("remote_share", for_others as f64 / deaths.max(1) as f64);
    context.tell_placement(bench);
}

impl SteadyContext {
    fn round(&self, bench: &mut Bench, round: Round) -> Span {
        if !self.turns.are_taken() {
            return bench.lap(round, self);
        }
        let began = bench.play_beside(round, self, SteadyContext::in_turns, |bench| {
            self.give_turns(bench.threads);
            self.end.wait();
        });
        began.elapsed()
    }

    fn in_turns(&self, worker: usize) {
        self.turns.begin(worker);
        self.before(worker, 0);
        self.timed(worker, 0);
        self.turns.leave(worker);
        self.end.wait();
        self.after(worker, 0);
    }

    /// Gives the threads their turns, and takes points once all are in the steady state.
    fn give_turns(&self, threads: usize) {
        self.turns.again();
        // In the first turn threads make the blocks that live at the start.
        let mut turn = 0usize;
        while self.turns.give(0..threads) {
            if let Some(turns) = turn.checked_sub(self.turns_on_clock()) {
                self.look(turns);
            }
            turn += 1;
        }
    }

    /// Returns the number of turns that a thread has on the clock.
    fn turns_on_clock(&self) -> usize {
        self.operations.div_ceil(TURN)
    }

    /// Takes a point after this many turns on the clock, unless there are too many points. Never inlined: most
    /// processes take no points, and their loop would be larger.
    #[inline(never)]
    fn look(&self, turns: usize) {
        let every = self.turns_on_clock().div_ceil(MOST_POINTS);
        if turns.is_multiple_of(every) {
            let now = [self.shape.point(), self.shape.live()];
            for (sum, bytes) in self.seen.iter().zip(now) {
                sum.set(sum.get() + bytes);
            }
        }
    }

    fn slots(&self, worker: usize) -> &[Cell<StampedBlock>] {
        &self.blocks.all()[worker * self.slots..][..self.slots]
    }

    fn allocate(&self, thread: &ShapeThread, number: usize, size: u32) -> StampedBlock {
        let stamp = stamp(number, size);
        if self.fills {
            thread.filled(size as usize, stamp)
        } else {
            thread.allocate(size as usize, stamp)
        }
    }

    fn free(&self, thread: &ShapeThread, block: StampedBlock) {
        if self.verifies {
            thread.free(block);
        } else {
            thread.release(block);
        }
    }

    /// Frees the blocks that other threads have handed over.
    fn drain(&self, worker: usize, thread: &ShapeThread) -> u64 {
        let mut freed = 0;
        while let Some(block) = self.rings.take(worker) {
            self.free(thread, block);
            freed += 1;
        }
        freed
    }

    /// Plays births of a thread, from number `from` on, with the deaths and the reads between them.
    fn live(&self, worker: usize, from: usize, saw: impl Fn(usize, *mut u8)) {
        let thread = self.shape.thread(worker);
        let schedule: ThreadSchedule = self.schedule.of(worker);
        let slots = self.slots(worker);
        let (mut deaths, mut freed_for_others, mut reads) = (0, 0, 0);
        for birth in from..from + self.operations {
            if (birth - from).is_multiple_of(TURN) {
                self.turns.pass(worker);
                if self.looks_itself && from > 0 {
                    self.look((birth - from) / TURN);
                }
            }
            let dying = schedule.deaths(birth);
            deaths += dying.len() as u64;
            for death in dying {
                let block = slots[death.slot as usize].replace(nothing());
                let by = death.by as usize;
                // Waiting for room in a full ring would make threads depend on each other.
                if by == worker || !self.rings.push(by, block) {
                    self.free(&thread, block);
                }
            }
            if birth.is_multiple_of(BETWEEN_DRAINS) {
                freed_for_others += self.drain(worker, &thread);
            }
            let number = self.survivors + birth;
            let made = schedule.born[number];
            slots[made.slot as usize].set(self.allocate(&thread, number, made.size));
            for (place, &slot) in schedule.reads(birth).iter().enumerate() {
                let address = slots[slot as usize].get().address();
                // SAFETY: live, and of at least one byte.
                reads += u64::from(unsafe { address.read_volatile() });
                saw(
                    (birth - from) * schedule.reads(birth).len() + place,
                    address,
                );
            }
        }
        let worker = &self.workers[worker];
        worker.deaths.set(deaths);
        worker.freed_for_others.set(freed_for_others);
        worker.reads.set(worker.reads.get() + reads);
    }

    /// Reports where the reads of the first thread fell, in units that matter to a cache and to a TLB.
    fn tell_placement(&self, bench: &Bench) {
        let reads = self.placed.len();
        if reads == 0 {
            return;
        }
        let placement = placement::of(reads, |see| {
            self.placed.iter().for_each(|read| see(read.get(), 1, true));
        });
        bench.figure(
            "tlb_64_misses_per_read",
            placement.first_tlb_misses_per_node,
        );
        bench.figure(
            "tlb_1536_misses_per_read",
            placement.second_tlb_misses_per_node,
        );
        bench.figure(
            "cache_1_mib_misses_per_read",
            placement.cache_misses_per_node,
        );
    }
}

fn nothing() -> StampedBlock {
    StampedBlock::at(ptr::null_mut(), 0, 0)
}

impl Load for SteadyContext {
    /// Makes the blocks that live at the start, and then as many more as on the clock.
    fn before(&self, worker: usize, _lap: usize) {
        let thread = self.shape.thread(worker);
        let (schedule, slots) = (self.schedule.of(worker), self.slots(worker));
        for (number, made) in schedule.born[..self.survivors].iter().enumerate() {
            slots[made.slot as usize].set(self.allocate(&thread, number, made.size));
        }
        self.live(worker, 0, |_, _| ());
    }

    fn timed(&self, worker: usize, _lap: usize) {
        if worker == 0 && !self.placed.is_empty() {
            self.live(worker, self.operations, |read, address| {
                if let Some(place) = self.placed.get(read) {
                    place.set(address.addr());
                }
            });
        } else {
            self.live(worker, self.operations, |_, _| ());
        }
        if self.looks_itself {
            self.look(self.turns_on_clock());
        }
    }

    fn after(&self, worker: usize, _lap: usize) {
        let thread = self.shape.thread(worker);
        let expected = self.schedule.of(worker).reads_sum;
        if self.workers[worker].reads.take() != expected && self.verifies {
            fail!(
                "wrong-result",
                "a live block that was read does not hold what was written"
            );
        }
        // By now, all threads have handed over their blocks for this thread.
        self.drain(worker, &thread);
        for slot in self.slots(worker) {
            let block = slot.replace(nothing());
            if block.size() > 0 {
                self.free(&thread, block);
            }
        }
    }
}
