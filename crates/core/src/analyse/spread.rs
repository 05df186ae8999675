//! A few values that summarise many: the median and both extremes, or two modes.

use super::group::Group;
use heapmark_stats::{Modes, median, modes};
use serde::Serialize;

/// The two modes of `ns_per_op`, if processes fall into two modes with nothing between them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TwoModes {
    /// Median of the lower mode, in nanoseconds per operation.
    pub low: f64,
    /// The number of processes in the lower mode.
    pub low_count: usize,
    /// Median of the higher mode, in nanoseconds per operation.
    pub high: f64,
    /// The number of processes in the higher mode.
    pub high_count: usize,
}

impl TwoModes {
    pub(super) fn among(group: &Group) -> Option<TwoModes> {
        let Modes { low, high } = modes(&group.values(|process| Some(process.ns_per_op().ln())))?;
        Some(TwoModes {
            low: low.median.exp(),
            low_count: low.count,
            high: high.median.exp(),
            high_count: high.count,
        })
    }
}

/// The median and both extremes of one value per process.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The median of the values.
    pub median: f64,
    /// The smallest of the values.
    pub min: f64,
    /// The largest of the values.
    pub max: f64,
}

impl Spread {
    /// Returns the spread of these values; `None` if there are no values, or one of them is not finite.
    pub fn of(values: &[f64]) -> Option<Spread> {
        Some(Spread {
            median: median(values)?,
            min: values.iter().copied().fold(f64::INFINITY, f64::min),
            max: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        })
    }
}
