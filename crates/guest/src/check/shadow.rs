//! The shadow of the address space: which granules are taken, where blocks start, what is live.

use super::page::{EntryOwner, GRANULES, PageEntry, PageGranules, span};
use crate::memory::HarnessTable;
use crate::published;
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use heapmark_wire::Held;

/// The smallest page size of any system. The shadow uses it on every system, so that figures from
/// two machines refer to the same pages.
const LEAST_PAGE: usize = 8 * GRANULES;
/// Pages that the shadow can hold: 16 GiB of blocks.
const MOST_PAGES: usize = 1 << 22;
/// Bits in `pagemap`: the page is resident and mapped at one place only.
const PRESENT_AT_ONE_PLACE: u64 = 1 << 63 | 1 << 56;
/// This many consecutive pages share one place in the table of pages.
const GROUP: usize = 64;

/// The shadow of all live blocks. Threads work on different pages in parallel.
pub(super) struct Shadow {
    pages: HarnessTable<PageEntry>,
    /// Which pages of the table `pages` hold anything: one bit for each.
    touched: HarnessTable<AtomicU64>,
    /// The system's page size, the unit in which the table `pages` becomes resident.
    page_bytes: usize,
    /// Live bytes, counted only if they are published: the counter is shared by all threads.
    live_bytes: AtomicU64,
    occupied_pages: AtomicU64,
    held: Option<&'static Held>,
}

impl Shadow {
    /// The shadow of an address space without blocks.
    pub fn new(held: Option<&'static Held>) -> Shadow {
        Shadow::with_pages_of(sys::page_bytes(), held)
    }

    fn with_pages_of(page_bytes: usize, held: Option<&'static Held>) -> Shadow {
        Shadow {
            pages: HarnessTable::reserved(MOST_PAGES),
            touched: HarnessTable::zeroed(
                (MOST_PAGES * size_of::<PageEntry>()).div_ceil(64 * LEAST_PAGE),
            ),
            page_bytes,
            live_bytes: AtomicU64::new(0),
            occupied_pages: AtomicU64::new(0),
            held,
        }
    }

    /// Adds a block that `call` returned; it must not overlap a live block.
    pub fn take(&self, call: &str, address: usize, size: usize) {
        let (first, end) = (address / 8, address / 8 + size.div_ceil(8).max(1));
        // A block of 0 bytes is counted as 8 bytes: it has an address, and so a granule.
        let slack = (8 - size % 8) % 8;
        let (mut granule, mut occupied) = (first, 0);
        while granule < end {
            let page_end = end.min((granule / GRANULES + 1) * GRANULES);
            self.entry(granule / GRANULES).with(|page| {
                occupied += u64::from(page.is_empty());
                // The start is marked together with the granules: otherwise a block that ends right
                // before this one would extend into it.
                if granule == first {
                    page.begin(first, slack);
                }
                while granule < page_end {
                    let (bits, next) = span(granule, page_end);
                    let taken = &mut page.taken[granule % GRANULES / 64];
                    // Blocks of 0 bytes may share an address: they are never written.
                    if *taken & bits != 0 && size > 0 {
                        fail!("wrong-result", "{call} of {size} bytes returned {address:#x}, which overlaps a live block");
                    }
                    *taken |= bits;
                    granule = next.min(page_end);
                }
            });
        }
        self.tell((8 * (end - first) - slack) as u64, occupied);
    }

    /// Removes the block that starts here and returns its size; `None` if no block starts here.
    pub fn give_back(&self, address: usize) -> Option<usize> {
        let first = address / 8;
        let (mut granule, mut occupied, mut slack) = (first, 0, 0);
        loop {
            let freed = self.entry(granule / GRANULES).with(|page| {
                if granule == first {
                    slack = page.end(first)?;
                }
                let freed = page.clear(granule);
                occupied += u64::from(freed > 0 && page.is_empty());
                Some(freed)
            })?;
            granule += freed;
            // A block extends into the next page only if it reached the end of this one.
            if freed == 0 || !granule.is_multiple_of(GRANULES) {
                break;
            }
        }
        let size = (8 * (granule - first)).saturating_sub(slack);
        self.tell((size as u64).wrapping_neg(), occupied.wrapping_neg());
        Some(size)
    }

    /// The shadow of a page of the address space. Pages that have no block left keep their entry.
    /// Neighbours stay together: a large block's pages are in consecutive entries.
    fn entry(&self, number: usize) -> &PageEntry {
        let group = (number / GROUP).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            >> (64 - (MOST_PAGES / GROUP).ilog2());
        let mut index = group * GROUP + number % GROUP;
        for _ in 0..MOST_PAGES / GROUP {
            match self.pages[index].claim(number) {
                EntryOwner::Own => return &self.pages[index],
                EntryOwner::Fresh => {
                    self.touch(index);
                    return &self.pages[index];
                }
                EntryOwner::Other => index = (index + GROUP) % MOST_PAGES,
            }
        }
        fail!(
            "unsupported",
            "blocks are spread over more pages than the check can watch"
        )
    }

    /// Called when an entry is claimed: makes the table's pages that hold the entry resident, and
    /// counts them.
    fn touch(&self, index: usize) {
        let (start, bytes) = (index * size_of::<PageEntry>(), size_of::<PageEntry>());
        // The claim has already written to the first page.
        self.pages[index].with(PageGranules::write_last);
        for page in self.own_page(start)..=self.own_page(start + bytes - 1) {
            let bit = 1 << (page % 64);
            if self.touched[page / 64].fetch_or(bit, Relaxed) & bit == 0 {
                published::harness_grows(self.page_bytes as i64);
            }
        }
    }

