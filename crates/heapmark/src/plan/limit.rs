//! A limit on the memory of measured processes, for runs that look for the smallest one under which
//! a workload still ends `ok`.

use serde::{Deserialize, Serialize};

/// What is limited.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum LimitKind {
    /// What a control group (v2) may have in memory, without swap: what a container limits
    Cgroup,
    /// RLIMIT_DATA: private memory that can be written, resident or not; each process
    Data,
    /// RLIMIT_AS: address space, used or only reserved; each process
    As,
}

impl LimitKind {
    /// Its name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            LimitKind::Cgroup => "cgroup",
            LimitKind::Data => "data",
            LimitKind::As => "as",
        }
    }

    /// What such a limit counts.
    pub fn counts(self) -> &'static str {
        match self {
            LimitKind::Cgroup => "what a control group has in memory (memory.max, no swap)",
            LimitKind::Data => "private memory that can be written, of each process (RLIMIT_DATA)",
            LimitKind::As => "address space of each process (RLIMIT_AS)",
        }
    }
}

/// How one process is limited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// What the workload and its allocator may have; `None`: as much as they want.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// What the harness's own tables and stacks take: the limit that is set has room for these, too.
    pub harness_bytes: u64,
    /// Of a timed process: the limit in per cent of the smallest one that does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
}

impl Limit {
    /// The limit that is set.
    pub fn set_bytes(&self) -> Option<u64> {
        Some(self.bytes?.saturating_add(self.harness_bytes))
    }
}

/// Processes are timed under these limits, in per cent of the smallest one that does.
pub const TIMED_PERCENT: [u32; 5] = [102, 110, 125, 150, 200];

/// Two limits that are tried differ by this factor, or by a page.
pub const STEP: f64 = 1.01;

/// So many processes decide a limit if all of them end alike.
const ALIKE: u32 = 3;

/// Of at most so many, more than half decide it.
const MOST: u32 = 9;

/// Whether a limit does, given how many processes under it ended `ok` and how many did not; `None` if
/// more are needed. What a process needs depends on where the kernel puts its mappings, and on the
/// allocator's own random numbers. Seen in `same-thread-5000` under `data`: one process of 15 of
/// jemalloc fails up to 9 % above the limit below which all do (none without address space
/// randomization), and one of 7 of tcmalloc gets through up to 6 % below. If all had to end `ok`, or
/// one were enough, two searches would differ by that.
pub fn does(ok: u32, failed: u32) -> Option<bool> {
    let is_settled = ok.max(failed) > MOST / 2 || (ok.min(failed) == 0 && ok + failed >= ALIKE);
    is_settled.then_some(ok > failed)
}

/// About so many processes look for the smallest limit of a row: one without a limit, and those of
/// eight halvings of a factor of 8 into steps of 1 %.
const SEARCH: u32 = 1 + 9 * ALIKE;

/// About how many processes a row has that is timed in so many blocks.
pub(super) fn processes(blocks: u32) -> u32 {
    SEARCH + blocks * (1 + TIMED_PERCENT.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_alike_decide_a_limit_and_else_most_of_nine() {
        for (ok, failed, decided) in [
            (0, 0, None),
            (2, 0, None),
            (3, 0, Some(true)),
            (0, 3, Some(false)),
            (2, 1, None),
            (4, 4, None),
            (5, 1, Some(true)),
            (4, 5, Some(false)),
        ] {
            assert_eq!(does(ok, failed), decided, "{ok} of {}", ok + failed);
        }
    }
}
