//! The memory profile of a process: when most bytes were live, when most were resident, and the
//! samples between.

use serde::{Deserialize, Serialize};

/// Footprints that differ by less than this share of the highest count as the same peak.
const SAME_PEAK: f64 = 0.01;

/// The memory that was sampled while the workload ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryProfile {
    /// The number of samples with live bytes.
    pub points: u64,
    /// When most bytes were live.
    pub peak_demand: MemoryPoint,
    /// When most bytes were resident.
    pub peak_footprint: MemoryPoint,
    /// The sum of the live bytes of all points.
    pub live_byte_points: u64,
    /// The sum of the resident heap bytes of all points.
    pub heap_byte_points: u64,
    /// Most anonymous memory in huge pages that was seen; sampled rarely.
    pub most_anon_huge_bytes: u64,
    /// CPU time of the sampling thread, waits included, over the time from the first to the last
    /// sample.
    pub sampling_share: f64,
    /// The highest resident heap of all points; 0 in results from before this was stored.
    #[serde(default)]
    pub most_heap_bytes: u64,
    /// More about the moment when most bytes were live, if the process sampled itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_peak: Option<AtPeak>,
}

/// What a process found when most bytes were live, block by block and page by page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AtPeak {
    /// Usable bytes of the live blocks, as the allocator reports them; 0 if it does not.
    pub usable_bytes: u64,
    /// A tenth of the pages with live blocks hold at most this many live bytes each.
    pub tenth_page_bytes: u64,
    /// Pages with live blocks that are less than a quarter full.
    pub sparse_pages: u64,
}

impl MemoryProfile {
    /// Returns the profile of these points and of the moment when most bytes were live.
    pub(super) fn of(points: &[MemoryPoint], peak_demand: MemoryPoint) -> MemoryProfile {
        let sum = |bytes: fn(&MemoryPoint) -> u64| points.iter().map(bytes).sum::<u64>();
        let all = || points.iter().chain([&peak_demand]);
        let most_heap_bytes = all().map(|moment| moment.heap_bytes).fold(0, u64::max);
        let least = most_heap_bytes as f64 * (1.0 - SAME_PEAK);
        // A footprint often stays at its peak while live bytes vary, so the point with most live
        // bytes counts.
        let peak_footprint = all()
            .filter(|moment| moment.heap_bytes as f64 >= least)
            .max_by_key(|moment| moment.live_bytes);
        MemoryProfile {
            points: points.len() as u64,
            peak_demand,
            peak_footprint: peak_footprint.copied().unwrap_or(peak_demand),
            live_byte_points: sum(|moment| moment.live_bytes),
            heap_byte_points: sum(|moment| moment.heap_bytes),
            most_heap_bytes,
            ..MemoryProfile::default()
        }
    }

    /// Returns the profile of the points that a process sampled itself, when its workload asked for them. Nothing is
    /// polled, and nothing missed. Without a separate peak, the point with the most live bytes is the peak; `None` if
    /// there are no points.
    pub fn of_points(
        points: &[heapmark_wire::HeapPoint],
        peak: Option<&heapmark_wire::Peak>,
    ) -> Option<MemoryProfile> {
        let of_point = |point: &heapmark_wire::HeapPoint| MemoryPoint {
            live_bytes: point.live_bytes,
            occupied_bytes: point.occupied_bytes,
            heap_bytes: point.heap_bytes,
        };
        let huge = points.iter().map(|point| point.anon_huge_bytes);
        let most_anon_huge_bytes = huge.max().unwrap_or(0);
        let points: Vec<MemoryPoint> = points.iter().map(of_point).collect();
        let Some(peak) = peak else {
            let peak_demand = *points.iter().max_by_key(|point| point.live_bytes)?;
            return Some(MemoryProfile {
                most_anon_huge_bytes,
                ..MemoryProfile::of(&points, peak_demand)
            });
        };
        let peak_demand = MemoryPoint {
            live_bytes: peak.live_bytes,
            occupied_bytes: peak.occupied_bytes,
            heap_bytes: peak.heap_bytes,
        };
        Some(MemoryProfile {
            most_anon_huge_bytes: most_anon_huge_bytes.max(peak.anon_huge_bytes),
            at_peak: Some(AtPeak {
                usable_bytes: peak.usable_bytes,
                tenth_page_bytes: peak.tenth_page_bytes,
                sparse_pages: peak.sparse_pages,
            }),
            ..MemoryProfile::of(&points, peak_demand)
        })
    }
}

/// Memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// Requested bytes of live blocks.
    pub live_bytes: u64,
    /// Bytes of the pages that hold any live block.
    pub occupied_bytes: u64,
    /// Growth of the resident set since just before the first operation, without the harness's
    /// tables, and what the allocator held before.
    pub heap_bytes: u64,
}
