//! Holm's step-down correction (1979): p-values that are valid for a family of comparisons
//! together.
//!
//! Rejecting if the adjusted p is below 5 % keeps the chance of *any* false rejection in the family
//! at 5 %, however the comparisons depend on each other. It never rejects less than Bonferroni's
//! correction.

/// Returns the adjusted p-values, in the order given. `None` if one is not a probability.
///
/// The family is the planned one: a comparison without data enters as p = 1; it does not make the
/// family smaller.
pub fn holm(ps: &[f64]) -> Option<Vec<f64>> {
    if ps.iter().any(|p| !(0.0..=1.0).contains(p)) {
        return None;
    }
    let mut by_size: Vec<usize> = (0..ps.len()).collect();
    by_size.sort_by(|a, b| ps[*a].total_cmp(&ps[*b]));
    let mut adjusted = vec![1.0; ps.len()];
    // A step down never goes below the step before it: a larger p must not end up smaller than a
    // smaller one.
    let mut before: f64 = 0.0;
    for (step, place) in by_size.into_iter().enumerate() {
        before = before.max((ps.len() - step) as f64 * ps[place]).min(1.0);
        adjusted[place] = before;
    }
    Some(adjusted)
}
