//! Arithmetic and geometric means. Must not guess: no values, no mean.

/// The arithmetic mean; `None` for no values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The geometric mean; `None` for no values, and where one of them is not positive and finite.
pub fn geometric_mean(values: &[f64]) -> Option<f64> {
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    mean(&logs).filter(|log| log.is_finite()).map(f64::exp)
}
