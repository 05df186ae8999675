//! `open-loop`: requests are due at times drawn in advance, whether or not earlier requests have
//! ended, just as clients send them. If a request has to wait, its latency includes the wait.
//! Before that, the same requests are made in a closed loop, each when the last one has ended: a
//! stall then delays one request, but in the open loop it delays all requests that are due
//! meanwhile.

use super::*;
use crate::cpus::Cpus;
use crate::latency::CallTimes;
use core::hint::spin_loop;
use core::mem;
use core::sync::atomic::AtomicUsize;

pub const KERNEL: Kernel = Kernel::timed(
    "open-loop",
    &[
        "load", "capacity", "requests", "blocks", "payload", "heap", "classes",
    ],
    run,
);

/// Indices of the laps of a round.
const CLOSED: usize = 0;
const OPEN: usize = 1;
const LAPS: usize = 2;
/// A waiting worker spins for this last part of the wait, and sleeps before that.
const SPIN_NS: u64 = 50_000;
/// A request with a latency above this counts as late.
const LATE_NS: u64 = 1_000_000;
/// Bytes of a payload: at least the first number, and less than the sum of both.
const PAYLOAD: [u32; 2] = [16 << 10, 48 << 10];
/// The reported percentiles. Each name stands with N: all but one in N requests took at most that
/// long.
const PERCENTILES: [(&str, u64); 5] = [
    ("p50", 2),
    ("p90", 10),
    ("p99", 100),
    ("p99_9", 1000),
    ("p99_99", 10_000),
];

/// A request, drawn before the clock starts.
#[derive(Clone, Copy)]
struct DrawnRequest {
    /// Time since the request before this one was due, in nanoseconds.
    gap_ns: u32,
    blocks: u32,
    /// The block of the background heap that the request replaces, and the size of the new block.
    slot: u32,
    kept: u32,
    reply: u32,
    /// Size of the payload in bytes; 0 if there is none.
    payload: u32,
}

/// A live block, and the stamp that is written in it.
#[derive(Clone, Copy)]
struct RequestBlock {
    address: *mut u8,
    size: u32,
    stamp: u8,
}

struct OpenLoop {
    api: Api,
    threads: usize,
    /// Whether requests are due at given times. If not, the second lap is a closed loop, too.
    paced: bool,
    /// The requests of all workers, worker after worker.
    drawn: HarnessTable<DrawnRequest>,
    /// The sizes of the requests' blocks, and where each worker's sizes begin.
    sizes: HarnessTable<u32>,
    begins: HarnessTable<usize>,
    /// The background heap: the same number of blocks for each worker, and their sizes at the
    /// start.
    kept: HarnessTable<Cell<RequestBlock>>,
    first_sizes: HarnessTable<u32>,
    /// The blocks of each worker's current request.
    own: HarnessTable<Cell<RequestBlock>>,
    /// Blocks that each worker hands to the next worker, in a ring with room for a lap's blocks.
    handed: HarnessTable<Cell<RequestBlock>>,
    workers: HarnessTable<Padded<RequestWorker>>,
    /// Latencies by kind of lap and by worker.
    times: HarnessTable<CallTimes>,
    works: Works,
    /// The CPUs to which workers are pinned, if there is one for each worker.
    cpus: Option<Cpus>,
    verify: bool,
    /// Whether this round is part of the results.
    counts: InTurn<Cell<bool>>,
}

/// A worker's state, which other threads may read.
#[derive(Default)]
struct RequestWorker {
    /// Number of blocks that this worker has handed over so far.
    posted: AtomicUsize,
    /// Number of blocks from the worker before this one that this worker has freed so far.
    taken: Cell<usize>,
    late: Cell<u64>,
    /// How long the worker served requests in the open loop, and how long that loop took, in
    /// nanoseconds.
    busy_ns: Cell<u64>,
    wall_ns: Cell<u64>,
}

