//! Reduces the points of a chart. The tables use all points.

use std::collections::BTreeSet;

/// Indices of at most `most` of the values, in order: the smallest and the largest of each of
/// several equal stretches, so that no peak is lost.
pub fn thin(values: &[f64], most: usize) -> Vec<usize> {
    let all: Vec<usize> = (0..values.len()).collect();
    if values.len() <= most {
        return all;
    }
    let by_value = |a: &&usize, b: &&usize| values[**a].total_cmp(&values[**b]);
    let mut kept: BTreeSet<usize> = BTreeSet::new();
    for stretch in all.chunks(values.len().div_ceil((most / 2).max(1))) {
        kept.extend(stretch.iter().min_by(by_value));
        kept.extend(stretch.iter().max_by(by_value));
    }
    Vec::from_iter(kept)
}

/// Rounds to six digits, which are more than a chart can show.
pub fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powi(5 - value.abs().log10().floor() as i32);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_stay_as_they_are_and_of_many_both_ends_stay() {
        assert_eq!(thin(&[3.0, 1.0, 2.0], 3), [0, 1, 2]);
        let values: Vec<f64> = (0..1001).map(|n| f64::from(n * 379 % 1001)).collect();
        let places = thin(&values, 40);
        assert!(places.len() <= 40 && places.is_sorted(), "{places:?}");
        let kept: Vec<f64> = places.iter().map(|place| values[*place]).collect();
        assert!(kept.contains(&0.0) && kept.contains(&1000.0));
    }

    #[test]
    fn six_digits_stay() {
        assert_eq!(
            [1234567.891, 0.00123456789, -20.0, 0.0].map(short),
            [1234570.0, 0.00123457, -20.0, 0.0]
        );
    }
}
