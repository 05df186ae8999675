//! What a program does with a block after allocating it: writes into it. Untouched blocks take no
//! memory.

use heapmark_wire::compiled::{ALL_PAGES, PAGES_FROM_BYTES};

/// How much of each block is touched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Nothing.
    None,
    /// The first byte.
    First,
    /// Both ends of small blocks; of large ones as many pages as in the recorded program.
    Recorded,
    /// Every page.
    All,
}

const PAGE: usize = 4096;

impl Touch {
    /// Parses its name in jobs.
    pub fn of(word: &str) -> Touch {
        match word {
            "none" => Touch::None,
            "first" => Touch::First,
            "all" => Touch::All,
            _ => Touch::Recorded,
        }
    }

    /// Touches a block of this many bytes, of which the recorded program touched `pages` pages.
    ///
    /// # Safety
    /// The block is live and has that many bytes.
    #[inline(always)]
    pub unsafe fn write(self, block: *mut u8, size: usize, pages: u32) {
        // SAFETY: within the block, as the caller guarantees.
        unsafe {
            if self == Touch::Recorded && size < PAGES_FROM_BYTES as usize && size > 0 {
                block.write_volatile(1);
                block.add(size - 1).write_volatile(1);
            } else if self != Touch::None && size > 0 {
                self.write_pages(block, size, pages);
            }
        }
    }

    /// As [`Touch::write`], for memory that calloc has zeroed: it is only read, since the program
    /// may rely on the zeros.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub unsafe fn read(self, block: *mut u8, size: usize, pages: u32) {
        if self == Touch::None || size == 0 {
            return;
        }
        if self == Touch::All || size >= PAGES_FROM_BYTES as usize {
            // Large blocks come from the kernel as zeros and take no memory until they are written.
            // SAFETY: as the caller guarantees.
            return unsafe { self.write_pages(block, size, pages) };
        }
        let last = if self == Touch::First { 0 } else { size - 1 };
        // SAFETY: within the block.
        unsafe {
            block.read_volatile();
            block.add(last).read_volatile();
        }
    }

    /// Writes the first byte of each page that this mode touches.
    #[inline(never)]
    unsafe fn write_pages(self, block: *mut u8, size: usize, pages: u32) {
        let pages = match self {
            Touch::None => 0,
            Touch::First => 1,
            Touch::Recorded if pages != ALL_PAGES => pages as usize,
            Touch::Recorded | Touch::All => usize::MAX,
        };
        let spots = (0..size).step_by(PAGE).take(pages);
        // SAFETY: within the block, as the caller guarantees.
        spots.for_each(|spot| unsafe { block.add(spot).write_volatile(1) });
        if pages == usize::MAX {
            // The last page may begin after the last spot.
            // SAFETY: as above.
            unsafe { block.add(size - 1).write_volatile(1) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touched(touch: Touch, size: usize, pages: u32) -> usize {
        let mut room = [0u8; 70_000];
        // SAFETY: `size` bytes lie within the buffer.
        unsafe { touch.write(room.as_mut_ptr(), size, pages) };
        assert!(room[size..].iter().all(|byte| *byte == 0));
        room.iter().filter(|byte| **byte != 0).count()
    }

    #[test]
    fn as_much_is_touched_as_the_word_says_and_nothing_beyond_the_block() {
        for size in [0, 1, 2, 5000, 65_535, 65_536] {
            let (some, ends) = (size.min(1), size.min(2));
            assert_eq!(touched(Touch::None, size, ALL_PAGES), 0);
            assert_eq!(touched(Touch::First, size, ALL_PAGES), some);
            assert!(touched(Touch::All, size, 1) >= size.div_ceil(PAGE));
            if size < 65_536 {
                assert_eq!(touched(Touch::Recorded, size, 0), ends);
            }
        }
        assert_eq!(touched(Touch::Recorded, 65_536, 3), 3);
        assert_eq!(touched(Touch::Recorded, 65_536, 0), 0);
        assert_eq!(touched(Touch::Recorded, 65_536, ALL_PAGES), 17);
    }
}
