//! The memory profile of a process: when most bytes were live, when most were resident, and the
//! samples between.

use serde::{Deserialize, Serialize};

/// Footprints that differ by less than this share of the highest count as the same peak.
const SAME_PEAK: f64 = 0.01;

/// What was sampled while the workload ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryProfile {
    /// Samples with live bytes.
    pub points: u64,
    /// When most bytes were live.
    pub peak_demand: MemoryPoint,
    /// When most bytes were resident.
    pub peak_footprint: MemoryPoint,
    /// Sum over the points of live bytes.
    pub live_byte_points: u64,
    /// Sum over the points of resident heap bytes.
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_peak: Option<AtPeak>,
    /// RSS in two ways when most bytes were live, and when the work was done; if the process read
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rss_cross_check: Option<[RssCrossCheck; 2]>,
}

/// RSS at one moment by the kernel's counter and by its page tables; as
/// [`MemoryPoint::heap_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RssCrossCheck {
    /// By the counter, which some kernels keep per CPU.
    pub counted_bytes: u64,
    /// By the page tables.
    pub walked_bytes: u64,
}

/// What a process found when most bytes were live, block by block and page by page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtPeak {
    /// Usable bytes of the live blocks, as the allocator reports them; 0 if it does not.
    pub usable_bytes: u64,
    /// A tenth of the pages with live blocks hold at most this many live bytes each.
    pub tenth_page_bytes: u64,
    /// Pages with live blocks that are less than a quarter full.
    pub sparse_pages: u64,
}

impl MemoryProfile {
    /// From what a process sampled itself at points that its workload names. Nothing is polled, and
    /// nothing missed.
    pub fn of_points(
        points: &[heapmark_wire::HeapPoint],
        peak: &heapmark_wire::Peak,
        cross_checks: &[heapmark_wire::RssCrossCheck],
    ) -> MemoryProfile {
        let of_point = |it: &heapmark_wire::HeapPoint| MemoryPoint {
            live_bytes: it.live_bytes,
            occupied_bytes: it.occupied_bytes,
            heap_bytes: it.heap_bytes,
        };
        let heapmark_wire::Peak {
            live_bytes,
            occupied_bytes,
            heap_bytes,
            ..
        } = *peak;
        let peak_demand = MemoryPoint {
            live_bytes,
            occupied_bytes,
            heap_bytes,
        };
        let along: Vec<MemoryPoint> = points.iter().map(of_point).collect();
        let all: Vec<MemoryPoint> = along.iter().copied().chain([peak_demand]).collect();
        let asked = |it: &heapmark_wire::RssCrossCheck| RssCrossCheck {
            counted_bytes: it.counted_bytes,
            walked_bytes: it.walked_bytes,
        };
        MemoryProfile {
            points: along.len() as u64,
            peak_demand,
            peak_footprint: peak_footprint(&all).unwrap_or(peak_demand),
            live_byte_points: along.iter().map(|moment| moment.live_bytes).sum(),
            heap_byte_points: along.iter().map(|moment| moment.heap_bytes).sum(),
            most_anon_huge_bytes: peak.anon_huge_bytes,
            sampling_share: 0.0,
            most_heap_bytes: most_heap_bytes(&all),
            at_peak: Some(AtPeak {
                usable_bytes: peak.usable_bytes,
                tenth_page_bytes: peak.tenth_page_bytes,
                sparse_pages: peak.sparse_pages,
            }),
            rss_cross_check: cross_checks
                .first_chunk()
                .map(|moments: &[_; 2]| moments.each_ref().map(asked)),
        }
    }
}

pub(super) fn most_heap_bytes(moments: &[MemoryPoint]) -> u64 {
    moments
        .iter()
        .map(|moment| moment.heap_bytes)
        .max()
        .unwrap_or(0)
}

/// The moment when most bytes were resident. A footprint often stays at its peak while live bytes
/// vary, so the point with most live bytes counts.
pub(super) fn peak_footprint(moments: &[MemoryPoint]) -> Option<MemoryPoint> {
    let most = moments.iter().map(|moment| moment.heap_bytes).max()? as f64;
    let at_peak = moments
        .iter()
        .filter(|moment| moment.heap_bytes as f64 >= most * (1.0 - SAME_PEAK));
    at_peak.max_by_key(|moment| moment.live_bytes).copied()
}

/// Memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// Requested bytes of live blocks.
    pub live_bytes: u64,
    /// Bytes of the pages that hold any live block.
    pub occupied_bytes: u64,
    /// Growth of the resident set since just before the first operation, without the harness's
    /// tables.
    pub heap_bytes: u64,
}
