//! Numbers in one to nine bytes. The number of trailing zero bits in the first byte is the number
//! of further bytes, so that a number of any length is written with one store and read with one
//! load. Captures and traces consist of them.

/// The largest number of bytes that a number takes.
pub const MOST_BYTES: usize = 9;

/// Numbers below this fit into one word together with their length.
const ONE_WORD: u64 = 1 << 56;

/// Writes a number and returns the address of the next one.
///
/// # Safety
/// The caller must be allowed to write [`MOST_BYTES`] bytes at `at`.
#[inline(always)]
pub unsafe fn put(at: *mut u8, value: u64) -> *mut u8 {
    if value < ONE_WORD {
        let last_bit = 63 - (value | 1).leading_zeros();
        // last_bit / 7 without a division; exact up to 56.
        let further = (last_bit * 37) >> 8;
        // SAFETY: eight bytes are written, of which the next number overwrites those that are not
        // needed.
        unsafe {
            at.cast::<u64>()
                .write_unaligned((((value << 1) | 1) << further).to_le());
            at.add(further as usize + 1)
        }
    } else {
        // SAFETY: nine bytes are written, which the caller allows.
        unsafe {
            at.write(0);
            at.add(1).cast::<u64>().write_unaligned(value.to_le());
            at.add(9)
        }
    }
}

/// The number that `bytes` begin with and how many bytes it takes; `None` if they end before it
/// does.
#[inline]
pub fn get(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let length = first.trailing_zeros() as usize + 1;
    if bytes.len() < length {
        return None;
    }
    if length == MOST_BYTES {
        return Some((word(&bytes[1..]), length));
    }
    let value = word(bytes) >> length;
    Some((value & (u64::MAX >> (64 - 7 * length)), length))
}

/// The first eight bytes as a number; missing bytes are zeros.
#[inline]
fn word(bytes: &[u8]) -> u64 {
    match bytes.first_chunk::<8>() {
        Some(word) => u64::from_le_bytes(*word),
        None => bytes
            .iter()
            .rev()
            .fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Maps small differences of either sign to small numbers.
#[inline(always)]
pub fn zigzag(difference: i64) -> u64 {
    ((difference << 1) ^ (difference >> 63)) as u64
}

/// The inverse of [`zigzag`].
#[inline(always)]
pub fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_length_come_back() {
        for shift in 0..64 {
            for value in [
                1u64 << shift,
                (1 << shift) - 1,
                u64::MAX >> shift,
                0x5555_5555_5555_5555 >> shift,
            ] {
                let mut bytes = [0xaa; 16];
                // SAFETY: sixteen bytes are enough.
                let end = unsafe { put(bytes.as_mut_ptr(), value) };
                let length = end as usize - bytes.as_ptr() as usize;
                let bits = (64 - (value | 1).leading_zeros()) as usize;
                assert_eq!(
                    length,
                    if bits > 56 { 9 } else { bits.div_ceil(7) },
                    "{value:#x}"
                );
                assert_eq!(
                    get(&bytes),
                    Some((value, length)),
                    "{value:#x} with more behind it"
                );
                assert_eq!(
                    get(&bytes[..length]),
                    Some((value, length)),
                    "{value:#x} alone"
                );
                assert_eq!(get(&bytes[..length - 1]), None, "{value:#x} torn");
            }
        }
    }

    #[test]
    fn differences_of_either_sign_come_back() {
        for difference in [0, 1, -1, 63, -64, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(difference)), difference);
        }
        assert_eq!((zigzag(0), zigzag(-1), zigzag(1), zigzag(-2)), (0, 1, 2, 3));
    }
}
