//! Spearman's rank correlation (1904): do two series have the same order?

use crate::mean;
use std::iter::zip;

/// Returns the correlation, from -1 for the opposite order to 1 for the same one; ties get mid-ranks. `None` if the lengths differ,
/// if a value is not finite, and if all values of one side are equal.
pub fn rank_correlation(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.len() != b.len() || !a.iter().chain(b).all(|value| value.is_finite()) {
        return None;
    }
    let (a, b) = (mid_ranks(a), mid_ranks(b));
    let (mean_a, mean_b) = (mean(&a)?, mean(&b)?);
    let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
        let terms = zip(&a, &b).map(|(a, b)| term(a - mean_a, b - mean_b));
        terms.sum()
    };
    let scale = (sum(&|a, _| a * a) * sum(&|_, b| b * b)).sqrt();
    (scale > 0.0).then(|| sum(&|a, b| a * b) / scale)
}

/// Returns the rank of each value, counted from 0 for the least; equal values share the mean of
/// their ranks.
fn mid_ranks(values: &[f64]) -> Vec<f64> {
    let count =
        |is_it: &dyn Fn(&f64) -> bool| values.iter().filter(|value| is_it(value)).count() as f64;
    let rank =
        |value: &f64| count(&|other| other < value) + (count(&|other| other == value) - 1.0) / 2.0;
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_is_the_same_the_opposite_or_none() {
        let five = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(
            rank_correlation(&five, &[1.0, 10.0, 11.0, 90.0, 1e9]),
            Some(1.0)
        );
        assert_eq!(
            rank_correlation(&five, &[5.0, 4.0, 3.0, 2.0, 1.0]),
            Some(-1.0)
        );
        // scipy.stats.spearmanr([1, 2, 3, 4, 5], [5, 6, 7, 8, 7]) of SciPy's documentation.
        let tied = rank_correlation(&five, &[5.0, 6.0, 7.0, 8.0, 7.0]).unwrap();
        assert!((tied - 0.820782681668123).abs() < 1e-12, "{tied}");
        for none in [&[1.0; 5][..], &[1.0, 2.0], &[1.0, 2.0, 3.0, 4.0, f64::NAN]] {
            assert_eq!(rank_correlation(&five, none), None, "{none:?}");
        }
    }
}