fn run(bench: &mut Bench) {
    let (threads, requests) = (bench.threads, bench.count("requests"));
    let sizes = bench.sizes();
    let per_s = bench.number("capacity") as f64 * bench.number("load") as f64 / 100.0;
    let slots = (bench.number("heap") as f64 / threads as f64 / sizes.mean()).max(1.0) as usize;
    let blocks_mean = bench.number("blocks") as u32;
    let each = size_of::<DrawnRequest>()
        + 2 * size_of::<RequestBlock>()
        + (2 + blocks_mean as usize) * size_of::<u32>();
    bench.needs((threads * requests * each) as u64 + 2 * bench.number("heap"));
    let mut drawn = HarnessTable::<DrawnRequest>::zeroed(threads * requests);
    let mut begins = HarnessTable::<usize>::zeroed(threads);
    let (mut all, mut most) = (0, 0);
    let gap_ns = 1e9 * threads as f64 / per_s.max(f64::MIN_POSITIVE);
    for (worker, part) in drawn.chunks_mut(requests).enumerate() {
        let mut random = SplitMix::new(bench.seed, worker as u64);
        begins[worker] = all;
        for request in part {
            let mut blocks = 1;
            while random.below(blocks_mean + 1) > 0 {
                blocks += 1;
            }
            let with_payload = random.below(bench.number("payload") as u32) == 0;
            *request = DrawnRequest {
                gap_ns: (random.exponential() * gap_ns) as u32,
                blocks,
                slot: random.below(slots as u32),
                kept: sizes.draw(&mut random).max(2),
                reply: sizes.draw(&mut random).max(2),
                payload: if with_payload {
                    PAYLOAD[0] + random.below(PAYLOAD[1])
                } else {
                    0
                },
            };
            all += blocks as usize;
            most = most.max(blocks as usize);
        }
    }
    let [mut block_sizes, mut first_sizes] =
        [all, threads * slots].map(HarnessTable::<u32>::zeroed);
    let mut random = SplitMix::new(bench.seed, threads as u64);
    let mut draw = || sizes.draw(&mut random).max(2);
    block_sizes.fill_with(&mut draw);
    first_sizes.fill_with(&mut draw);
    let expected = expected(&drawn, &block_sizes, &first_sizes);
    let peak_bytes: u64 = (0..threads)
        .map(|worker| {
            let part = &drawn[worker * requests..][..requests];
            let first_sizes = &first_sizes[worker * slots..][..slots];
            most_live(part, &block_sizes[begins[worker]..], first_sizes)
        })
        .sum();
    null::overlap(
        sizes.largest().max(PAYLOAD[0] + PAYLOAD[1]) as usize,
        threads,
    );
    let context = OpenLoop {
        api: bench.api,
        threads,
        paced: per_s > 0.0,
        drawn,
        sizes: block_sizes,
        begins,
        kept: HarnessTable::zeroed(threads * slots),
        first_sizes,
        own: HarnessTable::zeroed(threads * most),
        handed: HarnessTable::zeroed(threads * 2 * requests),
        workers: HarnessTable::zeroed(threads),
        times: HarnessTable::zeroed(LAPS * threads),
        works: Works::new(bench),
        cpus: Some(Cpus::usable()).filter(|cpus| threads <= cpus.count()),
        verify: !null::serves(),
        counts: InTurn::default(),
    };
    let times = &context.times;
    times.iter().for_each(|times| times.counts.touch());
    let [mut done, mut implied] = [KernelWork::default(); 2];
    let mut laps = [0; LAPS];
    bench.begin();
    for round in bench.rounds() {
        context.counts.set(!round.cold);
        let (mut span, mut clocked) = (Span::default(), 0);
        bench.laps(round, LAPS, &context, |lap, lapse| {
            let kind = context.kind(lap);
            if kind == CLOSED {
                span += lapse.span;
                clocked += 1;
            }
            laps[kind] += u64::from(!round.cold);
        });
        bench.record(round, span, clocked * (threads * requests) as u64);
        done += context.works.take();
        implied += expected;
    }
    bench.account(&done, &implied);
    bench.requested_peak(peak_bytes);
    for (lap, name) in [(CLOSED, "closed"), (OPEN, "open")] {
        let all = &times[lap * threads];
        let others = &times[lap * threads + 1..(lap + 1) * threads];
        others.iter().for_each(|other| all.add(other));
        tell(bench, name, all, laps[lap] * (threads * requests) as u64);
    }
    if laps[OPEN] > 0 {
        let total = |of: fn(&RequestWorker) -> &Cell<u64>| -> f64 {
            let all = context.workers.iter().map(|worker| of(worker).get());
            all.sum::<u64>() as f64
        };
        let served = laps[OPEN] as f64 * (threads * requests) as f64;
        bench.figure("open_load_share", bench.number("load") as f64 / 100.0);
        bench.figure("open_due_per_s", per_s);
        let busy = total(|worker| &worker.busy_ns) / total(|worker| &worker.wall_ns).max(1.0);
        bench.figure("open_busy_share", busy);
        bench.figure("open_late_share", total(|worker| &worker.late) / served);
    }
}

