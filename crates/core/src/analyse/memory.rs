//! How much memory a row took. Must not show an overhead that is due to pages, not the allocator.

use heapmark_stats::geometric_mean;
use serde::Serialize;

/// The memory of a row, as medians over its processes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// The highest resident set of a process, in bytes.
    pub peak_rss_bytes: f64,
    /// (peak RSS - RSS before the first operation + what the allocator held before) / highest sum of requested sizes;
    /// `None` if less than 1 MiB was requested.
    pub overhead: Option<f64>,
}

/// The memory of one allocator over that of another, geometric mean over cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemoryRatio {
    /// The ratio; above 1: the first allocator takes more.
    pub ratio: f64,
    /// The measure that was compared.
    pub measure: MemoryMeasure,
    /// The number of cases in which both allocators have the measure.
    pub cases: usize,
}

/// The measure that represents memory in a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryMeasure {
    /// [`Memory::overhead`], if some case has it.
    Overhead,
    /// [`Memory::peak_rss_bytes`], if no case requests enough for an overhead.
    PeakRss,
}

impl MemoryRatio {
    /// The ratio of two allocators' memory, given for the same cases in the same order.
    pub(super) fn new(ours: &[Option<Memory>], theirs: &[Option<Memory>]) -> Option<MemoryRatio> {
        let over = |value: fn(&Memory) -> Option<f64>, measure| {
            let ratio = |(ours, theirs): (&Option<Memory>, &Option<Memory>)| {
                Some(value(ours.as_ref()?)? / value(theirs.as_ref()?)?)
            };
            let ratios: Vec<f64> = ours
                .iter()
                .zip(theirs)
                .filter_map(ratio)
                .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
                .collect();
            Some(MemoryRatio {
                ratio: geometric_mean(&ratios)?,
                measure,
                cases: ratios.len(),
            })
        };
        over(|memory| memory.overhead, MemoryMeasure::Overhead)
            .or_else(|| over(|memory| Some(memory.peak_rss_bytes), MemoryMeasure::PeakRss))
    }
}
