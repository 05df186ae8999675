//! `batch-order`: a batch of blocks is allocated and freed in some order, by its owner or by a
//! neighbouring thread. Plotted over the batch size, an allocator's caches show as steps.

use super::*;

pub const KERNEL: Kernel = Kernel::timed(
    "batch-order",
    &[
        "order", "batch", "frees", "pairs", "classes", "touch", "thread",
    ],
    run,
);

/// Batch sizes in blocks: the first four are those of glibc's `bench-malloc-simple`, the others
/// overflow the caches of threads.
const BATCHES: [usize; 6] = [25, 100, 400, 1600, 4096, 65_536];
/// Distance between the places of two blocks freed one after the other, for the order `stride`.
const STRIDE: usize = 8;

struct BatchLoad {
    api: Api,
    threads: usize,
    batches: &'static [usize],
    pairs: usize,
    /// Whether blocks are freed in the order in which they were allocated.
    in_turn: bool,
    /// Whether every second block is first freed and allocated again.
    half: bool,
    /// Whether blocks are freed by a neighbouring thread, not by the one that allocated them.
    remote: bool,
    /// Whether something is written into each block.
    touch: bool,
    /// Whether the byte written into a block is read back and checked.
    verify: bool,
    /// The size of all blocks, if there is only one.
    one_size: Option<usize>,
    /// Number of places in the largest batch.
    room: usize,
    /// Sizes of each worker's blocks, by place.
    sizes: HarnessTable<u32>,
    blocks: HarnessTable<AtomicPtr<u8>>,
    /// For each batch, the order in which its places are freed.
    orders: [HarnessTable<u32>; BATCHES.len()],
    meeting: Rendezvous,
    works: Works,
}

fn run(bench: &mut Bench) {
    let word = bench.parameter("batch");
    let batches = match BATCHES.iter().position(|batch| word.parse() == Ok(*batch)) {
        Some(place) => &BATCHES[place..=place],
        None => &BATCHES,
    };
    let (order, classes) = (bench.parameter("order"), bench.sizes());
    let room = batches[batches.len() - 1];
    let sizes = classes.table(bench.threads, room, bench.seed, 2);
    let mut random = SplitMix::new(bench.seed, u64::MAX);
    let orders = core::array::from_fn(|at| match batches.get(at) {
        Some(&batch) => in_order(order, batch, &mut random),
        None => HarnessTable::zeroed(0),
    });
    let load = BatchLoad {
        api: bench.api,
        threads: bench.threads,
        batches,
        pairs: bench.count("pairs"),
        in_turn: order == "fifo",
        half: order == "half",
        remote: bench.parameter("frees") == "next",
        touch: bench.flag("touch"),
        verify: !null::serves(),
        one_size: sizes
            .iter()
            .all(|size| *size == sizes[0])
            .then(|| sizes[0] as usize),
        room,
        blocks: HarnessTable::zeroed(bench.threads * room),
        orders,
        meeting: Rendezvous::new(bench.threads),
        works: Works::new(bench),
        sizes,
    };
    let peak = sum(&load.sizes);
    bench.needs(peak);
    null::overlap(classes.largest() as usize, bench.threads);
    let [mut made, mut bytes, mut ops] = [0; 3];
    for &batch in batches {
        // Each batch is also filled once before the clock starts.
        let times = load.times(batch) + 1;
        for worker in 0..load.threads {
            let (blocks, sum) = load.of_batch(worker, batch);
            made += times * blocks;
            bytes += times * sum;
            ops += (times - 1) * blocks;
        }
    }
    let plan = LapPlan {
        teams: 1,
        laps: batches.len(),
        ops,
        expected: KernelWork::pairs(made, bytes),
    };
    let lap_times = laps::run(bench, &load, &load.works, &plan);
    bench.requested_peak(peak);
    for (&batch, span) in batches.iter().zip(&lap_times.spans) {
        let (blocks, _) = load.of_batch(0, batch);
        let pairs = (load.times(batch) * blocks * lap_times.measured).max(1);
        bench.figure(
            format_args!("pair_ns_of_batch_{batch}"),
            span.wall_ns as f64 / pairs as f64,
        );
    }
}

/// Returns the order in which a batch is freed.
fn in_order(order: &str, batch: usize, random: &mut SplitMix) -> HarnessTable<u32> {
    let mut places = HarnessTable::<u32>::zeroed(batch);
    for (turn, place) in places.iter_mut().enumerate() {
        *place = turn as u32;
    }
    if order == "stride" {
        let strides = (0..STRIDE.min(batch)).flat_map(|first| (first..batch).step_by(STRIDE));
        for (place, next) in places.iter_mut().zip(strides) {
            *place = next as u32;
        }
    } else if order == "lifo" || order == "half" {
        places.reverse();
    } else if order == "random" {
        random.shuffle(&mut places);
    }
    places
}

