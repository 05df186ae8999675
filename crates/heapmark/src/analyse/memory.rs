//! How much memory a row took. Must not show an overhead where pages, not the allocator, decide it.

use super::group::Group;
use crate::execute::Measurement;
use serde::Serialize;

/// The least requested memory for which an overhead says something about an allocator.
pub const OVERHEAD_FROM_BYTES: f64 = 1_048_576.0;

/// Medians over processes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// Highest resident set of the process's life.
    pub peak_rss_bytes: f64,
    /// (peak RSS - RSS before the first operation) / highest sum of requested sizes; `None` where less than 1 MiB was requested.
    pub overhead: Option<f64>,
}

impl Memory {
    pub(super) fn new(group: &Group) -> Option<Memory> {
        let requested = group.median_of(|m, _| Some(m.requested_peak_bytes as f64))?;
        Some(Memory {
            peak_rss_bytes: group
                .median_of(|m, _| Some(m.peak_rss_bytes as f64).filter(|bytes| *bytes > 0.0))?,
            overhead: (requested >= OVERHEAD_FROM_BYTES)
                .then(|| group.median_of(|m, _| overhead(m)))
                .flatten(),
        })
    }

    /// How many times the other's memory this is: by overhead where both have one, else by peak RSS.
    pub fn over(&self, other: &Memory) -> Option<f64> {
        let ratio = match (self.overhead, other.overhead) {
            (Some(ours), Some(theirs)) => ours / theirs,
            _ => self.peak_rss_bytes / other.peak_rss_bytes,
        };
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }
}

/// A peak below the start, or nothing requested, is no overhead but a missing one.
fn overhead(measurement: &Measurement) -> Option<f64> {
    let grown = measurement
        .peak_rss_bytes
        .checked_sub(measurement.baseline_rss_bytes)?;
    (measurement.requested_peak_bytes > 0)
        .then(|| grown as f64 / measurement.requested_peak_bytes as f64)
}
