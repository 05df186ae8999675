//! The checked run: every block that the allocator hands out is held against all that are live. Overlap and misalignment
//! end the process as `wrong-result`. Never timed: it stands between the kernel and the allocator under one lock.
//!
//! A shadow of the address space in granules of 8 bytes: one bit says "taken", one "a block starts here". Nothing is
//! written into the blocks themselves, since kernels write there.

use crate::api::Api;
use crate::fail;
use crate::memory::Table;
use crate::threads::wait_until;
use crate::watched;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use heapmark_wire::Held;

const GRANULES: usize = 512;
/// A page of the shadow's own table.
const OWN_PAGE: usize = 4096;
/// Pages that the shadow has room for: 16 GiB of blocks.
const MOST_PAGES: usize = 1 << 22;
/// So many pages in a row share one place in the table of pages.
const GROUP: usize = 64;

struct Shadow {
    locked: AtomicBool,
    real: Option<Api>,
    pages: Table<PageShadow>,
    /// Which pages of that table hold anything: a bit for each.
    touched: Table<u64>,
    live_bytes: u64,
    occupied_pages: u64,
    /// Where what is live is told, if anybody wants to know.
    held: Option<&'static Held>,
}

/// All zero is a page without blocks.
#[derive(Clone, Copy)]
struct PageShadow {
    number: usize,
    taken: Granules,
    start: Granules,
    /// Of a block that starts here: by how many bytes its granules are more than what was requested, in three bits.
    slack: [Granules; 3],
}

/// A bit for each granule of a page.
type Granules = [u64; GRANULES / 64];

static SHADOW: AtomicPtr<Shadow> = AtomicPtr::new(ptr::null_mut());

/// Functions that call `real` and watch what it returns. `held` is kept told of what is live.
pub fn watch(real: Api, held: Option<&'static Held>) -> Api {
    let mut shadow = core::mem::ManuallyDrop::new(Table::<Shadow>::zeroed(1));
    // SAFETY: `Shadow` holds a `Table`, which zeroed memory is not: it is written before anybody reads it.
    unsafe {
        ptr::write(
            shadow.as_mut_ptr(),
            Shadow {
                locked: AtomicBool::new(false),
                real: Some(real),
                pages: Table::reserved(MOST_PAGES),
                touched: Table::zeroed((MOST_PAGES * size_of::<PageShadow>()).div_ceil(64 * OWN_PAGE)),
                live_bytes: 0,
                occupied_pages: 0,
                held,
            },
        );
    }
    SHADOW.store(shadow.as_mut_ptr(), Ordering::Release);
    Api { malloc, free, calloc, realloc, posix_memalign, free_sized, usable_size: real.usable_size }
}

fn real() -> Api {
    // SAFETY: set by `watch` before these functions were handed out, never changed.
    match unsafe { SHADOW.load(Ordering::Acquire).as_ref() }.and_then(|shadow| shadow.real) {
        Some(real) => real,
        None => fail::give_up("error", format_args!("the check was not set up")),
    }
}

unsafe extern "C" fn malloc(size: usize) -> *mut u8 {
    // SAFETY: the allocator's own function.
    let block = unsafe { (real().malloc)(size) };
    take("malloc", block, size);
    block
}

unsafe extern "C" fn calloc(count: usize, size: usize) -> *mut u8 {
    // SAFETY: the allocator's own function.
    let block = unsafe { (real().calloc)(count, size) };
    take("calloc", block, count * size);
    // SAFETY: calloc promised that many zeroed bytes.
    if !block.is_null() && (0..count * size).any(|i| unsafe { block.add(i).read_volatile() } != 0) {
        fail::give_up("wrong-result", format_args!("calloc({count}, {size}) returned bytes that are not zero"));
    }
    block
}

unsafe extern "C" fn realloc(block: *mut u8, size: usize) -> *mut u8 {
    give_back(block);
    // SAFETY: the allocator's own function with a block of its own.
    let moved = unsafe { (real().realloc)(block, size) };
    take("realloc", moved, size);
    moved
}

unsafe extern "C" fn posix_memalign(block: *mut *mut u8, alignment: usize, size: usize) -> i32 {
    // SAFETY: the allocator's own function, and the caller's place for the result.
    let (error, address) = unsafe { ((real().posix_memalign)(block, alignment, size), *block) };
    if error == 0 {
        take("posix_memalign", address, size);
        if !(address as usize).is_multiple_of(alignment) {
            fail::give_up(
                "wrong-result",
                format_args!("posix_memalign({alignment}, {size}) returned {address:p}, which is not aligned to that"),
            );
        }
    }
    error
}

