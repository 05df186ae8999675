//! `cache-thrash` and `cache-scratch` (LL): every worker allocates one tiny object after the other
//! and writes and reads each many times. If objects of different workers share a cache line, each
//! write takes the line away from the others. In `cache-scratch`, each worker first frees an object
//! that the main thread allocated next to those of the other workers: an allocator that reuses the
//! freed object's place keeps the false sharing alive.

use super::*;
use crate::cpus::Cpus;
use crate::threads::Barrier;
use core::sync::atomic::AtomicUsize;

const THRASH_PARAMETERS: &[&str] = &[
    "thread",
    "iterations",
    "rw",
    "rw-mode",
    "size",
    "warm-up",
    "warm-up-live",
    "warm-up-size",
    "lead",
];

/// `thread` is left out: each object is handed from the main thread to another thread.
const SCRATCH_PARAMETERS: &[&str] = THRASH_PARAMETERS.split_at(1).1;

/// Tests whether the allocator places objects of different threads in one cache line (active false
/// sharing).
pub const THRASH: Kernel =
    Kernel::timed("cache-thrash", THRASH_PARAMETERS, |bench| run(bench, false));

/// Tests whether the allocator preserves false sharing that the program caused (passive false
/// sharing).
pub const SCRATCH: Kernel = Kernel::timed("cache-scratch", SCRATCH_PARAMETERS, |bench| {
    run(bench, true)
});

struct FalseSharingContext {
    api: Api,
    /// The CPUs to which workers are pinned, if there is one for each worker.
    cpus: Option<Cpus>,
    threads: usize,
    iterations: u64,
    /// Number of passes over each object.
    passes: u64,
    size: usize,
    warm_up: usize,
    warm_up_size: usize,
    /// Warm-up blocks that each worker holds at a time, and the places of their pointers.
    warm_up_live: usize,
    held: HarnessTable<AtomicPtr<u8>>,
    /// Blocks allocated by the main thread: first some that it keeps, so that the next blocks may
    /// begin anywhere in a cache line, then one to hand to each worker. Both tables are empty for
    /// `cache-thrash`.
    lead: HarnessTable<AtomicPtr<u8>>,
    given: HarnessTable<AtomicPtr<u8>>,
    all_freed: Barrier,
    /// Address of each worker's live object, or 0.
    published: HarnessTable<Padded<AtomicUsize>>,
    tallies: HarnessTable<Padded<Cell<FalseSharingCounts>>>,
}

#[derive(Clone, Copy, Default)]
struct FalseSharingCounts {
    work: KernelWork,
    neighbours: Neighbours,
    /// Objects that shared a line with an object of at least one other worker.
    shared_objects: u64,
}

/// Live objects of other workers, and how many of them begin in the same cache line as the worker's
/// own object.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct Neighbours {
    all: u64,
    in_line: u64,
}

fn run(bench: &mut Bench, scratch: bool) {
    let threads = bench.threads;
    let rw = bench.number("rw");
    let passes = if bench.parameter("rw-mode") == "total" {
        (rw / threads as u64).max(1)
    } else {
        rw
    };
    let (iterations, size) = (bench.number("iterations"), bench.count("size"));
    let (warm_up, warm_up_live) = (bench.count("warm-up"), bench.count("warm-up-live"));
    let warm_up_size = bench.count("warm-up-size");
    let live = size + warm_up_live.min(warm_up) * (warm_up_size + 16);
    bench.needs((threads * live) as u64);
    let lead = if scratch {
        SplitMix::new(bench.seed, 0).below(bench.number("lead") as u32) as usize
    } else {
        0
    };
    let mut shared = FalseSharingContext {
        api: bench.api,
        cpus: Some(Cpus::usable()).filter(|cpus| threads <= cpus.count()),
        threads,
        iterations,
        passes,
        size,
        warm_up,
        warm_up_size,
        warm_up_live,
        held: HarnessTable::zeroed(threads * warm_up_live),
        lead: HarnessTable::zeroed(lead),
        given: HarnessTable::zeroed(if scratch { threads } else { 0 }),
        all_freed: Barrier::default(),
        published: HarnessTable::zeroed(threads),
        tallies: HarnessTable::zeroed(threads),
    };
    let [mut done, mut expected] = [KernelWork::default(); 2];
    let (mut neighbours, mut shared_objects, mut objects) = (Neighbours::default(), 0, 0);
    bench.begin();
    for round in bench.rounds() {
        shared.all_freed = Barrier::default();
        let span = bench.lap(round, &shared);
        let per_worker = iterations + u64::from(scratch);
        let passes = threads as u64 * iterations * passes;
        bench.record(round, span, passes);
        done.malloc += (lead + shared.given.len()) as u64;
        for place in shared.lead.iter() {
            // SAFETY: a live block of the main thread, released once in each round.
            unsafe { (bench.api.free)(place.load(Relaxed)) };
            done.free += 1;
        }
        for tally in shared.tallies.iter() {
            let tally = tally.take();
            done += tally.work;
            if !round.cold {
                neighbours.all += tally.neighbours.all;
                neighbours.in_line += tally.neighbours.in_line;
                shared_objects += tally.shared_objects;
                objects += iterations;
            }
        }
        let blocks = threads as u64 * (per_worker + warm_up as u64) + lead as u64;
        expected += KernelWork::pairs(blocks, passes);
    }
    bench.account(&done, &expected);
    bench.requested_peak((threads * size) as u64);
    let cores = shared.cpus.as_ref().map_or(0, |cpus| cpus.cores(threads));
    bench.figure("pinned_cores", cores as f64);
    // With one worker, or workers that never held objects at the same time, the divisor would be 0.
    if neighbours.all > 0 {
        bench.figure(
            "line_overlap",
            neighbours.in_line as f64 / neighbours.all as f64,
        );
        bench.figure("line_overlap_pairs", neighbours.all as f64);
        bench.figure("shared_objects", shared_objects as f64 / objects as f64);
    }
}

