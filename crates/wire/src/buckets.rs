//! Buckets for times, laid out as in HdrHistogram: exact for small numbers, then the same number of
//! buckets for each power of two, so that no bucket is wider than a 64th of its values.

/// Number of buckets of each power of two.
const EACH: usize = 1 << EACH_BITS;
const EACH_BITS: u32 = 6;
/// Larger values fall into the last bucket: 2^42 ns are 73 minutes.
const MOST: u64 = (1 << 42) - 1;

/// Number of buckets, of which the last one also holds all larger values.
pub const BUCKETS: usize = bucket_of(MOST) + 1;

/// The bucket that a number falls into.
#[inline(always)]
pub const fn bucket_of(number: u64) -> usize {
    let number = if number > MOST { MOST } else { number };
    let shift = (number | EACH as u64).ilog2() - EACH_BITS;
    shift as usize * EACH + (number >> shift) as usize
}

/// The smallest and the largest number of a bucket; `None` if there is no such bucket.
pub const fn bucket_range(bucket: usize) -> Option<(u64, u64)> {
    if bucket >= BUCKETS {
        return None;
    }
    let shift = (bucket / EACH).saturating_sub(1);
    let low = ((bucket - shift * EACH) as u64) << shift;
    Some((low, low + (1 << shift) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_follow_each_other_without_gaps_and_are_narrow() {
        let mut next = 0;
        for bucket in 0..BUCKETS {
            let (low, high) = bucket_range(bucket).unwrap();
            assert_eq!(low, next, "bucket {bucket}");
            assert_eq!((bucket_of(low), bucket_of(high)), (bucket, bucket));
            assert!(
                low == high || (high - low + 1) * EACH as u64 <= low,
                "bucket {bucket}: {low} to {high}"
            );
            next = high + 1;
        }
        assert_eq!(next, MOST + 1);
        assert_eq!(bucket_range(BUCKETS), None);
    }

    #[test]
    fn small_numbers_are_exact_and_too_large_ones_are_in_the_last_bucket() {
        assert!((0..128).all(|number| bucket_range(bucket_of(number)) == Some((number, number))));
        assert_eq!(bucket_range(bucket_of(128)), Some((128, 129)));
        assert_eq!(
            (bucket_of(MOST + 1), bucket_of(u64::MAX)),
            (BUCKETS - 1, BUCKETS - 1)
        );
    }
}
