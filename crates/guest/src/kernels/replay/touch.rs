//! Writes into blocks after they are allocated, as programs do. Untouched blocks take no memory.

use heapmark_wire::compiled::ALL_PAGES;

/// The part of each block that is touched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Nothing is touched.
    None,
    /// The first byte.
    First,
    /// As many pages as in the recorded program, and as far apart, if the trace has their number;
    /// otherwise every page.
    Recorded,
    /// Every page.
    All,
}

/// The pages of a block that the program touched: `count` pages, spread evenly over the first
/// `extent` pages.
#[derive(Clone, Copy)]
pub struct Pages {
    pub count: u32,
    pub extent: usize,
}

impl Pages {
    pub const ALL: Pages = Pages {
        count: ALL_PAGES,
        extent: 0,
    };
}

const PAGE: usize = 4096;

impl Touch {
    /// Parses the name that jobs use.
    pub fn of(word: &str) -> Touch {
        match word {
            "none" => Touch::None,
            "first" => Touch::First,
            "all" => Touch::All,
            _ => Touch::Recorded,
        }
    }

    /// Returns whether all pages of a block are touched if the trace does not contain the number of
    /// pages that the program touched.
    pub fn is_whole(self) -> bool {
        matches!(self, Touch::Recorded | Touch::All)
    }

    /// Touches a block of this many bytes, of which the recorded program touched these pages.
    ///
    /// # Safety
    /// The block is live and has that many bytes.
    #[inline(always)]
    pub unsafe fn write(self, block: *mut u8, size: usize, pages: Pages) {
        if self == Touch::None || size == 0 {
            return;
        }
        // SAFETY: within the block, as the caller guarantees.
        unsafe {
            if size > PAGE || pages.count == 0 {
                return self.write_pages(block, size, pages);
            }
            block.write_volatile(1);
            if self != Touch::First {
                // A small block may lie on two pages.
                block.add(size - 1).write_volatile(1);
            }
        }
    }

    /// Writes the first byte of each page that this mode touches.
    #[inline(never)]
    unsafe fn write_pages(self, block: *mut u8, size: usize, pages: Pages) {
        let all = size.div_ceil(PAGE);
        let (count, extent) = match self {
            Touch::None => (0, all),
            Touch::First => (1, all),
            Touch::Recorded if pages.count != ALL_PAGES => {
                let count = all.min(pages.count as usize);
                (count, pages.extent.clamp(count, all))
            }
            Touch::Recorded | Touch::All => (all, all),
        };
        // Integers are enough here: the product of two page counts is below 2^64.
        let spots = (0..count).map(|number| number * extent / count * PAGE);
        // SAFETY: within the block, as the caller guarantees.
        spots.for_each(|spot| unsafe { block.add(spot).write_volatile(1) });
        if count == all {
            // The last page may begin after the last spot.
            // SAFETY: as above.
            unsafe { block.add(size - 1).write_volatile(1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A buffer in which a block was touched.
    fn written(touch: Touch, size: usize, pages: Pages) -> [u8; 70_000] {
        let mut room = [0u8; 70_000];
        // SAFETY: `size` bytes lie within the buffer.
        unsafe { touch.write(room.as_mut_ptr(), size, pages) };
        assert!(room[size..].iter().all(|byte| *byte == 0));
        room
    }

    #[test]
    fn as_much_is_touched_as_the_word_says_and_nothing_beyond_the_block() {
        for size in [0, 1, 2, 4096, 4097, 5000, 65_535, 65_536] {
            let some = size.min(1);
            let all = match size {
                0 | 1 => size,
                _ => (size - 1) / PAGE + 1 + usize::from((size - 1) % PAGE != 0),
            };
            let count = |touch, pages| {
                let room = written(touch, size, pages);
                room.iter().filter(|byte| **byte != 0).count()
            };
            assert_eq!(count(Touch::None, Pages::ALL), 0);
            assert_eq!(count(Touch::First, Pages::ALL), some);
            assert_eq!(
                count(
                    Touch::All,
                    Pages {
                        count: 1,
                        extent: 1
                    }
                ),
                all
            );
            assert_eq!(count(Touch::Recorded, Pages::ALL), all);
        }
        for (count, extent, pages) in [
            (0, 0, &[][..]),
            (3, 3, &[0, 1, 2]),
            (3, 16, &[0, 5, 10]),
            (3, 7, &[0, 2, 4]),
            // An extent beyond the block ends with the block.
            (3, 99, &[0, 5, 10]),
            (2, 0, &[0, 1]),
        ] {
            let room = written(Touch::Recorded, 65_536, Pages { count, extent });
            let spots = (0..room.len()).filter(|at| room[*at] != 0);
            assert!(spots.eq(pages.iter().map(|page| page * PAGE)));
        }
    }
}
