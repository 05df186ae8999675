//! The middle value. Must not guess: no values, no median.

/// Returns the median; the mean of the two middle values if their number is even. `None` for no
/// values, and if one of them is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    Some(middle(&sorted(values.iter().copied())?))
}

/// Returns the values in order. `None` for no values, and if one of them is not finite.
pub fn sorted(values: impl Iterator<Item = f64>) -> Option<Vec<f64>> {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    // Values that are not finite come first or last.
    let ends = [sorted.first()?, sorted.last()?];
    ends.iter().all(|end| end.is_finite()).then_some(sorted)
}

/// Returns the median of sorted values, of which there is at least one.
pub fn middle(sorted: &[f64]) -> f64 {
    f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2])
}
