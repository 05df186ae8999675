//! Shared by the kernels whose threads have slots and, again and again, replace the block in a drawn slot by a new one.

use super::laps::LapTimes;
use super::*;
use crate::aged;
use crate::api::SizedFrees;
use crate::memory::Resident;

/// The function that allocates blocks.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Malloc,
    Calloc,
    /// `posix_memalign`, with this alignment.
    Aligned(usize),
}

/// The bytes that are written into a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Written {
    Nothing,
    /// A byte of each page, and a stamp.
    Pages,
    /// Every byte, and a stamp.
    All,
}

/// Number of laps of a process that compares two ways to free.
const SIZED_LAPS: usize = 9;

/// Returns whether blocks are freed with their size in a lap, if two ways to free are compared: plain, sized, sized,
/// plain, so that a steady drift cancels. The very first lap comes before these. That lap is plain, too, takes the
/// first page faults, and is left out of the comparison.
pub fn is_sized(lap: usize) -> bool {
    matches!(lap % 4, 2 | 3)
}

/// The slots of all threads, and the order in which their blocks are replaced.
pub struct Replaced {
    pub api: Api,
    pub made: Made,
    pub written: Written,
    /// The functions to use if two ways to free are compared.
    pub frees: Option<SizedFrees>,
    threads: usize,
    /// Number of slots of each thread.
    slots: usize,
    replacements: usize,
    laps: usize,
    /// Two tables for each thread: which slot is next, and how large the slot's new block is. At its end, each table
    /// starts over.
    order: HarnessTable<u32>,
    sizes: HarnessTable<u32>,
    blocks: HarnessTable<Cell<HeldBlock>>,
    verify: bool,
    /// The resident set after the replacements of one thread, in bytes.
    resident_bytes: InTurn<Cell<u64>>,
    works: Works,
}

#[derive(Clone, Copy)]
struct HeldBlock {
    address: *mut u8,
    size: u32,
}

impl HeldBlock {
    /// Makes a block from the address that the allocator has returned for this many bytes. Ends the process if the
    /// address is null.
    #[inline(always)]
    fn fresh(address: *mut u8, size: u32) -> HeldBlock {
        if address.is_null() {
            report::no_block("the allocator", size as usize);
        }
        HeldBlock { address, size }
    }
}

impl Replaced {
    /// Gives each thread this many slots, and two tables with `draws` entries: uniformly drawn slots, and the sizes of
    /// their blocks, which come from `draw`.
    pub fn new(
        bench: &Bench,
        slots: usize,
        replacements: usize,
        draws: [usize; 2],
        draw: impl Fn(&mut SplitMix, &mut [u32]),
    ) -> Replaced {
        let threads = bench.threads;
        let [mut order, mut sizes] = draws.map(|len| HarnessTable::<u32>::zeroed(threads * len));
        let of_threads = order.chunks_mut(draws[0]).zip(sizes.chunks_mut(draws[1]));
        for (thread, (order, sizes)) in of_threads.enumerate() {
            let mut random = SplitMix::new(bench.seed, thread as u64);
            order.fill_with(|| random.below(slots as u32));
            draw(&mut random, sizes);
        }
        Replaced {
            api: bench.api,
            made: Made::Malloc,
            written: Written::Nothing,
            frees: None,
            threads,
            slots,
            replacements,
            laps: 1,
            order,
            sizes,
            blocks: HarnessTable::zeroed(threads * slots),
            verify: !null::serves(),
            resident_bytes: InTurn::default(),
            works: Works::new(bench),
        }
    }

