//! Shared by the kernels of memory shapes: blocks that can be identified by their contents, the work of each thread,
//! and points at which nothing else runs.

use super::*;
use crate::heap_points::{HeapPoints, OVERHEAD_FROM_BYTES};
use crate::shape_blocks::ShapeThreads;
pub use crate::shape_blocks::{BlockList, Blocks, ShapeThread, StampedBlock};
use crate::threads::Body;
use core::ops::Deref;

/// The state of a kernel of memory shapes, which its threads share.
pub struct Shape {
    pub points: HeapPoints,
    threads: ShapeThreads,
    /// Highest ratio of resident heap to live bytes at any point.
    worst: InTurn<Cell<f64>>,
    most_live: InTurn<Cell<u64>>,
}

impl Deref for Shape {
    type Target = ShapeThreads;
    fn deref(&self) -> &ShapeThreads {
        &self.threads
    }
}

impl Shape {
    /// Makes a shape for this many threads, with room for this many points if memory is measured.
    pub fn new(bench: &Bench, threads: usize, points: usize) -> Shape {
        Shape {
            points: HeapPoints::new(if retained::is_wanted() { points } else { 0 }),
            threads: ShapeThreads::new(bench.api, threads),
            worst: InTurn::default(),
            most_live: InTurn::default(),
        }
    }

    /// Runs all rounds of a kernel whose threads run only `body`. `ops` counts the threads' operations in the last
    /// round. Returns the number of rounds.
    pub fn play<C: Sync>(
        &self,
        bench: &mut Bench,
        context: &C,
        body: Body<C>,
        ops: impl Fn() -> u64,
    ) -> u64 {
        let mut rounds = 0;
        bench.begin();
        for round in bench.rounds() {
            self.points.begin();
            let began = bench.play(round, context, body);
            bench.record(round, began.elapsed(), ops());
            rounds += 1;
        }
        rounds
    }

    /// Returns the most requested bytes that were live at any point.
    pub fn most_live(&self) -> u64 {
        self.most_live.get()
    }

    /// Takes a point, and returns the resident heap. No other thread may work meanwhile.
    pub fn point(&self) -> u64 {
        let live = self.live();
        self.most_live.set(self.most_live.get().max(live));
        let heap = self.points.take_touched(self.volume(), live, live);
        if live >= OVERHEAD_FROM_BYTES {
            let overhead = heap as f64 / live as f64;
            self.worst.set(self.worst.get().max(overhead));
        }
        heap
    }

    /// Reports points and work. `expected` is the work that the kernel predicts, or `None` if the work depends on
    /// addresses. In either case, all blocks must be freed.
    pub fn account(&self, bench: &Bench, expected: Option<KernelWork>) {
        self.account_with_peak(bench, expected, 0);
    }

    /// Does the same as [`Shape::account`], for a kernel that can compute the most bytes that are live, even between
    /// points.
    pub fn account_with_peak(&self, bench: &Bench, expected: Option<KernelWork>, peak_bytes: u64) {
        let done = KernelWork {
            malloc: self.blocks() - self.aligned_blocks(),
            posix_memalign: self.aligned_blocks(),
            free: self.freed_blocks(),
            checksum: self.volume() + self.freed_bytes(),
            ..KernelWork::default()
        };
        let expected = expected.unwrap_or(KernelWork {
            free: self.blocks(),
            checksum: 2 * self.volume(),
            ..done
        });
        bench.account(&done, &expected);
        bench.requested_peak(self.most_live().max(peak_bytes));
        self.points.tell();
    }

    /// Reports the highest overhead of any point, and what the overhead would be without reuse. Reports neither if too
    /// few bytes were live.
    pub fn tell_worst(&self, bench: &Bench) {
        if self.points.wanted() && self.most_live.get() >= OVERHEAD_FROM_BYTES {
            bench.figure("worst_overhead", self.worst.get());
            self.tell_no_reuse(bench);
        }
    }

    /// Reports what the ratio of the highest resident heap to the most live bytes would be without reuse.
    pub fn tell_no_reuse(&self, bench: &Bench) {
        self.points
            .tell_no_reuse(bench, self.volume(), self.most_live());
    }
}

/// The growth of the resident heap above live bytes over the second half of all iterations.
pub struct Growth {
    iterations: usize,
    /// Resident bytes above live bytes after half of the iterations, and after all of them.
    excess_bytes: InTurn<[Cell<u64>; 2]>,
}

impl Growth {
    pub fn over(iterations: usize) -> Growth {
        Growth {
            iterations,
            excess_bytes: Default::default(),
        }
    }

    /// Takes a point at the end of an iteration.
    pub fn note(&self, iteration: usize, shape: &Shape) {
        let excess_bytes = shape.point().saturating_sub(shape.live());
        let [half, end] = &*self.excess_bytes;
        if iteration + 1 == self.iterations / 2 {
            half.set(excess_bytes);
        }
        end.set(excess_bytes);
    }

    pub fn tell(&self, bench: &Bench, shape: &Shape) {
        if shape.points.wanted() && self.iterations > 1 {
            let [half, end] = self.excess_bytes.each_ref().map(|bytes| bytes.get() as f64);
            let rest = self.iterations - self.iterations / 2;
            bench.figure("growth_bytes_per_iteration", (end - half) / rest as f64);
        }
    }
}

/// Returns the moments of an idle time at which memory is read, in milliseconds.
pub fn idle_moments(longest_ms: u64) -> impl Iterator<Item = u64> {
    let earlier = [100, 1000].into_iter().filter(move |ms| *ms < longest_ms);
    earlier.chain([longest_ms])
}

/// Returns the work of blocks that are all freed again.
pub fn freed_again(blocks: u64, bytes: u64) -> KernelWork {
    KernelWork::pairs(blocks, 2 * bytes)
}
