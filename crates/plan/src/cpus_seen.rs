//! The number of CPUs that heapmark reports to a command.

use serde::{Deserialize, Serialize};

/// The CPUs that are reported to a process which asks for their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpusSeen {
    /// The machine's own CPUs. heapmark answers these calls, too, so that the answer takes as long as a changed one.
    Machine,
    /// This many CPUs, and no quota.
    Count(u32),
}

impl CpusSeen {
    /// The most CPUs that can be reported to a program: a `cpu_set_t` has no room for more.
    pub const MOST: u32 = 1024;
}
