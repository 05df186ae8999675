//! `calloc`: blocks of many pages of which the program writes a few, replaced in turn, as sparse tables and buffers
//! are: does calloc write the pages that the kernel has zeroed already?

use super::*;

pub const KERNEL: Kernel = Kernel {
    calls: &["calloc", "free"],
    ..Kernel::timed(
        "calloc",
        &["size", "slots", "replacements", "every", "thread"],
        run,
    )
};

/// The value that is written into the first byte of a page.
const MARK: u8 = 0xa5;

struct CallocLoad {
    api: Api,
    size: usize,
    slots: usize,
    replacements: usize,
    /// One page in this many is written, beginning with the first page.
    every: usize,
    verify: bool,
    blocks: HarnessTable<Cell<*mut u8>>,
    /// Each worker's buffer for the kernel's report on a block's pages, one byte per page.
    rooms: HarnessTable<Cell<u8>>,
    /// Pages of the blocks of the first round, before any block was freed.
    fresh: HarnessTable<Padded<Pages>>,
    /// Pages of the blocks that replaced a freed block.
    again: HarnessTable<Padded<Pages>>,
    works: Works,
}

/// Whole pages inside blocks, counted when calloc has just returned the blocks.
#[derive(Default)]
struct Pages {
    all: Cell<u64>,
    resident: Cell<u64>,
}

fn run(bench: &mut Bench) {
    let size = bench.count("size").max(2 * sys::page_bytes());
    let slots = bench.count("slots");
    let load = CallocLoad {
        api: bench.api,
        size,
        slots,
        replacements: bench.count("replacements"),
        every: bench.count("every").max(1),
        verify: !null::serves(),
        blocks: HarnessTable::zeroed(bench.threads * slots),
        rooms: HarnessTable::zeroed(bench.threads * size / sys::page_bytes()),
        fresh: HarnessTable::zeroed(bench.threads),
        again: HarnessTable::zeroed(bench.threads),
        works: Works::new(bench),
    };
    let at_a_time = (bench.threads * slots * size) as u64;
    bench.needs(at_a_time);
    null::overlap(size, bench.threads);
    let mut expected = KernelWork::default();
    (0..bench.threads).for_each(|_| expected += load.work());
    let plan = LapPlan {
        teams: 1,
        laps: 1,
        ops: (bench.threads * load.replacements) as u64,
        expected,
    };
    laps::run(bench, &load, &load.works, &plan);
    bench.requested_peak(at_a_time);
    if load.verify {
        let share = |pages: &[Padded<Pages>]| {
            let sum = |of: fn(&Pages) -> &Cell<u64>| {
                pages.iter().map(|pages| of(pages).get()).sum::<u64>() as f64
            };
            sum(|pages| &pages.resident) / sum(|pages| &pages.all)
        };
        bench.figure("calloc_resident_share", share(&load.fresh));
        bench.figure("calloc_again_resident_share", share(&load.again));
    }
}

impl Load for CallocLoad {
    /// Fills all slots, and writes into them only then: a huge page that a write takes may reach into the next block.
    fn before(&self, worker: usize, _lap: usize) {
        let is_first = self.fresh[worker].all.get() == 0;
        for place in self.slots_of(worker) {
            place.set(self.allocate());
            if is_first {
                self.look(worker, place.get(), &self.fresh[worker]);
            }
        }
        let blocks = self.slots_of(worker).iter();
        blocks.for_each(|place| self.write(place.get()));
    }

    fn timed(&self, worker: usize, _lap: usize) {
        let mut slots = self.slots_of(worker).iter().cycle();
        for place in slots.by_ref().take(self.replacements) {
            self.free(place.get());
            let block = self.allocate();
            self.write(block);
            place.set(block);
        }
    }

    /// Replaces each block once more, and looks at the new one before it is written.
    fn after(&self, worker: usize, _lap: usize) {
        for place in self.slots_of(worker) {
            self.verify(place.get(), MARK);
            self.free(place.get());
            let block = self.allocate();
            self.look(worker, block, &self.again[worker]);
            self.verify(block, 0);
            place.set(block);
        }
        let blocks = self.slots_of(worker).iter();
        blocks.for_each(|place| self.free(place.get()));
        self.works.add(worker, self.work());
    }
}

impl CallocLoad {
    fn slots_of(&self, worker: usize) -> &[Cell<*mut u8>] {
        self.blocks.part(worker, self.slots)
    }

    /// Returns the work of one worker in a round.
    fn work(&self) -> KernelWork {
        let blocks = (2 * self.slots + self.replacements) as u64;
        KernelWork {
            calloc: blocks,
            free: blocks,
            checksum: blocks * self.size as u64,
            ..KernelWork::default()
        }
    }

    fn allocate(&self) -> *mut u8 {
        // SAFETY: an ordinary call.
        let block = unsafe { (self.api.calloc)(1, self.size) };
        if block.is_null() {
            report::no_block("calloc", self.size);
        }
        block
    }

    fn free(&self, block: *mut u8) {
        // SAFETY: a live block, freed once.
        unsafe { (self.api.free)(block) };
    }

    fn write(&self, block: *mut u8) {
        for offset in (0..self.size).step_by(self.every * touch::PAGE) {
            // SAFETY: within the block.
            unsafe { block.add(offset).write_volatile(MARK) };
        }
    }

    /// Ends the process unless each written page of a block begins with `mark`, every other page begins with zero, and
    /// all pages end with zero.
    fn verify(&self, block: *mut u8, mark: u8) {
        if !self.verify {
            return;
        }
        for (page, offset) in (0..self.size).step_by(touch::PAGE).enumerate() {
            let last = (self.size - 1).min(offset + touch::PAGE - 1);
            // SAFETY: within the block.
            let found = [offset, last].map(|offset| unsafe { block.add(offset).read_volatile() });
            let is_written = mark != 0 && page % self.every == 0;
            if is_written && found[0] != mark {
                touch::broken(self.size);
            }
            if !is_written && found[0] != 0 || last > offset && found[1] != 0 {
                fail!(
                    "wrong-result",
                    "a block of {} bytes from calloc is not zero where nothing was written",
                    self.size
                );
            }
        }
    }

    /// Counts a block's whole pages, and those that are resident.
    fn look(&self, worker: usize, block: *mut u8, pages: &Pages) {
        let page = sys::page_bytes();
        let first = block.map_addr(|address| address.next_multiple_of(page));
        let count = (block.addr() + self.size - first.addr()) / page;
        let room = self.rooms.part(worker, self.size / page);
        // SAFETY: the pages belong to a live block, and the buffer has room for one byte per page.
        let failed =
            unsafe { libc::mincore(first.cast(), count * page, room.as_ptr().cast_mut().cast()) };
        if failed != 0 {
            fail!("error", "the kernel does not say which pages are resident");
        }
        let resident = room[..count].iter().filter(|of| of.get() & 1 != 0).count();
        pages.all.set(pages.all.get() + count as u64);
        pages.resident.set(pages.resident.get() + resident as u64);
    }
}
