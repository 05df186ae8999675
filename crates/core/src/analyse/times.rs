//! The times of a row.

use serde::Serialize;
use std::collections::BTreeSet;

/// Where the time of an operation goes: the parts add up to `ns_per_op`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimeParts {
    /// The harness's time: the floor.
    pub harness_ns: f64,
    /// System time above the floor's: page faults and system calls of the allocator.
    pub kernel_ns: f64,
    /// The rest of the time, waits included.
    pub allocator_ns: f64,
    /// Minor page faults of an operation, those of the floor included.
    pub faults: f64,
}

/// Samples that waited for memory, swapped, or were throttled by the CPU limit of their control
/// group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stalled {
    /// The number of samples with a stall.
    pub samples: usize,
    /// The causes of the stalls.
    pub by: BTreeSet<&'static str>,
}

/// A sample as the charts show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// The process's block.
    pub block: u32,
    /// Wall time x threads / operations.
    pub ns_per_op: f64,
    /// Whether the process had interference.
    pub disturbed: bool,
    /// Whether the process had a stall that may be its own doing.
    pub stalled: bool,
}