unsafe extern "C" fn free(block: *mut u8) {
    // Before the call: another thread may get the block at once.
    give_back(block);
    // SAFETY: the allocator's own function with a block of its own.
    unsafe { (real().free)(block) };
}

unsafe extern "C" fn free_sized(block: *mut u8, size: usize, flags: usize) {
    give_back(block);
    // SAFETY: as in `free`.
    unsafe { (real().free_sized)(block, size, flags) };
}

fn take(call: &str, block: *mut u8, size: usize) {
    if block.is_null() {
        return;
    }
    let (address, alignment) = (block as usize, if size >= 16 { 16 } else { 8 });
    if !address.is_multiple_of(alignment) {
        fail::give_up(
            "wrong-result",
            format_args!("{call} of {size} bytes returned {address:#x}, which is not aligned to {alignment} bytes"),
        );
    }
    with_shadow(|shadow| {
        let (first, end) = (address / 8, address / 8 + size.div_ceil(8).max(1));
        let mut granule = first;
        while granule < end {
            let page = shadow.page(granule / GRANULES);
            let was_empty = page.is_empty();
            let page_end = end.min((granule / GRANULES + 1) * GRANULES);
            while granule < page_end {
                let (bits, next) = span(granule, page_end);
                let taken = &mut page.taken[granule % GRANULES / 64];
                // Blocks of 0 bytes may share an address: nobody writes to them.
                if *taken & bits != 0 && size > 0 {
                    fail::give_up(
                        "wrong-result",
                        format_args!("{call} of {size} bytes returned {address:#x}, which overlaps a live block"),
                    );
                }
                *taken |= bits;
                granule = next.min(page_end);
            }
            shadow.occupied_pages += u64::from(was_empty);
        }
        // A block of 0 bytes is told as one of 8: it has an address, and so a granule.
        let slack = (8 - size % 8) % 8;
        shadow.page(first / GRANULES).begin(first, slack);
        shadow.live_bytes += (8 * (end - first) - slack) as u64;
        shadow.tell();
    });
}

fn give_back(block: *mut u8) {
    if block.is_null() {
        return;
    }
    with_shadow(|shadow| {
        let mut granule = block as usize / 8;
        let Some(slack) = shadow.page(granule / GRANULES).end(granule) else { return };
        shadow.live_bytes += slack;
        loop {
            let page = shadow.page(granule / GRANULES);
            let freed = page.clear(granule);
            let emptied = freed > 0 && page.is_empty();
            shadow.live_bytes -= 8 * freed as u64;
            shadow.occupied_pages -= u64::from(emptied);
            granule += freed;
            // It goes on in the next page only where it reached the end of this one.
            if freed == 0 || !granule.is_multiple_of(GRANULES) {
                break;
            }
        }
        shadow.tell();
    });
}

impl PageShadow {
    fn is_empty(&self) -> bool {
        self.taken.iter().all(|word| *word == 0)
    }

    /// A block starts here, whose granules hold `slack` bytes more than it asked for.
    fn begin(&mut self, granule: usize, slack: usize) {
        let (word, bit) = (granule % GRANULES / 64, granule % 64);
        self.start[word] |= 1 << bit;
        for (place, bits) in self.slack.iter_mut().enumerate() {
            bits[word] = bits[word] & !(1 << bit) | (slack as u64 >> place & 1) << bit;
        }
    }

    /// The block that starts here is no more; returns its slack. `None` where none starts.
    fn end(&mut self, granule: usize) -> Option<u64> {
        let (word, bit) = (granule % GRANULES / 64, granule % 64);
        if self.start[word] & 1 << bit == 0 {
            return None;
        }
        self.start[word] &= !(1 << bit);
        Some((0..3).map(|place| (self.slack[place][word] >> bit & 1) << place).sum())
    }

    /// Clears from this granule to the end of the block or of the page; returns how many granules. The block goes on as long as
    /// granules are taken and no other block starts.
    fn clear(&mut self, mut granule: usize) -> usize {
        let first = granule;
        for word in granule % GRANULES / 64..GRANULES / 64 {
            let bit = granule % 64;
            let run = ((self.taken[word] & !self.start[word]) >> bit).trailing_ones() as usize;
            if run == 0 {
                break;
            }
            self.taken[word] &= !(u64::MAX >> (64 - run) << bit);
            granule += run;
            if bit + run < 64 {
                break;
            }
        }
        granule - first
    }
}

