//! A histogram of numbers: exact for small numbers, and no bucket is wider than 1/64 of its
//! numbers.

use crate::grown::grown;
use heapmark_wire::{BUCKETS, bucket_of, bucket_range};
use serde::{Serialize, Serializer};

/// Counts of numbers by their size.
pub struct Histogram {
    /// The count and the sum of each bucket.
    buckets: Box<[(u64, u128)]>,
}

/// Numbers of about the same size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bucket {
    /// The smallest number that belongs in this bucket.
    pub low: u64,
    /// The largest number that belongs in this bucket.
    pub high: u64,
    /// How many numbers were in this bucket.
    pub count: u64,
    /// The mean of the numbers in this bucket.
    pub mean: f64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram {
            buckets: vec![(0, 0); BUCKETS].into(),
        }
    }
}

impl Histogram {
    /// Counts a number.
    #[inline]
    pub fn add(&mut self, number: u64) {
        let (count, sum) = &mut self.buckets[bucket_of(number)];
        *count += 1;
        *sum += u128::from(number);
    }

    /// Returns how many numbers were counted.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|(count, _)| count).sum()
    }

    /// Returns the non-empty buckets, smallest first.
    pub fn buckets(&self) -> impl Iterator<Item = Bucket> {
        let filled = std::iter::zip(0.., &self.buckets).filter(|(_, (count, _))| *count > 0);
        filled.filter_map(|(place, &(count, sum))| {
            let (low, high) = bucket_range(place)?;
            Some(Bucket {
                low,
                high,
                count,
                mean: sum as f64 / count as f64,
            })
        })
    }

    /// Returns the count and the sum of the numbers by powers of two: 0, 1, 2 to 3, 4 to 7, … up to the
    /// largest.
    pub fn powers(&self) -> Vec<(u64, f64)> {
        let mut powers = Vec::new();
        for bucket in self.buckets() {
            let power = bucket.low.checked_ilog2().map_or(0, |power| power + 1);
            let (count, sum) = grown(&mut powers, power as usize);
            *count += bucket.count;
            *sum += bucket.mean * bucket.count as f64;
        }
        powers
    }

    /// Returns the number below which this share of all numbers lies, as exactly as the buckets
    /// allow; `None` if there are none.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let mut left = (self.count() as f64 * share).ceil().max(1.0) as u64;
        self.buckets().find_map(|bucket| {
            let found = bucket.count >= left;
            left = left.saturating_sub(bucket.count);
            found.then_some(bucket.mean.round() as u64)
        })
    }
}

impl Serialize for Histogram {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.buckets())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_by_size_and_by_powers_of_two() {
        let mut histogram = Histogram::default();
        [0, 1, 2, 3, 3, 1000, 1001]
            .into_iter()
            .for_each(|number| histogram.add(number));
        assert_eq!(histogram.count(), 7);
        assert_eq!(
            histogram
                .buckets()
                .map(|bucket| bucket.count)
                .collect::<Vec<_>>(),
            [1, 1, 1, 2, 2]
        );
        let powers = histogram.powers();
        assert_eq!(
            (powers[0], powers[1], powers[2], powers[10]),
            ((1, 0.0), (1, 1.0), (3, 8.0), (2, 2001.0))
        );
        assert_eq!(
            (histogram.quantile(0.5), histogram.quantile(1.0)),
            (Some(3), Some(1001))
        );
        assert_eq!(Histogram::default().quantile(0.5), None);
    }
}