impl Load for FalseSharingContext {
    fn before(&self, worker: usize, _lap: usize) {
        if let Some(cpus) = &self.cpus {
            cpus.pin(worker);
        }
        let held = self.held.part(worker, self.warm_up_live);
        let mut work = KernelWork::default();
        let mut release = |block: *mut u8| {
            // SAFETY: a live block of this worker (or NULL for size 0), released once.
            unsafe { (self.api.free)(block) };
            work.free += 1;
        };
        for index in 0..self.warm_up {
            let place = &held[index % held.len()];
            if index >= held.len() {
                release(place.load(Relaxed));
            }
            let block = self.api.allocate(self.warm_up_size);
            if self.warm_up_size > 0 {
                // SAFETY: the block has at least one byte.
                unsafe { block.write_volatile(1) };
            }
            place.store(block, Relaxed);
        }
        held.iter()
            .take(self.warm_up)
            .for_each(|place| release(place.load(Relaxed)));
        work.malloc = self.warm_up as u64;
        self.tallies[worker].set(FalseSharingCounts {
            work,
            ..FalseSharingCounts::default()
        });
    }

    /// Allocates one object directly after the other, so that the allocator may place them as
    /// neighbours.
    fn all_here(&self, _lap: usize) {
        for place in self.lead.iter().chain(self.given.iter()) {
            place.store(self.api.allocate(self.size), Relaxed);
        }
    }

    fn timed(&self, worker: usize, _lap: usize) {
        let FalseSharingCounts {
            mut work,
            mut neighbours,
            mut shared_objects,
        } = self.tallies[worker].get();
        if let Some(given) = self.given.get(worker) {
            // SAFETY: this worker's own object, released once.
            unsafe { (self.api.free)(given.load(Relaxed)) };
            work.free += 1;
            // A worker that began its loop earlier would not find the other objects freed.
            self.all_freed.wait(self.threads);
        }
        let place = &self.published[worker];
        for _ in 0..self.iterations {
            let object = self.api.allocate(self.size);
            place.store(object as usize, Relaxed);
            // SAFETY: the object has that many bytes.
            unsafe { write_and_read(object, self.size, self.passes) };
            let found = Neighbours::of(worker, &self.published);
            neighbours.all += found.all;
            neighbours.in_line += found.in_line;
            shared_objects += u64::from(found.in_line > 0);
            place.store(0, Relaxed);
            // SAFETY: live, released once.
            unsafe { (self.api.free)(object) };
            work.malloc += 1;
            work.free += 1;
            work.checksum += self.passes;
        }
        self.tallies[worker].set(FalseSharingCounts {
            work,
            neighbours,
            shared_objects,
        });
    }
}

/// Does the load itself: writes every byte, then reads it. The accesses are volatile, so that each
/// of them happens.
#[inline(always)]
unsafe fn write_and_read(object: *mut u8, size: usize, passes: u64) {
    // One byte is the documents' size. A loop over the bytes would be ten of the fifteen
    // instructions of a pass.
    if size == 1 {
        for pass in 0..passes {
            // SAFETY: the object has one byte.
            unsafe {
                object.write_volatile(pass as u8);
                object.read_volatile();
            }
        }
        return;
    }
    for pass in 0..passes {
        for at in 0..size {
            // SAFETY: within the object, as the caller guarantees.
            unsafe {
                object.add(at).write_volatile(pass as u8);
                object.add(at).read_volatile();
            }
        }
    }
}

impl Neighbours {
    fn of(worker: usize, published: &[Padded<AtomicUsize>]) -> Neighbours {
        let line = published[worker].load(Relaxed) / 64;
        let mut found = Neighbours::default();
        for (other, address) in published.iter().enumerate() {
            let address = address.load(Relaxed);
            if other != worker && address != 0 {
                found.all += 1;
                found.in_line += u64::from(address / 64 == line);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbours(worker: usize, addresses: [usize; 4]) -> Neighbours {
        Neighbours::of(
            worker,
            &addresses.map(|address| Padded(AtomicUsize::new(address))),
        )
    }

    #[test]
    fn objects_in_one_line_are_found_and_absent_ones_are_not_counted() {
        let addresses = [0x1000, 0x103f, 0x1040, 0];
        assert_eq!(neighbours(0, addresses), Neighbours { all: 2, in_line: 1 });
        assert_eq!(neighbours(1, addresses), Neighbours { all: 2, in_line: 1 });
        assert_eq!(neighbours(2, addresses), Neighbours { all: 2, in_line: 0 });
        assert_eq!(neighbours(0, [0x1000, 0, 0, 0]), Neighbours::default());
    }
}
