//! A condition under which a case runs once more, beside itself without it.

use super::HugePages;
use serde::{Deserialize, Serialize};

/// The difference between two cases that are otherwise equal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Factor {
    /// Its heap is aged before it begins, until so many of 100 blocks of the litter stay; the first
    /// has a fresh heap.
    Age(u8),
    /// The second case may have its memory in huge pages by this rule; the first has none.
    HugePages(HugePages),
    /// The second case sees so many CPUs; the first sees those that are there.
    CpusSeen(u32),
}

impl Factor {
    /// Behind the workload's name.
    pub fn suffix(self) -> String {
        match self {
            Factor::Age(_) => "-aged".into(),
            Factor::HugePages(which) => format!("-thp-{}", which.word()),
            Factor::CpusSeen(count) => format!("-cpus-{count}"),
        }
    }

    /// The metric that has the ratio of both times.
    pub fn metric(self) -> &'static str {
        match self {
            Factor::Age(_) => "aged_ratio",
            Factor::HugePages(_) => "huge_pages_ratio",
            Factor::CpusSeen(_) => "cpus_seen_ratio",
        }
    }
}
