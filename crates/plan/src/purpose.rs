//! What a process of a run is for.

use serde::{Deserialize, Serialize};

/// Why a process was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The guest without preload, which must show libc: proves that the proof can fail.
    Control,
    /// A process that finds how much work takes the target time; on the baseline only.
    Calibration,
    /// One process per allocator, workload and thread count, every block checked for overlap and
    /// alignment; never timed.
    Check,
    /// A measured process: the only kind whose times and memory are compared.
    Sample,
    /// A process in which single calls were timed; its other times mean nothing.
    Latency,
    /// Processes in which something was counted: their times mean nothing.
    Count,
    /// Processes whose memory was sampled: their times mean nothing.
    Memory,
    /// A process that looks for the smallest limit on memory that suffices, or for the start of that search: its times mean nothing.
    Search,
    /// A process timed under a multiple of the smallest limit, or in the same block without a limit.
    Limited,
    /// Two processes of the baseline that show whether two can take turns; if not, `unsupported` gives the reason, and the case is measured
    /// alone.
    Trial,
    /// Calls of functions that few workloads call, once for each allocator: a fault found there is
    /// reported, and is no failure.
    Corners,
}

impl Purpose {
    /// Returns whether processes with this purpose form the blocks: interference with them is recorded.
    pub fn is_of_a_block(self) -> bool {
        matches!(
            self,
            Purpose::Sample
                | Purpose::Latency
                | Purpose::Count
                | Purpose::Memory
                | Purpose::Limited
        )
    }
}
