//! The memory that a replay in strict order holds, measured by the replay itself at points that the
//! compiled trace names. In strict order one thread plays at a time, so nothing changes during a
//! measurement.

use super::sheet::Sheet;
use super::*;
use crate::check::{self, Occupied};
use crate::heap_points::{HeapPoints, own};
use crate::memory::Resident;
use crate::published;
use heapmark_wire::Peak;

/// Maximum number of points in a series of up to 1 GiB of live bytes. A larger series has
/// proportionally fewer points, since the kernel takes some 14 ms to walk the page tables of each
/// GiB.
const MOST_POINTS: u64 = 1000;
/// The maximum number of points is never lower than this.
const FEWEST_POINTS: u64 = 100;

/// How long a heap rests before it is measured again.
const REST_NS: u64 = 1_000_000_000;

/// The points of one replay process.
pub struct Points {
    taken: HeapPoints,
    /// One in this many points of the compiled trace is taken.
    every: u64,
    passed: Cell<u64>,
    peak: (u64, u64),
    at_peak: Cell<Option<Peak>>,
    /// Memory of the harness that lies in a file: the compiled trace.
    harness_file_bytes: i64,
}

// SAFETY: used by one thread at a time, as described above. If several threads play at once, no
// points are wanted.
unsafe impl Sync for Points {}

impl Points {
    /// Makes the points that a job asks for.
    pub fn of(bench: &Bench, sheet: &Sheet) -> Points {
        let head = &sheet.head;
        let wanted = bench.parameter("mode") == "memory" && published::wanted();
        let most = (MOST_POINTS << 30) / head.requested_peak_bytes.max(1 << 30);
        let most = most.max(FEWEST_POINTS);
        let places = if wanted { most as usize + 1 } else { 0 };
        Points {
            taken: HeapPoints::beside(places, sheet.resident_bytes() as u64),
            every: head.points.div_ceil(most).max(1),
            passed: Cell::new(0),
            peak: head.peak,
            at_peak: Cell::new(None),
            harness_file_bytes: sheet.resident_bytes(),
        }
    }

    /// Begins the series of points, just before the first op.
    pub fn begin(&self) {
        self.taken.begin();
    }

    /// Returns the number of this thread's ops after which live bytes peak; `u64::MAX` if another
    /// thread reaches the peak.
    pub fn peak_of(&self, thread: usize) -> u64 {
        let (peak, ops) = self.peak;
        if self.taken.wanted() && peak == thread as u64 {
            ops
        } else {
            u64::MAX
        }
    }

    /// Takes a point if it is due. `touched` is the bytes of those live blocks whose pages have all
    /// been touched.
    pub fn take(&self, volume: u64, live: u64, touched: u64) {
        let passed = self.passed.replace(self.passed.get() + 1);
        if passed.is_multiple_of(self.every) {
            self.taken.take_touched(volume, live, touched);
        }
    }

    /// Notes, when live bytes peak, the allocator's usable size of each block, and how full the
    /// pages are.
    pub fn at_peak(&self, slots: &[Cell<*mut u8>], api: &Api) {
        let now = Resident::now();
        let heap = self.heap_bytes(&now);
        let blocks = slots.iter().map(Cell::get).filter(|block| !block.is_null());
        // SAFETY: live blocks.
        let usable_bytes = blocks
            .map(|block| unsafe { (api.usable_size)(block) } as u64)
            .sum();
        let Occupied {
            pages,
            tenth_page_bytes,
            sparse_pages,
        } = check::occupied();
        self.at_peak.set(Some(Peak {
            live_bytes: published::live_bytes(),
            occupied_bytes: pages << 12,
            heap_bytes: heap,
            usable_bytes,
            anon_huge_bytes: now.huge,
            tenth_page_bytes,
            sparse_pages,
        }));
    }

    /// Reports the live bytes, and the heap now and after a second without a call. Called when all
    /// streams have ended and nothing is freed yet.
    pub fn at_end(&self, bench: &Bench) {
        if !self.taken.wanted() {
            return;
        }
        let heap = || self.heap_bytes(&Resident::now()) as f64;
        bench.figure("end_live_bytes", published::live_bytes() as f64);
        bench.figure("end_heap_bytes", heap());
        sys::sleep_ns(REST_NS);
        bench.figure("rest_heap_bytes", heap());
    }

    /// Returns the bytes of the heap. The memory of live blocks counts even if the allocator had it
    /// before the first op.
    fn heap_bytes(&self, now: &Resident) -> u64 {
        self.taken.heap_bytes(now).max(self.present_bytes(now))
    }

    /// Returns the resident bytes of live blocks. These bytes must be part of the memory that was
    /// found; otherwise the heap lies in memory that is not counted here, and all figures would be
    /// too small.
    fn present_bytes(&self, now: &Resident) -> u64 {
        let (present, all) = (
            check::present_bytes().unwrap_or(0),
            own(now) + self.harness_file_bytes,
        );
        if present as i64 > all {
            let (present, all) = (present >> 20, all.max(0) >> 20);
            let where_it_lies =
                "the heap lies in a file, and what a replay counts is memory without one";
            fail!(
                "error",
                "live blocks take {present} MiB of memory, of which {all} MiB are found: {where_it_lies}"
            );
        }
        present
    }

    /// Writes the points to the report, and the packing that the host has found for the blocks.
    pub fn tell(&self, bench: &Bench, most_live_bytes: u64) {
        self.taken.tell();
        let packed_bytes = bench.number("packed_bytes");
        if self.taken.wanted() && packed_bytes > 0 && most_live_bytes > 0 {
            bench.figure(
                "packing_ratio",
                packed_bytes as f64 / most_live_bytes as f64,
            );
        }
        self.at_peak
            .get()
            .iter()
            .for_each(|peak| report::say("peak", peak));
    }
}