    /// The system page that contains a byte of the table.
    fn own_page(&self, at: usize) -> usize {
        at >> self.page_bytes.ilog2()
    }

    /// Adds bytes and pages; negative numbers wrap. The caller must hold a lock; otherwise an
    /// outdated value may be published last.
    fn tell(&self, bytes: u64, pages: u64) {
        if let Some(held) = self.held {
            let live_bytes = self
                .live_bytes
                .fetch_add(bytes, Relaxed)
                .wrapping_add(bytes);
            let occupied_pages = self
                .occupied_pages
                .fetch_add(pages, Relaxed)
                .wrapping_add(pages);
            held.set(live_bytes, occupied_pages << 12);
        }
    }

    /// Counts the pages by their number of taken granules. Pages that have no block left count as
    /// pages with 0.
    pub fn by_granules(&self) -> [u64; GRANULES + 1] {
        let mut pages = [0; GRANULES + 1];
        for entry in self.seen() {
            let taken = entry.with(|page| page.taken);
            pages[taken
                .iter()
                .map(|word| word.count_ones() as usize)
                .sum::<usize>()] += 1;
        }
        pages
    }

    /// Every page that may have held a block.
    fn seen(&self) -> impl Iterator<Item = &PageEntry> {
        // Most of the table was never touched, and reading it would make it resident.
        let touched = |index: &usize| {
            let own_page = self.own_page(index * size_of::<PageEntry>());
            self.touched[own_page / 64].load(Relaxed) & 1 << (own_page % 64) != 0
        };
        (0..MOST_PAGES)
            .filter(touched)
            .map(|index| &self.pages[index])
    }

    /// How many pages with a live block are resident and mapped at one place only; `None` if the
    /// kernel does not report that.
    pub fn present(&self) -> Option<u64> {
        let file = sys::RawFile::open(c"/proc/self/pagemap")?;
        let (mut present, mut group, mut flags) = (0, usize::MAX, [0u64; GROUP]);
        for entry in self
            .seen()
            .filter(|entry| !entry.with(|page| page.is_empty()))
        {
            // If the system's pages are larger, several pages of the shadow lie in one of them.
            let number = entry.number() / (self.page_bytes / LEAST_PAGE);
            if number / GROUP != group {
                group = number / GROUP;
                if !file.fill_from(group * size_of_val(&flags), &mut flags) {
                    return None;
                }
            }
            present +=
                u64::from(flags[number % GROUP] & PRESENT_AT_ONE_PLACE == PRESENT_AT_ONE_PLACE);
        }
        Some(present)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_page_of_the_table_that_counts_as_the_harnesss_is_resident_and_no_other_is() {
        let shadow = Shadow::new(None);
        // Lone blocks: nothing else writes to the pages of an entry that straddles two.
        for group in 0..20 * GROUP {
            let number = group * 7919 * GROUP + group % GROUP;
            shadow.take("malloc", 0x7000_0000_0000 + number * LEAST_PAGE, 8);
        }
        let first = shadow.pages.as_ptr().addr() / shadow.page_bytes;
        let own_pages = MOST_PAGES * size_of::<PageEntry>() / shadow.page_bytes;
        let mut flags = HarnessTable::<u64>::zeroed(own_pages);
        let file = sys::RawFile::open(c"/proc/self/pagemap").unwrap();
        assert!(file.fill_from(first * 8, &mut flags));
        for (own_page, flags) in flags.iter().enumerate() {
            let counted = shadow.touched[own_page / 64].load(Relaxed) >> (own_page % 64) & 1;
            assert_eq!(
                counted == 1,
                flags & PRESENT_AT_ONE_PLACE == PRESENT_AT_ONE_PLACE,
                "page {own_page} of the table"
            );
        }
    }

    #[test]
    fn blocks_are_found_again_and_the_tables_memory_is_counted_in_the_systems_pages_however_large_they_are()
     {
        let touched_pages = |shadow: &Shadow| -> u32 {
            shadow
                .touched
                .iter()
                .map(|bits| bits.load(Relaxed).count_ones())
                .sum()
        };
        for page_bytes in [4 << 10, 16 << 10, 64 << 10] {
            let shadow = Shadow::with_pages_of(page_bytes, None);
            (0..GROUP)
                .for_each(|page| shadow.take("malloc", 0x7000_0000_0000 + page * LEAST_PAGE, 8));
            assert_eq!(shadow.by_granules()[1], GROUP as u64, "{page_bytes}");
            // Entries of one group are consecutive.
            let pages = (GROUP * size_of::<PageEntry>()).div_ceil(page_bytes) as u32;
            assert!(
                (pages..=pages + 1).contains(&touched_pages(&shadow)),
                "{page_bytes}: {}",
                touched_pages(&shadow)
            );
            (0..GROUP).for_each(|page| {
                assert_eq!(
                    shadow.give_back(0x7000_0000_0000 + page * LEAST_PAGE),
                    Some(8)
                )
            });
            assert_eq!(shadow.by_granules()[1..], [0; GRANULES], "{page_bytes}");
        }
    }
}
