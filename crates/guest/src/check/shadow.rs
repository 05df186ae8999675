//! The shadow of the address space: which granules are taken, where blocks start, what is live.

use super::page::{GRANULES, Page, span};
use crate::fail;
use crate::memory::Table;
use crate::watched;
use heapmark_wire::Held;

/// A page of the shadow's own table.
const OWN_PAGE: usize = 4096;
/// Pages that the shadow has room for: 16 GiB of blocks.
const MOST_PAGES: usize = 1 << 22;
/// So many pages in a row share one place in the table of pages.
const GROUP: usize = 64;

/// Everything that is live.
pub(super) struct Shadow {
    pages: Table<Page>,
    /// Which pages of that table hold anything: a bit for each.
    touched: Table<u64>,
    live_bytes: u64,
    occupied_pages: u64,
    /// Where what is live is told, if anybody wants to know.
    held: Option<&'static Held>,
}

impl Shadow {
    /// Of an address space without blocks.
    pub fn new(held: Option<&'static Held>) -> Shadow {
        Shadow {
            pages: Table::reserved(MOST_PAGES),
            touched: Table::zeroed((MOST_PAGES * size_of::<Page>()).div_ceil(64 * OWN_PAGE)),
            live_bytes: 0,
            occupied_pages: 0,
            held,
        }
    }

    /// A block that `call` returned; it must overlap none.
    pub fn take(&mut self, call: &str, address: usize, size: usize) {
        let (first, end) = (address / 8, address / 8 + size.div_ceil(8).max(1));
        let mut granule = first;
        while granule < end {
            let page = self.page(granule / GRANULES);
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
            self.occupied_pages += u64::from(was_empty);
        }
        // A block of 0 bytes is told as one of 8: it has an address, and so a granule.
        let slack = (8 - size % 8) % 8;
        self.page(first / GRANULES).begin(first, slack);
        self.live_bytes += (8 * (end - first) - slack) as u64;
        self.tell();
    }

    /// The block that starts here is no more; nothing happens where none does.
    pub fn give_back(&mut self, address: usize) {
        let mut granule = address / 8;
        let Some(slack) = self.page(granule / GRANULES).end(granule) else { return };
        self.live_bytes += slack;
        loop {
            let page = self.page(granule / GRANULES);
            let freed = page.clear(granule);
            let emptied = freed > 0 && page.is_empty();
            self.live_bytes -= 8 * freed as u64;
            self.occupied_pages -= u64::from(emptied);
            granule += freed;
            // It goes on in the next page only where it reached the end of this one.
            if freed == 0 || !granule.is_multiple_of(GRANULES) {
                break;
            }
        }
        self.tell();
    }

    /// The shadow of a page of the address space. Pages that have no block left keep their entry. Neighbours stay together:
    /// a large block's pages are found in a row.
    fn page(&mut self, number: usize) -> &mut Page {
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

    /// An entry is written to for the first time: its pages of the table become resident.
    fn touch(&mut self, index: usize) {
        let (start, bytes) = (index * size_of::<Page>(), size_of::<Page>());
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

    /// Pages by how many of their granules are taken. Pages that have no block left count as pages of 0.
    pub fn by_granules(&self) -> [u64; GRANULES + 1] {
        let mut pages = [0; GRANULES + 1];
        for Page { taken, .. } in self.seen() {
            pages[taken.iter().map(|word| word.count_ones() as usize).sum::<usize>()] += 1;
        }
        pages
    }

    /// Every page that may have held a block.
    fn seen(&self) -> impl Iterator<Item = &Page> {
        // Most of the table was never touched, and looking at it would bring it into memory.
        let touched = |index: &usize| {
            let own_page = index * size_of::<Page>() / OWN_PAGE;
            self.touched[own_page / 64] & 1 << (own_page % 64) != 0
        };
        (0..MOST_PAGES).filter(touched).map(|index| &self.pages[index])
    }

    /// How many pages that hold a live block are in memory and mapped at one place; `None` where the kernel does not tell.
    pub fn present(&self) -> Option<u64> {
        const PRESENT_AT_ONE_PLACE: u64 = 1 << 63 | 1 << 56;
        // SAFETY: plain system calls on a descriptor of ours, into a buffer of that length.
        let file = unsafe { libc::open(c"/proc/self/pagemap".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
        let (mut present, mut group, mut flags) = (0, usize::MAX, [0u64; GROUP]);
        for page in self.seen().filter(|page| !page.is_empty()) {
            if page.number / GROUP != group {
                group = page.number / GROUP;
                let at = (group * size_of_val(&flags)) as i64;
                // SAFETY: as above.
                let read = unsafe { libc::pread(file, flags.as_mut_ptr().cast(), size_of_val(&flags), at) };
                if read != size_of_val(&flags) as isize {
                    present = u64::MAX;
                    break;
                }
            }
            present += u64::from(flags[page.number % GROUP] & PRESENT_AT_ONE_PLACE == PRESENT_AT_ONE_PLACE);
        }
        // SAFETY: as above.
        unsafe { libc::close(file) };
        Some(present).filter(|present| *present != u64::MAX)
    }
}