/// Returns the work of a round: each request once in each lap, and the background heap around them.
fn expected(drawn: &[DrawnRequest], sizes: &[u32], first_sizes: &[u32]) -> KernelWork {
    let (mut blocks, mut bytes) = (sizes.len() as u64, sum(sizes));
    for request in drawn {
        blocks += 2 + u64::from(request.payload > 0);
        bytes += sum(&[request.kept, request.reply, request.payload]);
    }
    let blocks = LAPS as u64 * blocks + first_sizes.len() as u64;
    KernelWork::pairs(blocks, LAPS as u64 * bytes + sum(first_sizes))
}

/// Returns the most live bytes of a worker, if the blocks that it hands over are freed before its
/// next request. With one worker, these blocks are freed by then. With several workers, the next
/// worker frees them at about that time, and the sum of the workers' peaks is close to the highest
/// sum.
fn most_live(requests: &[DrawnRequest], sizes: &[u32], first_sizes: &[u32]) -> u64 {
    let mut kept = HarnessTable::<u32>::zeroed(first_sizes.len());
    kept.copy_from_slice(first_sizes);
    let mut live = sum(&kept);
    let mut peak = live;
    for _ in 0..LAPS {
        let mut sizes = sizes;
        for request in requests {
            let (blocks, rest) = sizes.split_at(request.blocks as usize);
            sizes = rest;
            let bytes = sum(blocks);
            peak = peak.max(live + bytes);
            let old = mem::replace(&mut kept[request.slot as usize], request.kept);
            live = live - u64::from(old) + u64::from(request.kept);
            peak = peak.max(live + bytes + sum(&[request.payload, request.reply]));
        }
    }
    peak
}

/// Reports the percentiles of all requests of a loop; no request may be missing.
fn tell(bench: &Bench, name: &str, times: &CallTimes, requests: u64) {
    let counted = times.counts.total();
    if counted != requests {
        fail!(
            "wrong-result",
            "{counted} latencies of {requests} requests ({name} loop)"
        );
    }
    let longest_ns = times.longest.get().ns;
    for (word, one_in) in PERCENTILES {
        if let Some(ns) = times.counts.percentile(one_in) {
            bench.figure(format_args!("{name}_{word}_ns"), ns.min(longest_ns) as f64);
        }
    }
    if requests > 0 {
        bench.figure(format_args!("{name}_max_ns"), longest_ns as f64);
    }
}

/// Waits until a given time, and returns the time at which the wait ended.
fn wait_till(due_ns: u64, mut now: u64) -> u64 {
    while now < due_ns {
        match due_ns - now {
            long if long > SPIN_NS => sys::sleep_ns(long - SPIN_NS),
            _ => spin_loop(),
        }
        now = now_ns();
    }
    now
}

impl OpenLoop {
    fn kind(&self, lap: usize) -> usize {
        if self.paced { lap } else { CLOSED }
    }

    fn allocate(&self, work: &mut KernelWork, size: u32, stamp: u8) -> RequestBlock {
        let address = self.api.block(size as usize);
        // SAFETY: the block has at least two bytes.
        unsafe { touch::stamp(address, size as usize, stamp) };
        work.malloc += 1;
        work.checksum += u64::from(size);
        RequestBlock {
            address,
            size,
            stamp,
        }
    }

    fn free(&self, work: &mut KernelWork, block: RequestBlock) {
        // SAFETY: live, freed once.
        unsafe {
            if self.verify {
                touch::verify(block.address, block.size as usize, block.stamp);
            }
            (self.api.free)(block.address);
        }
        work.free += 1;
    }

