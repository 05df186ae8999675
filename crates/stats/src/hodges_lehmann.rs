//! The shift of paired values: the Hodges-Lehmann estimate (1963) and the interval of the
//! signed-rank test.
//!
//! Zeros stay in: discarding them, as the test does, would push the estimate away from zero. With
//! ties the interval keeps the quantile of untied ranks.

use super::median::sorted;
use super::wilcoxon::bound_position;

/// How far paired differences lie from zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Median of the Walsh averages, the means of all pairs of differences (each with itself too).
    pub estimate: f64,
    /// The 95 % interval; `None` if there are too few differences for it (n < 6).
    pub interval: Option<Interval>,
    /// The number of differences that are included.
    pub n: usize,
}

/// An interval with both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl Interval {
    /// Returns half the interval's width.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

/// Estimates the shift. `None` for no differences, and if one is not finite.
pub fn shift(differences: &[f64]) -> Option<Shift> {
    let n = differences.len();
    let walsh = Walsh(sorted(differences.iter().copied())?);
    let all = n * (n + 1) / 2;
    Some(Shift {
        estimate: f64::midpoint(walsh.nth(all.div_ceil(2)), walsh.nth(all / 2 + 1)),
        interval: bound_position(n).map(|position| Interval {
            low: walsh.nth(position),
            high: walsh.nth(all + 1 - position),
        }),
        n,
    })
}

/// The Walsh averages in order, without storing them: a thousand differences have half a million.
struct Walsh(Vec<f64>);

impl Walsh {
    /// Returns the average of this rank, counted from 1: the least number that this many averages
    /// do not exceed. Found by bisection over all doubles between the ends; at most 64 steps, and
    /// exact.
    fn nth(&self, rank: usize) -> f64 {
        let mut low = order(self.0[0]);
        let mut high = order(self.0[self.0.len() - 1]);
        while low < high {
            // Rounded down, below zero too: otherwise the bisection would not end.
            let middle = (i128::from(low) + i128::from(high)).div_euclid(2) as i64;
            if self.at_most(number(middle)) >= rank {
                high = middle
            } else {
                low = middle + 1
            }
        }
        // Turns -0 into 0.
        number(low) + 0.0
    }

    /// Returns how many averages do not exceed a number: the larger one difference is, the fewer
    /// partners it has.
    fn at_most(&self, limit: f64) -> usize {
        let mut count = 0;
        let mut end = self.0.len();
        for (place, difference) in self.0.iter().enumerate() {
            while end > place && f64::midpoint(*difference, self.0[end - 1]) > limit {
                end -= 1;
            }
            if end <= place {
                break;
            }
            count += end - place;
        }
        count
    }
}

/// Maps doubles to integers of the same order.
fn order(number: f64) -> i64 {
    flip(number.to_bits().cast_signed())
}

fn number(order: i64) -> f64 {
    f64::from_bits(flip(order).cast_unsigned())
}

/// Flips the bits of negative doubles, which are in reverse order.
fn flip(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_rank_is_that_of_the_sorted_list(differences in prop::collection::vec(-3i32..3, 1..9), scale in 0.1f64..9.0) {
            let differences: Vec<f64> = differences.iter().map(|n| f64::from(*n) * scale).collect();
            let pairs = (0..differences.len()).flat_map(|i| (i..differences.len()).map(move |j| (i, j)));
            let mut list: Vec<f64> = pairs.map(|(i, j)| f64::midpoint(differences[i], differences[j])).collect();
            list.sort_by(f64::total_cmp);
            let walsh = Walsh(sorted(differences.iter().copied()).unwrap());
            let ranks: Vec<f64> = (1..=list.len()).map(|rank| walsh.nth(rank)).collect();
            prop_assert_eq!(ranks, list);
        }
    }
}
