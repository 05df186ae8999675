//! Resident memory at moments that a kernel names: the same moments in every process, regardless of time. The kernel
//! must make sure that nothing changes during a measurement.

use crate::bench::Bench;
use crate::clock::now_ns;
use crate::held;
use crate::memory::{HarnessTable, Resident};
use crate::published;
use crate::report;
use core::cell::Cell;
use heapmark_wire::HeapPoint;

/// From this many live bytes on, a point's overhead describes the allocator.
pub const OVERHEAD_FROM_BYTES: u64 = 1 << 20;

/// A reading below this share of what an allocator must hold is impossible.
pub const LEAST_OF_BOUND: f64 = 0.97;

/// The heap points of one process.
pub struct HeapPoints {
    taken: HarnessTable<HeapPoint>,
    count: Cell<usize>,
    /// Bytes of memory outside files, just before the first operation, that cannot hold any block.
    before: Cell<i64>,
    /// Bytes that count as tables of the harness but lie in a file.
    harness_file_bytes: u64,
    began_ns: Cell<u64>,
}

// SAFETY: used by one thread at a time: no other one works while a point is taken.
unsafe impl Sync for HeapPoints {}

impl HeapPoints {
    /// Creates room for this many points; 0 if no points are wanted.
    pub fn new(places: usize) -> HeapPoints {
        HeapPoints::beside(places, 0)
    }

    /// Like [`HeapPoints::new`], if this many bytes of the harness's tables lie in a file.
    pub fn beside(places: usize, harness_file_bytes: u64) -> HeapPoints {
        HeapPoints {
            taken: HarnessTable::shared(places),
            count: Cell::new(0),
            before: Cell::new(0),
            harness_file_bytes,
            began_ns: Cell::new(0),
        }
    }

    /// Whether any points are wanted.
    pub fn wanted(&self) -> bool {
        !self.taken.is_empty()
    }

    /// Whether all places are taken.
    pub fn full(&self) -> bool {
        self.count.get() >= self.taken.len()
    }

    /// Sets the baseline just before the first operation, when all tables of the harness exist. What the allocator
    /// already holds by then counts as its own, since blocks will lie there: mimalloc3 holds a huge page, without which
    /// `stranded` would find less memory than live bytes.
    pub fn begin(&self) {
        if self.wanted() {
            let held =
                published::page().map_or(0, |page| held::bytes(page, self.harness_file_bytes));
            let held_bytes = held as i64;
            self.before.set(own(&Resident::now()) - held_bytes);
            self.began_ns.set(now_ns());
        }
    }

    /// Takes a point if points are wanted, and returns the resident heap. The point is not kept if all places are
    /// taken. `volume` is the number of bytes allocated so far.
    pub fn take(&self, volume: u64, live: u64) -> u64 {
        if !self.wanted() {
            return 0;
        }
        let now = Resident::now();
        let point = HeapPoint {
            allocated_bytes: volume,
            time_ns: now_ns() - self.began_ns.get(),
            live_bytes: live,
            occupied_bytes: published::occupied_bytes(),
            heap_bytes: self.heap_bytes(&now),
            anon_huge_bytes: now.huge,
        };
        if !self.full() {
            let place = self.count.replace(self.count.get() + 1);
            // SAFETY: within the table, and one thread at a time takes points.
            unsafe { self.taken.as_ptr().cast_mut().add(place).write(point) };
        }
        point.heap_bytes
    }

    /// Like [`HeapPoints::take`], if each page of live blocks of `touched` bytes has been touched and no other thread
    /// works: ends the process if less memory is found.
    pub fn take_touched(&self, volume: u64, live: u64, touched: u64) -> u64 {
        let heap = self.take(volume, live);
        let is_impossible = (heap as f64) < LEAST_OF_BOUND * touched as f64;
        if self.wanted() && touched >= OVERHEAD_FROM_BYTES && is_impossible {
            not_all_found(heap, touched);
        }
        heap
    }

    /// Bytes that the allocator holds.
    pub fn heap_bytes(&self, now: &Resident) -> u64 {
        (own(now) - self.before.get()).max(0) as u64
    }

    /// Reports what the ratio of the resident heap to the most live bytes would be if no freed byte were ever reused.
    pub fn tell_no_reuse(&self, bench: &Bench, volume: u64, most_live: u64) {
        if self.wanted() && most_live > 0 {
            bench.figure("no_reuse_ratio", volume as f64 / most_live as f64);
        }
    }

    /// Writes the points to the report.
    pub fn tell(&self) {
        for point in &self.taken[..self.count.get()] {
            report::say("point", point);
        }
    }
}

fn not_all_found(heap: u64, live: u64) -> ! {
    let [heap, live] = [heap, live].map(|bytes| bytes >> 10);
    fail!(
        "error",
        "memory is measured wrongly here: of {live} KiB in live blocks {heap} KiB are found (a heap in a file of a disk, or swapped out)"
    )
}

/// Returns the bytes of memory that may belong to the allocator.
pub fn own(resident: &Resident) -> i64 {
    resident.fileless as i64 - published::harness_bytes() as i64
}
