//! Bencher Metric Format: a benchmark per row, a measure per figure.

use super::{ExportedRow, Foreign, told};
use crate::analyse::{Analysis, Spread};
use serde::Serialize;
use std::collections::BTreeMap;

/// Slugs of measures. `latency` and `throughput` are Bencher's own, with its units: ns, and
/// operations per second.
type Measures = BTreeMap<&'static str, Metric>;

#[derive(Serialize)]
struct Metric {
    value: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    lower_value: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    upper_value: Option<f64>,
}

/// Medians over processes, with the smallest and the largest value as bounds.
pub fn bmf(analysis: &Analysis) -> Foreign {
    let rows = told(analysis, |entry| {
        Some((entry.name.clone(), measures(entry)))
    });
    rows.file(|rows| rows.into_iter().collect::<BTreeMap<_, _>>())
}

fn measures(entry: &ExportedRow) -> Measures {
    let numbers = entry.numbers;
    let mut measures = Measures::from([
        ("latency", spread(numbers.ns_per_op, 1.0)),
        ("throughput", spread(numbers.mops_per_s, 1e6)),
    ]);
    measures.extend(
        numbers
            .cpu_ns_per_op
            .map(|cpu| ("cpu-time", spread(cpu, 1.0))),
    );
    let alone = |value| Metric {
        value,
        lower_value: None,
        upper_value: None,
    };
    measures.extend(
        numbers
            .memory
            .map(|memory| ("peak-rss", alone(memory.peak_rss_bytes))),
    );
    measures
}

fn spread(spread: Spread, size: f64) -> Metric {
    Metric {
        value: spread.median * size,
        lower_value: Some(spread.min * size),
        upper_value: Some(spread.max * size),
    }
}
