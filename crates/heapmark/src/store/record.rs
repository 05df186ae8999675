//! The lines of `samples.jsonl`: one per process that ran, whatever came of it.

use crate::execute::{Iteration, Measurement, Outcome, Proof, Usage};
use crate::sample::disturbance::Disturbance;
use crate::sample::follower::Course;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a process was run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purpose {
    /// The guest without preload, which must show libc: proves that the proof can fail.
    Control,
    /// Finds how much work fills the target time; on the baseline only.
    Calibration,
    /// One process per allocator, workload and thread count, every block checked for overlap and alignment; never timed.
    Check,
    /// A measured process: the only kind whose times and memory are compared.
    Sample,
    /// A process in which single calls were timed: it says how long they took, and nothing else.
    Latency,
    /// Processes in which something was counted: no time of them means anything.
    Count,
    /// Processes that were followed for their memory: no time of them means anything.
    Memory,
}

impl Purpose {
    /// Whether such processes make up the blocks: what disturbs one of them is noted.
    pub fn is_of_a_block(self) -> bool {
        matches!(self, Purpose::Sample | Purpose::Latency | Purpose::Count | Purpose::Memory)
    }
}

impl Record {
    /// Leaves what a process was and measured, and lets go of what proves it, and of a sample's figures that nobody reads.
    pub(super) fn forget_evidence(&mut self, reads: fn(&str) -> bool) {
        (self.usage, self.proof) = (None, None);
        (self.environment, self.started) = (BTreeMap::new(), String::new());
        if let Some(measurement) = &mut self.measurement {
            (measurement.calls, measurement.notes) = (BTreeMap::new(), BTreeMap::new());
            measurement.threads = Vec::new();
            if self.purpose == Purpose::Sample {
                // Collected anew: a map that was emptied keeps its memory.
                let figures = std::mem::take(&mut measurement.figures).into_iter();
                measurement.figures = figures.filter(|(name, _)| reads(name)).collect();
            }
            measurement.iterations = sum(&measurement.iterations).into_iter().collect();
        }
    }
}

/// What counts of the iterations, in one: tables divide sums by sums.
fn sum(iterations: &[Iteration]) -> Option<Iteration> {
    let measured = iterations.iter().filter(|iteration| !iteration.cold).cloned();
    measured.reduce(|sum, one| Iteration {
        cold: false,
        wall_ns: sum.wall_ns.saturating_add(one.wall_ns),
        purge_ns: sum.purge_ns.saturating_add(one.purge_ns),
        user_ns: sum.user_ns.saturating_add(one.user_ns),
        sys_ns: sum.sys_ns.saturating_add(one.sys_ns),
        minor_faults: sum.minor_faults.saturating_add(one.minor_faults),
        ops: sum.ops.saturating_add(one.ops),
    })
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// One process and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Why it ran.
    pub purpose: Purpose,
    /// The cell's name, unique in a run: `larson@2/b03/jemalloc`, `larson@2/check/jemalloc`, `larson@2/calibration`.
    pub cell: String,
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// Allocator name.
    pub allocator: String,
    /// Block number, from 0; pairs the processes that are compared.
    pub block: u32,
    /// Part of its block, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub part: u32,
    /// How often this part was run before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Position within its part, from 0.
    pub position: u32,
    /// Random state the workload started from.
    pub seed: u64,
    /// UTC, RFC 3339.
    pub started: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What it measured; absent unless the outcome is `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Measurement>,
    /// What the kernel counted; absent where no process was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
    /// What else the machine did meanwhile; only of measured processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disturbance: Option<Disturbance>,
    /// What was seen of its memory while the workload ran; only where that is what it was for, and where it ran long enough to
    /// be seen a few times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub course: Option<Box<Course>>,
    /// Who served the malloc family; absent where the process did not get that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Box<Proof>>,
    /// The complete environment of the process (padding as its length).
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The last lines the process wrote to stderr, where it did not end `ok`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}
