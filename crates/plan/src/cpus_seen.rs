//! How many CPUs a command is told that there are.

use serde::{Deserialize, Serialize};

/// The CPUs that a process sees when it asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CpusSeen {
    /// The truth, as late as others hear something else: its calls are asked of heapmark, too.
    Machine,
    /// So many CPUs, and no quota.
    Count(u32),
}

impl CpusSeen {
    /// The most that a program can be told: a `cpu_set_t` has no room for more.
    pub const MOST: u32 = 1024;
}
