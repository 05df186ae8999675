//! What a table knows of a metric of a row.

use super::ratio::Ratio;
use super::spread::Spread;
use super::verdict::Verdict;
use crate::metric::Metric;
use serde::{Serialize, Serializer};

/// A metric of a row.
#[derive(Clone, Debug, Serialize)]
pub struct TableCell {
    /// The metric, by its key.
    #[serde(serialize_with = "key")]
    pub metric: &'static Metric,
    /// What it is of, if the row has several: a function.
    pub label: String,
    /// Over the processes of the row.
    pub spread: Spread,
    /// How many values that is over.
    pub n: u64,
    /// Over the baseline's in the same blocks.
    pub ratio: Option<Ratio>,
    /// By that, if rows are judged by the metric.
    pub verdict: Option<Verdict>,
}

fn key<S: Serializer>(metric: &&'static Metric, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(metric.key)
}

impl TableCell {
    /// What some values come to, not yet compared. `None` for no values, and if one is not finite.
    pub(super) fn new(metric: &'static Metric, values: &[f64]) -> Option<TableCell> {
        Some(TableCell {
            metric,
            label: String::new(),
            spread: Spread::of(values)?,
            n: values.len() as u64,
            ratio: None,
            verdict: None,
        })
    }
}