    /// Runs all rounds. Slots are filled and emptied again off the clock.
    pub fn run(mut self, bench: &mut Bench) -> LapTimes {
        if self.frees.is_some() {
            self.laps = SIZED_LAPS;
        }
        let largest = self.sizes.iter().copied().max().unwrap_or(0) as usize;
        let (peak, bytes) = (0..self.threads)
            .map(|thread| self.demand(thread))
            .fold((0, 0), |sum, demand| (sum.0 + demand.0, sum.1 + demand.1));
        let padded = match self.made {
            Made::Aligned(alignment) => alignment,
            _ => 0,
        };
        // Some allocators hold as many extra bytes as the alignment for each block, and these may be resident.
        let paddings = (self.threads * self.slots).saturating_mul(padded) as u64;
        bench.needs(peak.saturating_add(paddings));
        null::overlap(largest + padded, self.threads);
        let each = (self.slots + self.replacements) as u64;
        let blocks = (self.threads * self.laps) as u64 * each;
        let plan = LapPlan {
            teams: 1,
            laps: self.laps,
            ops: 2 * (self.threads * self.laps * self.replacements) as u64,
            expected: self.work(blocks, self.laps as u64 * bytes),
        };
        let seen = laps::run(bench, &self, &self.works, &plan);
        bench.requested_peak(peak);
        let resident_bytes = self.resident_bytes.get();
        if resident_bytes > 0 {
            let heap_bytes = resident_bytes.saturating_sub(bench.outside_bytes());
            bench.figure("aligned_overhead", heap_bytes as f64 / peak as f64);
        }
        seen
    }

    /// Returns the most live bytes of a thread, and all bytes that the thread requests in a lap.
    fn demand(&self, thread: usize) -> (u64, u64) {
        let [order, sizes] = self.tables(thread);
        let held = self.blocks.part(thread, self.slots);
        let (mut live, mut peak, mut sum) = (0, 0, 0);
        let mut take = |slot: usize, size: u32| {
            let old = held[slot].replace(HeldBlock {
                address: ptr::null_mut(),
                size,
            });
            sum += u64::from(size);
            live += u64::from(size);
            live -= u64::from(old.size);
            peak = peak.max(live);
        };
        (0..self.slots).for_each(|slot| take(slot, sizes[slot % sizes.len()]));
        for at in 0..self.replacements {
            take(order[at % order.len()] as usize, sizes[at % sizes.len()]);
        }
        let empty = HeldBlock {
            address: ptr::null_mut(),
            size: 0,
        };
        held.iter().for_each(|slot| slot.set(empty));
        (peak, sum)
    }

    fn tables(&self, thread: usize) -> [&[u32]; 2] {
        [&self.order, &self.sizes].map(|table| {
            let len = table.len() / self.threads;
            &table[thread * len..][..len]
        })
    }

    fn work(&self, blocks: u64, bytes: u64) -> KernelWork {
        let mut work = KernelWork::pairs(0, bytes);
        work.free = blocks;
        match self.made {
            Made::Malloc => work.malloc = blocks,
            Made::Calloc => work.calloc = blocks,
            Made::Aligned(_) => work.posix_memalign = blocks,
        }
        work
    }

    fn held(&self, worker: usize) -> &[Cell<HeldBlock>] {
        self.blocks.part(worker, self.slots)
    }

    /// Allocates a block and writes into it as the workload specifies.
    #[inline(always)]
    fn fill(&self, slot: usize, size: u32) -> *mut u8 {
        let bytes = size as usize;
        // SAFETY: ordinary calls.
        let block = unsafe {
            match (self.frees, self.made) {
                (Some(frees), _) => (frees.allocate)(bytes),
                (None, Made::Malloc) => (self.api.malloc)(bytes),
                (None, Made::Calloc) => (self.api.calloc)(1, bytes),
                (None, Made::Aligned(alignment)) => self.api.aligned_block(alignment, bytes),
            }
        };
        // SAFETY: a fresh block of that many bytes, two at least, unless it is null.
        unsafe {
            match self.written {
                _ if block.is_null() => {}
                Written::Nothing => {}
                Written::Pages => touch::stamp(block, bytes, slot as u8),
                Written::All => {
                    block.write_bytes(0, bytes);
                    touch::stamp(block, bytes, slot as u8);
                }
            }
        }
        block
    }

