//! Bencher Metric Format: a benchmark per row, a measure per figure.

use super::{ExportedRow, Foreign, told};
use crate::analyse::{Analysis, Spread};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Slugs of measures. `latency` and `throughput` are Bencher's own, with its units: ns, and
/// operations per second.
type Measures = BTreeMap<&'static str, Value>;

/// Medians over processes, with the smallest and the largest value as bounds.
pub fn bmf(analysis: &Analysis) -> Foreign {
    told(
        analysis,
        |entry| Some((entry.name.clone(), measures(entry))),
        BTreeMap::from_iter,
    )
}

fn measures(entry: &ExportedRow) -> Measures {
    let numbers = entry.numbers;
    let mut measures = Measures::from([
        ("latency", spread(numbers.ns_per_op, 1.0)),
        ("throughput", spread(numbers.mops_per_s, 1e6)),
    ]);
    if let Some(cpu) = numbers.cpu_ns_per_op {
        measures.insert("cpu-time", spread(cpu, 1.0));
    }
    if let Some(memory) = numbers.memory {
        measures.insert("peak-rss", json!({"value": memory.peak_rss_bytes}));
    }
    measures
}

fn spread(spread: Spread, size: f64) -> Value {
    json!({
        "value": spread.median * size,
        "lower_value": spread.min * size,
        "upper_value": spread.max * size,
    })
}
