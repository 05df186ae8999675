//! The memory of a process that was sampled, as its guest reported it before and after the
//! workload. What was sampled from outside during the workload is in `observe::memory_sampler`.

use super::report_lines::ReportLines;
use heapmark_wire::{HeapPoint, Peak, numbers};
use serde::{Deserialize, Serialize};

/// The memory of one sampled process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    /// What was resident just before the first operation, and so is not the workload's.
    pub begin: Resident,
    /// What was still resident after the workload had freed everything.
    pub retained: Vec<Retained>,
    /// What the guest itself sampled, if its workload names points for that; kept in the series.
    #[serde(skip)]
    pub points: Vec<HeapPoint>,
    /// The guest's own sample when most bytes were live.
    #[serde(skip)]
    pub peak: Option<Peak>,
}

/// The resident memory of a process at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Resident {
    /// Resident set, the harness's tables included.
    pub rss_bytes: u64,
    /// PSS: like RSS, but shared memory is divided by the number of processes that share it.
    pub pss_bytes: u64,
    /// Anonymous memory in huge pages.
    pub anon_huge_bytes: u64,
    /// The harness's own tables.
    pub harness_bytes: u64,
}

/// What was resident some time after everything was freed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Retained {
    /// Time without any operation, in milliseconds, since everything was freed.
    pub after_ms: u64,
    /// The memory that was still resident after that time.
    pub resident: Resident,
}

impl Resident {
    /// Returns the resident bytes without the harness's tables.
    pub fn without_harness(&self) -> u64 {
        self.rss_bytes.saturating_sub(self.harness_bytes)
    }

    /// Returns the bytes of the resident heap. `held_before_bytes` is the allocator's part of what
    /// was resident at the beginning; the rest of that is not heap, and neither are the harness's
    /// tables.
    pub fn grown_since(&self, begin: &Resident, held_before_bytes: u64) -> u64 {
        let outside = begin.without_harness().saturating_sub(held_before_bytes);
        self.without_harness().saturating_sub(outside)
    }
}

impl Footprint {
    /// Reads `resident=WHEN RSS PSS HUGE HARNESS` lines; `None` if the process was not sampled.
    pub(super) fn of(lines: &ReportLines<'_>) -> Option<Footprint> {
        let samples = || {
            lines.named("resident").filter_map(|(when, value)| {
                let [rss_bytes, pss_bytes, anon_huge_bytes, harness_bytes] = numbers(value)?;
                let resident = Resident {
                    rss_bytes,
                    pss_bytes,
                    anon_huge_bytes,
                    harness_bytes,
                };
                Some((when, resident))
            })
        };
        let retained = samples().filter_map(|(when, resident)| {
            let after_ms = when.parse().ok()?;
            Some(Retained { after_ms, resident })
        });
        Some(Footprint {
            begin: samples().find(|(when, _)| *when == "begin")?.1,
            retained: retained.collect(),
            points: lines.values("point").filter_map(HeapPoint::parse).collect(),
            peak: lines.values("peak").find_map(Peak::parse),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_harness_holds_is_no_growth() {
        let report = ReportLines::parse(
            "resident=begin 100 90 0 40\nresident=0 180 170 20 70\nresident=5000 95 90 0 40\nresident=x\n",
        );
        let footprint = Footprint::of(&report).unwrap();
        let grown: Vec<(u64, u64)> = footprint
            .retained
            .iter()
            .map(|retained| {
                (
                    retained.after_ms,
                    retained.resident.grown_since(&footprint.begin, 0),
                )
            })
            .collect();
        assert_eq!(grown, [(0, 50), (5000, 0)]);
        let heap = |retained: &Retained| retained.resident.grown_since(&footprint.begin, 10);
        let heaps: Vec<u64> = footprint.retained.iter().map(heap).collect();
        assert_eq!(
            heaps,
            [60, 5],
            "10 of the 60 at the beginning were the allocator's"
        );
        assert_eq!(
            Footprint::of(&ReportLines::parse("resident=0 1 1 1 1\n")),
            None
        );
    }
}
