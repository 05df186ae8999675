//! Numbers in one to nine bytes: the zeros at the low end of the first byte say how many bytes follow, so that one load and one
//! shift read a number, without a loop. Used by captures, traces and scores.

/// Bytes of the longest number.
pub const MOST_BYTES: usize = 9;

/// Bits that fit behind the length in eight bytes; what is longer has a first byte of zero and all its 64 bits behind it.
const SHORT_BITS: u32 = 56;

/// How many bytes a number takes.
#[inline(always)]
pub const fn length(number: u64) -> usize {
    let bits = 64 - (number | 1).leading_zeros();
    if bits > SHORT_BITS { MOST_BYTES } else { bits.div_ceil(7) as usize }
}

/// Puts a number at the front of `to`, which may be written [`MOST_BYTES`] far; says how many of them count.
#[inline(always)]
pub const fn put(to: &mut [u8; MOST_BYTES], number: u64) -> usize {
    let length = length(number);
    let (front, back) = match length {
        MOST_BYTES => (number << 8, (number >> SHORT_BITS) as u8),
        _ => (number << length | 1 << (length - 1), 0),
    };
    let front = front.to_le_bytes();
    let mut place = 0;
    while place < 8 {
        to[place] = front[place];
        place += 1;
    }
    to[8] = back;
    length
}

/// The number at the front of `bytes` and how many it took; `None` where they end before it does.
#[inline(always)]
pub fn take(bytes: &[u8]) -> Option<(u64, usize)> {
    match bytes.first_chunk::<MOST_BYTES>() {
        Some(front) => Some(read(front)),
        None => take_near_end(bytes),
    }
}

#[cold]
fn take_near_end(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut front = [0; MOST_BYTES];
    front[..bytes.len()].copy_from_slice(bytes);
    let (number, length) = read(&front);
    (length <= bytes.len()).then_some((number, length))
}

#[inline(always)]
fn read(bytes: &[u8; MOST_BYTES]) -> (u64, usize) {
    let [front @ .., last] = *bytes;
    let word = u64::from_le_bytes(front);
    let length = front[0].trailing_zeros() as usize + 1;
    match length {
        MOST_BYTES => (word >> 8 | u64::from(last) << SHORT_BITS, length),
        _ => (word << (64 - 8 * length) >> (64 - 7 * length), length),
    }
}

/// Small where a difference is small, whatever its sign: 0, -1, 1, -2, 2, … are 0, 1, 2, 3, 4, …
#[inline(always)]
pub const fn zigzag(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

/// The difference that [`zigzag`] had.
#[inline(always)]
pub const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each power of two, its neighbours, and what stands between.
    fn numbers() -> impl Iterator<Item = u64> {
        (0..64).flat_map(|bit| {
            let power = 1u64 << bit;
            [power.wrapping_sub(1), power, power + 1, power | power >> 3, u64::MAX >> bit]
        })
    }

    #[test]
    fn each_number_comes_back_in_the_bytes_that_its_length_says() {
        for number in numbers() {
            let mut bytes = [0xaa; MOST_BYTES];
            let used = put(&mut bytes, number);
            assert_eq!(used, length(number));
            assert_eq!(take(&bytes), Some((number, used)), "{number:#x}");
            assert_eq!(take(&bytes[..used]), Some((number, used)), "{number:#x}");
            assert!((0..used).all(|short| take(&bytes[..short]).is_none()), "{number:#x}");
        }
        assert_eq!([0, 127, 128, (1 << 56) - 1, 1 << 56].map(length), [1, 1, 2, 8, 9]);
    }

    #[test]
    fn small_differences_are_small_numbers() {
        assert_eq!([0, -1, 1, -2, 2].map(zigzag), [0, 1, 2, 3, 4]);
        assert!(numbers().all(|number| unzigzag(zigzag(number as i64)) == number as i64));
    }
}
