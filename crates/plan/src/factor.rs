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
    /// This number of CPUs is reported to processes of the second case; those of the first get the real number.
    CpusSeen(u32),
}

impl Factor {
    /// Returns the suffix of the workload's name.
    pub fn suffix(self) -> String {
        match self {
            Factor::Age(_) => "-aged".into(),
            Factor::HugePages(which) => format!("-thp-{}", which.word()),
            Factor::CpusSeen(count) => format!("-cpus-{count}"),
        }
    }

    /// Returns a workload's name without the suffix of a factor: the name of the case that both have in common.
    pub fn plain_name(workload: &str) -> &str {
        let last = workload.rsplit('-').next();
        let count = last.and_then(|count| count.parse().ok());
        let rules = [HugePages::Never, HugePages::Advised, HugePages::Machine];
        [Factor::Age(0)]
            .into_iter()
            .chain(rules.map(Factor::HugePages))
            .chain(count.map(Factor::CpusSeen))
            .find_map(|factor| workload.strip_suffix(factor.suffix().as_str()))
            .unwrap_or(workload)
    }

    /// Returns the metric for the ratio of both times.
    pub fn metric(self) -> &'static str {
        match self {
            Factor::Age(_) => "aged_ratio",
            Factor::HugePages(_) => "huge_pages_ratio",
            Factor::CpusSeen(_) => "cpus_seen_ratio",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_name_is_the_one_that_got_the_suffix() {
        let factors = [
            Factor::Age(50),
            Factor::HugePages(HugePages::Advised),
            Factor::HugePages(HugePages::Machine),
            Factor::CpusSeen(64),
        ];
        for plain in ["larson", "scatter-2", "trace:jq-group"] {
            assert_eq!(Factor::plain_name(plain), plain);
            for factor in factors {
                let name = plain.to_owned() + &factor.suffix();
                assert_eq!(Factor::plain_name(&name), plain, "{name}");
            }
        }
    }
}