/// The bits of `granule..end` in granule's own word, and the first granule after that word.
fn span(granule: usize, end: usize) -> (u64, usize) {
    let next = (granule / 64 + 1) * 64;
    let low = u64::MAX << (granule % 64);
    if end >= next { (low, next) } else { (low & !(u64::MAX << (end % 64)), end) }
}

impl Shadow {
    /// The shadow of a page of the address space. Pages that have no block left keep their entry. Neighbours stay together:
    /// a large block's pages are found in a row.
    fn page(&mut self, number: usize) -> &mut PageShadow {
        let group = (number / GROUP).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - (MOST_PAGES / GROUP).ilog2());
        let mut index = group * GROUP + number % GROUP;
        for _ in 0..MOST_PAGES / GROUP {
            let found = self.pages[index].number;
            if found == number || found == 0 {
                if found == 0 {
                    self.touch(index);
                }
                self.pages[index].number = number;
                return &mut self.pages[index];
            }
            index = (index + GROUP) % MOST_PAGES;
        }
        fail::give_up("unsupported", format_args!("blocks are spread over more pages than the check can watch"))
    }
}

impl Shadow {
    /// An entry is written to for the first time: its pages of the table become resident.
    fn touch(&mut self, index: usize) {
        let (start, bytes) = (index * size_of::<PageShadow>(), size_of::<PageShadow>());
        for page in start / OWN_PAGE..=(start + bytes - 1) / OWN_PAGE {
            let (word, bit) = (&mut self.touched[page / 64], 1 << (page % 64));
            if *word & bit == 0 {
                *word |= bit;
                watched::harness_grows(OWN_PAGE as i64);
            }
        }
    }

    fn tell(&self) {
        self.held.iter().for_each(|held| held.set(self.live_bytes, self.occupied_pages << 12));
    }
}

/// How full the pages are that hold a live block.
#[derive(Clone, Copy, Default)]
pub struct Occupied {
    /// How many there are.
    pub pages: u64,
    /// A tenth of them hold at most so many live bytes.
    pub tenth_page_bytes: u64,
    /// Those that are less than a quarter full.
    pub sparse_pages: u64,
}

/// Looks at every page. Bytes are counted in granules.
pub fn occupied() -> Occupied {
    if SHADOW.load(Ordering::Acquire).is_null() {
        return Occupied::default();
    }
    let mut by_granules = [0u64; GRANULES + 1];
    with_shadow(|shadow| {
        for index in 0..MOST_PAGES {
            let own_page = index * size_of::<PageShadow>() / OWN_PAGE;
            // Most of the table was never touched, and looking at it would bring it into memory.
            if shadow.touched[own_page / 64] & 1 << (own_page % 64) != 0 {
                let taken = &shadow.pages[index].taken;
                by_granules[taken.iter().map(|word| word.count_ones() as usize).sum::<usize>()] += 1;
            }
        }
    });
    by_granules[0] = 0;
    let pages: u64 = by_granules.iter().sum();
    let mut passed = 0;
    let tenth = by_granules.iter().position(|count| {
        passed += count;
        passed * 10 >= pages.max(1)
    });
    let sparse_pages = by_granules[..GRANULES / 4].iter().sum();
    Occupied { pages, tenth_page_bytes: tenth.unwrap_or(0) as u64 * 8, sparse_pages }
}

fn with_shadow(act: impl FnOnce(&mut Shadow)) {
    let shadow = SHADOW.load(Ordering::Acquire);
    // SAFETY: set once by `watch`, lives for ever.
    let locked = unsafe { &(*shadow).locked };
    // With more threads than CPUs, whoever holds the lock may be waiting for a CPU.
    wait_until(|| !locked.swap(true, Ordering::Acquire));
    // SAFETY: the lock makes this the only reference.
    act(unsafe { &mut *shadow });
    locked.store(false, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_end_at_words() {
        assert_eq!(span(0, 3), (0b111, 3));
        assert_eq!(span(62, 130), (0b11 << 62, 64));
        assert_eq!(span(64, 130), (u64::MAX, 128));
        assert_eq!(span(128, 130), (0b11, 130));
        assert_eq!(span(0, 64), (u64::MAX, 64));
    }
}
