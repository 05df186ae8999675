//! The middle value. Must not guess: no values, no median.

/// The median; the mean of the two middle values if their number is even. `None` for no values, and
/// if one of them is not finite.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    middle(&sorted)
}

/// The median of sorted values.
pub(super) fn middle(sorted: &[f64]) -> Option<f64> {
    if sorted.is_empty() || sorted.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let half = sorted.len() / 2;
    Some(if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        f64::midpoint(sorted[half - 1], sorted[half])
    })
}