    fn part<'t, T>(&self, table: &'t [T], worker: usize) -> &'t [T] {
        let each = table.len() / self.threads.max(1);
        &table[worker * each..][..each]
    }

    /// Frees the blocks that the worker before this one has handed over.
    fn take(&self, work: &mut KernelWork, worker: usize) {
        let before = (worker + self.threads - 1) % self.threads;
        let ring = self.part(&self.handed, before);
        let taken = &self.workers[worker].taken;
        let posted = self.workers[before].posted.load(Acquire);
        for at in taken.replace(posted)..posted {
            self.free(work, ring[at % ring.len()].get());
        }
    }

    /// Serves a request whose blocks have these sizes.
    fn serve(&self, work: &mut KernelWork, worker: usize, request: &DrawnRequest, sizes: &[u32]) {
        self.take(work, worker);
        let places = self.part(&self.own, worker);
        for (number, (place, &size)) in places.iter().zip(sizes).enumerate() {
            place.set(self.allocate(work, size, number as u8));
        }
        let kept = &self.part(&self.kept, worker)[request.slot as usize];
        self.free(work, kept.get());
        kept.set(self.allocate(work, request.kept, request.slot as u8));
        let ring = self.part(&self.handed, worker);
        let posted = &self.workers[worker].posted;
        let mut last = posted.load(Relaxed);
        for size in [request.payload, request.reply] {
            if size > 0 {
                ring[last % ring.len()].set(self.allocate(work, size, last as u8));
                last += 1;
            }
        }
        for place in places[..sizes.len()].iter().rev() {
            self.free(work, place.get());
        }
        posted.store(last, Release);
    }
}

impl Load for OpenLoop {
    fn before(&self, worker: usize, lap: usize) {
        if lap > 0 {
            return;
        }
        if let Some(cpus) = &self.cpus {
            cpus.pin(worker);
        }
        sys::wake_punctually();
        let mut work = KernelWork::default();
        let sizes = self.part(&self.first_sizes, worker);
        for (slot, (place, &size)) in self.part(&self.kept, worker).iter().zip(sizes).enumerate() {
            place.set(self.allocate(&mut work, size, slot as u8));
        }
        self.works.add(worker, work);
    }

    fn timed(&self, worker: usize, lap: usize) {
        let kind = self.kind(lap);
        let record = &self.workers[worker];
        let times = &self.times[kind * self.threads + worker];
        let mut sizes = &self.sizes[self.begins[worker]..];
        let mut work = KernelWork::default();
        let (mut late, mut busy_ns) = (0, 0);
        let began_ns = now_ns();
        let (mut now, mut due_ns) = (began_ns, began_ns);
        for request in self.part(&self.drawn, worker) {
            let (blocks, rest) = sizes.split_at(request.blocks as usize);
            sizes = rest;
            let mut start = now;
            if kind == OPEN {
                due_ns += u64::from(request.gap_ns);
                start = wait_till(due_ns, now);
            } else {
                due_ns = now;
            }
            self.serve(&mut work, worker, request, blocks);
            now = now_ns();
            let latency_ns = now - due_ns;
            busy_ns += now - start;
            late += u64::from(latency_ns > LATE_NS);
            if self.counts.get() {
                times.note(latency_ns, 0, || now - began_ns);
            }
        }
        self.works.add(worker, work);
        if kind == OPEN && self.counts.get() {
            for (sum, more) in [
                (&record.late, late),
                (&record.busy_ns, busy_ns),
                (&record.wall_ns, now - began_ns),
            ] {
                sum.set(sum.get() + more);
            }
        }
    }

    fn after(&self, worker: usize, lap: usize) {
        let mut work = KernelWork::default();
        self.take(&mut work, worker);
        if lap + 1 == LAPS {
            let gone = RequestBlock {
                address: ptr::null_mut(),
                size: 0,
                stamp: 0,
            };
            for place in self.part(&self.kept, worker) {
                self.free(&mut work, place.replace(gone));
            }
        }
        self.works.add(worker, work);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn most_is_live_before_a_block_is_replaced_or_once_all_is_handed_over() {
        let request = |blocks, kept, payload| DrawnRequest {
            gap_ns: 0,
            blocks,
            slot: 0,
            kept,
            reply: 5,
            payload,
        };
        let requests = [request(1, 50, 0), request(2, 70, 1000)];
        let peak = |requests: &[DrawnRequest]| most_live(requests, &[10, 20, 30], &[100, 3]);
        // The first request's block beside the background heap, which is smaller in the second lap.
        assert_eq!(peak(&requests[..1]), 100 + 3 + 10);
        assert_eq!(peak(&requests), 70 + 3 + 20 + 30 + 1000 + 5);
    }
}
