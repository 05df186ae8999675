//! Student's t-test (1908): is the mean of paired differences zero?
//!
//! Two values of the same distribution differ symmetrically about zero, whatever that distribution is. With a sharp centre
//! and long tails, as times have, the test then finds less than it may, not more.

use super::mean::{mean, standard_deviation};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Returns the two-sided p of the differences; 1 or 0 if all are equal. `None` for fewer than two, and if one is
/// not finite.
pub fn student(differences: &[f64]) -> Option<f64> {
    let mean = mean(differences)?;
    let error = standard_deviation(differences)? / (differences.len() as f64).sqrt();
    two_sided(mean, error, differences.len() as f64 - 1.0)
}

/// Returns the two-sided p of an estimate with this standard error.
pub(super) fn two_sided(estimate: f64, error: f64, freedom: f64) -> Option<f64> {
    if error == 0.0 {
        return Some(f64::from(estimate == 0.0));
    }
    let student = StudentsT::new(0.0, 1.0, freedom).ok()?;
    Some(2.0 * student.sf((estimate / error).abs()))
}