impl Load for BatchLoad {
    fn before(&self, worker: usize, lap: usize) {
        self.play(worker, lap, 1);
    }

    fn timed(&self, worker: usize, lap: usize) {
        self.play(worker, lap, self.times(self.batches[lap]));
    }

    fn after(&self, worker: usize, lap: usize) {
        let batch = self.batches[lap];
        let (blocks, bytes) = self.of_batch(worker, batch);
        let times = self.times(batch) + 1;
        self.works
            .add(worker, KernelWork::pairs(times * blocks, times * bytes));
    }
}

impl BatchLoad {
    /// Returns how often a batch is filled on the clock.
    fn times(&self, batch: usize) -> u64 {
        (self.pairs / batch).max(1) as u64
    }

    /// Returns the number of blocks that a worker allocates each time it fills a batch, and their
    /// bytes.
    fn of_batch(&self, worker: usize, batch: usize) -> (u64, u64) {
        let sizes = &self.sizes[worker * self.room..][..batch];
        let sum = |sizes: &mut dyn Iterator<Item = &u32>| {
            sizes.fold((0, 0), |sum: (u64, u64), &size| {
                (sum.0 + 1, sum.1 + u64::from(size))
            })
        };
        let (all, twice) = (
            sum(&mut sizes.iter()),
            sum(&mut sizes.iter().skip(1).step_by(2)),
        );
        if self.half {
            (all.0 + twice.0, all.1 + twice.1)
        } else {
            all
        }
    }

    fn play(&self, worker: usize, lap: usize, times: u64) {
        match (self.touch, self.verify) {
            (false, _) => self.play_by::<false, false>(worker, lap, times),
            (true, false) => self.play_by::<true, false>(worker, lap, times),
            (true, true) => self.play_by::<true, true>(worker, lap, times),
        }
    }

    /// Plays a batch. Reading the tables would be part of each pair's time, so variants that need
    /// no table read none.
    #[inline(always)]
    fn play_by<const TOUCH: bool, const VERIFY: bool>(
        &self,
        worker: usize,
        lap: usize,
        times: u64,
    ) {
        let batch = self.batches[lap];
        let sizes = &self.sizes[worker * self.room..][..batch];
        let order = &self.orders[lap][..batch];
        let drawn = |place: usize| sizes[place] as usize;
        let ordered = |turn: usize| order[turn] as usize;
        let turn = |turn: usize| turn;
        match (self.one_size, self.in_turn) {
            (Some(size), true) => {
                self.fills::<TOUCH, VERIFY>(worker, batch, times, move |_| size, turn)
            }
            (Some(size), false) => {
                self.fills::<TOUCH, VERIFY>(worker, batch, times, move |_| size, ordered)
            }
            (None, true) => self.fills::<TOUCH, VERIFY>(worker, batch, times, drawn, turn),
            (None, false) => self.fills::<TOUCH, VERIFY>(worker, batch, times, drawn, ordered),
        }
    }

    #[inline(always)]
    fn fills<const TOUCH: bool, const VERIFY: bool>(
        &self,
        worker: usize,
        batch: usize,
        times: u64,
        size_at: impl Fn(usize) -> usize,
        place_of: impl Fn(usize) -> usize,
    ) {
        let from = if self.remote {
            (worker + 1) % self.threads
        } else {
            worker
        };
        let [own_blocks, other] =
            [worker, from].map(|owner| &self.blocks[owner * self.room..][..batch]);
        // Fields of `self` would be loaded again after each call to the allocator.
        let api = self.api;
        let fill = |place: usize| {
            let size = size_at(place);
            let fresh = api.block(size);
            if TOUCH {
                // SAFETY: the block has at least two bytes.
                unsafe { touch::mark(fresh, size, place as u8) };
            }
            own_blocks[place].store(fresh, Relaxed);
        };
        let empty = |blocks: &[AtomicPtr<u8>], place: usize| {
            let block = blocks[place].load(Relaxed);
            // SAFETY: live, freed once; the meeting orders it after the stores of the other thread.
            unsafe {
                if VERIFY && block.read_volatile() != place as u8 {
                    touch::broken(self.sizes[from * self.room + place] as usize);
                }
                (api.free)(block);
            }
        };
        for _ in 0..times {
            (0..own_blocks.len()).for_each(fill);
            if self.half {
                let every_second = (1..own_blocks.len()).step_by(2);
                every_second
                    .clone()
                    .rev()
                    .for_each(|place| empty(own_blocks, place));
                every_second.for_each(fill);
            }
            self.meet();
            (0..other.len()).for_each(|turn| empty(other, place_of(turn)));
            self.meet();
        }
    }

    #[inline(always)]
    fn meet(&self) {
        if self.remote {
            self.meeting.wait();
        }
    }
}
