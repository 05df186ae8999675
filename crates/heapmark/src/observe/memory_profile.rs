//! The course of a process's memory: when most was live, when most was resident, and what lies between the two.

use serde::{Deserialize, Serialize};

/// Footprints that differ by less than this share of the highest are the same peak.
const SAME_PEAK: f64 = 0.01;

/// What was seen while the workload ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MemoryProfile {
    /// Looks that found something live.
    pub points: u64,
    /// When most was live.
    pub peak_demand: MemoryPoint,
    /// When most was resident.
    pub peak_footprint: MemoryPoint,
    /// Sum over the points of what was live.
    pub live_byte_points: u64,
    /// And of what was resident for it.
    pub heap_byte_points: u64,
    /// Most anonymous memory in huge pages that was seen; looked at seldom.
    pub most_anon_huge_bytes: u64,
    /// CPU time of the looks, waits between them included, over the time from the first to the last.
    pub sampling_share: f64,
    /// The highest resident heap of all points; 0 in runs of before this was kept.
    #[serde(default)]
    pub most_heap_bytes: u64,
    /// More of the moment when most was live, where the process looked at it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_peak: Option<AtPeak>,
    /// What the kernel said in two ways when most was live, and when the work was done; where the process asked it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twice: Option<[RssCrossCheck; 2]>,
}

/// The same moment by the kernel's quick count and by its page tables; as [`MemoryPoint::heap_bytes`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RssCrossCheck {
    /// By the count, which some kernels keep per CPU.
    pub counted_bytes: u64,
    /// By the page tables.
    pub walked_bytes: u64,
}

/// What a process found when most was live, block by block and page by page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AtPeak {
    /// What the allocator says that the live blocks have room for; 0 where it does not tell.
    pub usable_bytes: u64,
    /// A tenth of the pages with live blocks hold at most so many live bytes.
    pub tenth_page_bytes: u64,
    /// Pages with live blocks that are less than a quarter full.
    pub sparse_pages: u64,
}

impl MemoryProfile {
    /// From what a process saw itself at places that its work names. Nothing is polled, and nothing missed.
    pub fn of_points(
        points: &[heapmark_wire::Point],
        peak: &heapmark_wire::Peak,
        twice: &[heapmark_wire::RssCrossCheck],
    ) -> MemoryProfile {
        let of_point = |it: &heapmark_wire::Point| MemoryPoint {
            live_bytes: it.live_bytes,
            occupied_bytes: it.occupied_bytes,
            heap_bytes: it.heap_bytes,
        };
        let heapmark_wire::Peak { live_bytes, occupied_bytes, heap_bytes, .. } = *peak;
        let peak_demand = MemoryPoint { live_bytes, occupied_bytes, heap_bytes };
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
            twice: twice.first_chunk().map(|moments: &[_; 2]| moments.each_ref().map(asked)),
        }
    }
}

pub(super) fn most_heap_bytes(moments: &[MemoryPoint]) -> u64 {
    moments.iter().map(|moment| moment.heap_bytes).max().unwrap_or(0)
}

/// When most was resident; a footprint often stays at its peak while what is live comes and goes.
pub(super) fn peak_footprint(moments: &[MemoryPoint]) -> Option<MemoryPoint> {
    let most = moments.iter().map(|moment| moment.heap_bytes).max()? as f64;
    let at_peak = moments.iter().filter(|moment| moment.heap_bytes as f64 >= most * (1.0 - SAME_PEAK));
    at_peak.max_by_key(|moment| moment.live_bytes).copied()
}

/// What was there at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryPoint {
    /// Requested bytes of live blocks.
    pub live_bytes: u64,
    /// Bytes of the pages that hold any of them.
    pub occupied_bytes: u64,
    /// Growth of the resident set since just before the first operation, the harness's tables taken out.
    pub heap_bytes: u64,
}
