//! Bencher Metric Format: a benchmark per row, a measure per figure.

use super::{Figure, Foreign, told};
use crate::analyse::Analysis;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Slugs of measures. `latency` and `throughput` are Bencher's own, with its units: ns, and
/// operations per second.
type Measures = BTreeMap<&'static str, Value>;

/// Medians over processes, with the smallest and the largest value as bounds.
pub fn bmf(analysis: &Analysis) -> Foreign {
    told(
        analysis,
        |entry| {
            let measures: Measures = entry.figures().iter().map(measure).collect();
            Some((entry.name.clone(), measures))
        },
        BTreeMap::from_iter,
    )
}

fn measure(figure: &Figure) -> (&'static str, Value) {
    let mut measure = json!({ "value": figure.median });
    if let Some([least, most]) = figure.range {
        measure["lower_value"] = least.into();
        measure["upper_value"] = most.into();
    }
    (figure.slug, measure)
}
