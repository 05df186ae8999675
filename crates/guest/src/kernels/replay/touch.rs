//! What a program does with a block after allocating it: writes into it. Untouched blocks take no
//! memory.

use heapmark_wire::compiled::ALL_PAGES;

/// How much of each block is touched.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Touch {
    /// Nothing.
    None,
    /// The first byte.
    First,
    /// As many pages as in the recorded program, where the trace has their number; else all.
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

    /// Whether all pages of a block are touched of which the trace does not say how many were.
    pub fn is_whole(self) -> bool {
        matches!(self, Touch::Recorded | Touch::All)
    }

    /// Touches a block of this many bytes, of which the recorded program touched `pages` pages.
    ///
    /// # Safety
    /// The block is live and has that many bytes.
    #[inline(always)]
    pub unsafe fn write(self, block: *mut u8, size: usize, pages: u32) {
        if self == Touch::None || size == 0 {
            return;
        }
        // SAFETY: within the block, as the caller guarantees.
        unsafe {
            if size > PAGE || pages == 0 {
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
        for size in [0, 1, 2, 4096, 4097, 5000, 65_535, 65_536] {
            let some = size.min(1);
            let all = match size {
                0 | 1 => size,
                _ => (size - 1) / PAGE + 1 + usize::from((size - 1) % PAGE != 0),
            };
            assert_eq!(touched(Touch::None, size, ALL_PAGES), 0);
            assert_eq!(touched(Touch::First, size, ALL_PAGES), some);
            assert_eq!(touched(Touch::All, size, 1), all);
            assert_eq!(touched(Touch::Recorded, size, ALL_PAGES), all);
        }
        assert_eq!(touched(Touch::Recorded, 65_536, 3), 3);
        assert_eq!(touched(Touch::Recorded, 65_536, 0), 0);
    }
}
