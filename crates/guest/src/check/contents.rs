//! Whether a block that realloc moved still has its contents. The bytes are mixed with a pattern
//! before the call, since a kernel may have written nothing, and mixed back after it, so that the
//! kernel's own data stay unchanged.

/// Blocks up to this size are checked byte by byte.
const WHOLE_BYTES: usize = 64 << 10;
/// Bytes that are checked at each end of a larger block: a copy of a wrong length shows there.
const END_BYTES: usize = 16 << 10;
/// Number of single words that are checked between the two ends of a larger block: a large block
/// that is only reserved must not become resident.
const BETWEEN: usize = 64;

/// Bytes of a word of the block.
const WORD: usize = size_of::<u64>();
/// An odd multiplier with no pattern in its bits: 2^64 divided by the golden ratio.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A digest of a block's first bytes, made while the pattern was mixed into them.
#[derive(Clone, Copy)]
pub(super) struct Contents {
    bytes: usize,
    key: u64,
    sum: u64,
}

impl Contents {
    /// Mixes a pattern into the first `bytes` of a block.
    ///
    /// # Safety
    /// The block must have that many bytes, and no other thread may read or write them meanwhile.
    pub unsafe fn seal(block: *mut u8, bytes: usize) -> Contents {
        let key = (block as u64 ^ bytes as u64).wrapping_mul(ODD) | 1;
        let mut sum = key;
        // SAFETY: as the caller promises.
        unsafe {
            mix(block, bytes, key, |_, after| sum = add(sum, after));
        }
        Contents { bytes, key, sum }
    }

    /// Mixes the pattern back out of the block that now has the contents; returns whether they
    /// arrived unchanged.
    ///
    /// # Safety
    /// As for [`Contents::seal`].
    pub unsafe fn unseal(self, block: *mut u8) -> bool {
        let mut sum = self.key;
        // SAFETY: as the caller promises.
        unsafe {
            mix(block, self.bytes, self.key, |before, _| {
                sum = add(sum, before)
            });
        }
        sum == self.sum
    }
}

fn add(sum: u64, word: u64) -> u64 {
    (sum ^ word).wrapping_mul(ODD).rotate_left(29)
}

/// Mixes the pattern into the parts that are checked, and passes each word's value before and after
/// to `tell`.
///
/// # Safety
/// The block must have `bytes` bytes, and no other thread may read or write them meanwhile.
unsafe fn mix(block: *mut u8, bytes: usize, key: u64, mut tell: impl FnMut(u64, u64)) {
    let pattern = |at: usize| key.wrapping_mul(at as u64 | 1);
    // SAFETY: `at` is a word of the block, which may start anywhere.
    let mut word = |at: usize| unsafe {
        let place = block.add(at * WORD).cast::<u64>();
        let before = place.read_unaligned();
        let after = before ^ pattern(at);
        place.write_unaligned(after);
        tell(before, after);
    };
    let words = bytes / WORD;
    if bytes <= WHOLE_BYTES {
        (0..words).for_each(&mut word);
    } else {
        let end = END_BYTES / WORD;
        let step = (words - 2 * end) / BETWEEN;
        (0..end).for_each(&mut word);
        (0..BETWEEN).for_each(|place| word(end + place * step));
        (words - end..words).for_each(&mut word);
    }
    for at in words * WORD..bytes {
        // SAFETY: one of the last bytes, which do not fill a word.
        unsafe {
            let before = block.add(at).read();
            let after = before ^ pattern(at) as u8;
            block.add(at).write(after);
            tell(u64::from(before), u64::from(after));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::HarnessTable;

    const SIZES: [usize; 9] = [0, 1, 7, 8, 9, 500, 65_536, 65_537, 300_003];

    fn byte(at: usize) -> u8 {
        (at * 7 % 251) as u8
    }

    fn filled(bytes: usize) -> HarnessTable<u8> {
        let mut block = HarnessTable::zeroed(bytes);
        block
            .iter_mut()
            .enumerate()
            .for_each(|(at, place)| *place = byte(at));
        block
    }

    /// Whether a block passes the check if its last `lost` bytes arrive in another block as `other` of them.
    fn arrives(
        block: &mut HarnessTable<u8>,
        lost: usize,
        other: fn(u8) -> u8,
    ) -> (bool, HarnessTable<u8>) {
        let (bytes, mut moved) = (block.len(), HarnessTable::zeroed(block.len()));
        // SAFETY: a block of that size.
        let contents = unsafe { Contents::seal(block.as_mut_ptr(), bytes) };
        for (at, sealed) in block.iter().enumerate() {
            let is_lost = at >= bytes - lost;
            moved[at] = if is_lost { other(*sealed) } else { *sealed };
        }
        // SAFETY: as above.
        (unsafe { contents.unseal(moved.as_mut_ptr()) }, moved)
    }

    #[test]
    fn what_was_written_is_what_is_read_afterwards() {
        for bytes in SIZES {
            let (same, moved) = arrives(&mut filled(bytes), 0, |byte| byte);
            assert!(same, "{bytes}");
            assert!(
                moved
                    .iter()
                    .enumerate()
                    .all(|(at, found)| *found == byte(at)),
                "{bytes}"
            );
        }
    }

    #[test]
    fn zeros_in_place_of_zeros_are_found() {
        for bytes in SIZES {
            assert_eq!(
                arrives(&mut HarnessTable::zeroed(bytes), bytes, |_| 0).0,
                bytes == 0,
                "{bytes}"
            );
        }
    }

    #[test]
    fn a_copy_that_ends_too_early_is_found() {
        for (bytes, lost) in [
            (9, 1),
            (500, 1),
            (65_537, 1),
            (65_537, 9),
            (1 << 20, 1),
            (1 << 20, 100_000),
        ] {
            // A zero would now and then be what a sealed byte is.
            let found = !arrives(&mut filled(bytes), lost, |byte| !byte).0;
            assert!(found, "{lost} of {bytes}");
        }
    }
}
