//! How much memory a row took. Must not show an overhead that is due to pages, not the allocator.

use super::group::Group;
use super::spread::Spread;
use crate::metric::{OVERHEAD_FROM_BYTES, overhead_of};
use crate::observe::mean_heap::MeanHeap;
use heapmark_stats::geometric_mean;
use serde::Serialize;

/// Medians over processes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Memory {
    /// Highest resident set of the process's life.
    pub peak_rss_bytes: f64,
    /// (peak RSS - RSS before the first operation) / highest sum of requested sizes; `None` if less
    /// than 1 MiB was requested.
    pub overhead: Option<f64>,
}

impl Memory {
    pub(super) fn new(group: &Group) -> Option<Memory> {
        let requested = group.median_of(|m, _| Some(m.requested_peak_bytes as f64))?;
        Some(Memory {
            peak_rss_bytes: group
                .median_of(|m, _| Some(m.peak_rss_bytes as f64).filter(|bytes| *bytes > 0.0))?,
            overhead: (requested >= OVERHEAD_FROM_BYTES)
                .then(|| group.median_of(|m, _| overhead_of(m)))
                .flatten(),
        })
    }
}

/// Memory over the time of the measured iterations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanFootprint {
    /// Growth of the resident set since just before the first operation, mean over time.
    pub bytes: Spread,
    /// That times the wall time of one iteration.
    pub gib_seconds: Spread,
}

impl MeanFootprint {
    pub(super) fn new(group: &Group) -> Option<MeanFootprint> {
        let of = |value: fn(&MeanHeap) -> f64| {
            let heaps = group.mean_heaps.iter();
            Spread::of(&Vec::from_iter(heaps.map(|it| value(it))))
        };
        Some(MeanFootprint {
            bytes: of(|it| it.bytes as f64)?,
            gib_seconds: of(MeanHeap::gib_seconds)?,
        })
    }
}

/// One allocator's memory over another's, geometric mean over cases.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MemoryRatio {
    /// Above 1: the first takes more.
    pub ratio: f64,
    /// The measure that was compared.
    pub measure: MemoryMeasure,
    /// The number of cases in which both have it.
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
    /// From both allocators' memory per case, in the same order.
    pub(super) fn new(ours: &[Option<Memory>], theirs: &[Option<Memory>]) -> Option<MemoryRatio> {
        let over = |value: fn(&Memory) -> Option<f64>, measure| {
            let ratio = |(ours, theirs): (&Option<Memory>, &Option<Memory>)| {
                Some(value(ours.as_ref()?)? / value(theirs.as_ref()?)?)
            };
            let ratios = ours.iter().zip(theirs).filter_map(ratio);
            let ratios: Vec<f64> = ratios
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
