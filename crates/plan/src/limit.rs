//! A limit on the memory of measured processes, for runs that look for the smallest one under which
//! a workload still ends `ok`.

use heapmark_wire::limit_search::ALIKE;
use serde::{Deserialize, Serialize};

/// The kind of memory to which a limit applies.
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
    /// Returns the limit's name on the command line.
    pub fn word(self) -> &'static str {
        match self {
            LimitKind::Cgroup => "cgroup",
            LimitKind::Data => "data",
            LimitKind::As => "as",
        }
    }

    /// Returns what a limit of this kind counts.
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
    /// Bytes that the workload and its allocator may have; `None` for no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Bytes of the harness's own tables and stacks: the limit that is set has room for these, too.
    pub harness_bytes: u64,
    /// For a timed process: the limit in per cent of the smallest one that suffices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
}

impl Limit {
    /// Returns the limit that is set, in bytes.
    pub fn set_bytes(&self) -> Option<u64> {
        Some(self.bytes?.saturating_add(self.harness_bytes))
    }
}

/// Limits under which processes are timed, in per cent of the smallest one that suffices.
pub const TIMED_PERCENT: [u32; 5] = [102, 110, 125, 150, 200];

/// Approximate number of processes that look for the smallest limit of a row: one without a limit,
/// and those of eight halvings of a factor of 8 into steps of 1 %.
const SEARCH: u32 = 1 + 9 * ALIKE;

/// Returns the approximate number of processes of a row that is timed in this many blocks.
pub(super) fn processes(blocks: u32) -> u32 {
    SEARCH + blocks * (1 + TIMED_PERCENT.len() as u32)
}
