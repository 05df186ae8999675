//! A condition under which a case runs a second time, beside the same case without that condition.

use super::HugePages;
use serde::{Deserialize, Serialize};

/// The difference between two cases that are otherwise equal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Factor {
    /// The second case's heap is aged before the workload begins, until this many of 100 blocks of the litter stay; the
    /// first case has a fresh heap.
    Age(u8),
    /// The second case may have its memory in huge pages by this rule; the first has none.
    HugePages(HugePages),
    /// The second case sees this many CPUs; the first sees those that are there.
    CpusSeen(u32),
}

impl Factor {
    /// The suffix of the workload's name.
    pub fn suffix(self) -> String {
        match self {
            Factor::Age(_) => "-aged".into(),
            Factor::HugePages(which) => format!("-thp-{}", which.word()),
            Factor::CpusSeen(count) => format!("-cpus-{count}"),
        }
    }

    /// The metric for the ratio of both times.
    pub fn metric(self) -> &'static str {
        match self {
            Factor::Age(_) => "aged_ratio",
            Factor::HugePages(_) => "huge_pages_ratio",
            Factor::CpusSeen(_) => "cpus_seen_ratio",
        }
    }
}