    /// Ends the process if a block has lost what was written into it.
    #[inline(always)]
    fn check(&self, slot: usize, held: HeldBlock) {
        if self.written != Written::Nothing && self.verify {
            // SAFETY: live.
            unsafe { touch::verify(held.address, held.size as usize, slot as u8) };
        }
    }

    /// Makes the replacements of a lap and returns the bytes that were requested. `fill` and `free` capture what they
    /// need: fields of `self` would be loaded again after each call to the allocator.
    #[inline(always)]
    fn replace(
        &self,
        worker: usize,
        fill: impl Fn(usize, u32) -> *mut u8,
        free: impl Fn(usize, HeldBlock),
    ) -> u64 {
        let [order, sizes] = self.tables(worker);
        let held = self.held(worker);
        let (mut next, mut next_size, mut left, mut bytes) = (0, 0, self.replacements, 0);
        while left > 0 {
            // Runs until either table starts over, so that not every step has to check for the end.
            let (rest, rest_sizes) = (&order[next..], &sizes[next_size..]);
            let run = left.min(rest.len()).min(rest_sizes.len());
            for (&slot, &size) in rest[..run].iter().zip(&rest_sizes[..run]) {
                let (slot, place) = (slot as usize, &held[slot as usize]);
                free(slot, place.get());
                place.set(HeldBlock::fresh(fill(slot, size), size));
                bytes += u64::from(size);
            }
            (next, next_size) = ((next + run) % order.len(), (next_size + run) % sizes.len());
            left -= run;
        }
        bytes
    }

    fn free_plainly(&self, address: *mut u8) {
        let free = self.frees.map_or(self.api.free, |frees| frees.plain);
        // SAFETY: live, freed once.
        unsafe { free(address) };
    }
}

impl Load for Replaced {
    fn before(&self, worker: usize, _lap: usize) {
        let [_, sizes] = self.tables(worker);
        for (slot, place) in self.held(worker).iter().enumerate() {
            let size = sizes[slot % sizes.len()];
            place.set(HeldBlock::fresh(self.fill(slot, size), size));
        }
    }

    fn timed(&self, worker: usize, lap: usize) {
        let (malloc, free) = (self.api.malloc, self.api.free);
        // SAFETY: ordinary calls; what is freed is live, has that size, and is freed once.
        let bytes = unsafe {
            match (self.frees, self.made, self.written) {
                (
                    Some(SizedFrees {
                        allocate, sized, ..
                    }),
                    ..,
                ) if is_sized(lap) => self.replace(
                    worker,
                    |_, size| allocate(size as usize),
                    |_, held| sized(held.address, held.size as usize, 0),
                ),
                (
                    Some(SizedFrees {
                        allocate, plain, ..
                    }),
                    ..,
                ) => self.replace(
                    worker,
                    |_, size| allocate(size as usize),
                    |_, held| plain(held.address),
                ),
                (None, Made::Malloc, Written::Nothing) => self.replace(
                    worker,
                    |_, size| malloc(size as usize),
                    |_, held| free(held.address),
                ),
                _ => self.replace(
                    worker,
                    |slot, size| self.fill(slot, size),
                    |slot, held| {
                        self.check(slot, held);
                        free(held.address);
                    },
                ),
            }
        };
        let blocks = self.replacements as u64;
        self.works.add(worker, self.work(blocks, bytes));
    }

    fn after(&self, worker: usize, _lap: usize) {
        // If there are several threads, others may already be emptying their slots. If memory is measured, the code
        // that watches the calls would be counted, too; so would an aged heap's litter.
        if let Made::Aligned(_) = self.made
            && self.threads == 1
            && !retained::is_wanted()
            && !aged::is_ordered()
        {
            self.resident_bytes.set(Resident::now().rss);
        }
        let mut bytes = 0;
        let [_, sizes] = self.tables(worker);
        for (slot, place) in self.held(worker).iter().enumerate() {
            self.check(slot, place.get());
            self.free_plainly(place.get().address);
            bytes += u64::from(sizes[slot % sizes.len()]);
        }
        self.works.add(worker, self.work(self.slots as u64, bytes));
    }
}
