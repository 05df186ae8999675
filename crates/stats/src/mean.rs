//! Arithmetic and geometric means, and the standard deviation. Must not guess: no values, no mean.

use statrs::statistics::Statistics;

/// Returns the arithmetic mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Returns the geometric mean; `None` for no values, and if one of them is not positive and finite.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    mean(&logs).filter(|log| log.is_finite()).map(f64::exp)
}

/// Returns the standard deviation of the population that the values are a sample of; `None` for
/// fewer than two, and if one of them is not finite.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    Some(values.std_dev()).filter(|deviation| deviation.is_finite())
}
