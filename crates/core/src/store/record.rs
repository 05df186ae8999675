//! The lines of `samples.jsonl`: one per process that ran, whatever its outcome.

use crate::execute::{Measurement, Outcome, Proof, Thin, Usage};
use crate::observe::{Demand, Interference, MeanHeap, MemoryProfile};
use crate::plan::{Cell, CellId, Limit, Purpose};
use ecow::EcoString;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A check that an earlier run has passed, with the same library, guest and work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// The cell's name in that run.
    pub cell: CellId,
    /// The time of that check: UTC, RFC 3339.
    pub at: String,
    /// Iterations that the check made: at least as many as a timed process of the run that reuses it.
    pub iterations: u32,
    /// Time from the process's start until it was reaped.
    pub wall_ns: u64,
    /// The process's highest resident set.
    pub peak_rss_bytes: u64,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A process and its result.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Record {
    /// Why the process ran.
    pub purpose: Purpose,
    /// The cell's name, unique in a run: `larson@2/b03/jemalloc`, `larson@2/check/jemalloc`,
    /// `larson@2/calibration`.
    pub cell: CellId,
    /// Workload name.
    pub workload: EcoString,
    /// The number of worker threads.
    pub threads: u32,
    /// Allocator name.
    pub allocator: EcoString,
    /// Block number, from 0; pairs the processes that are compared.
    pub block: u32,
    /// The number of the part in its block, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub part: u32,
    /// How often this part ran before.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Position of the process within its part, from 0.
    pub position: u32,
    /// Random state the workload started from.
    pub seed: u64,
    /// When the process was started: UTC, RFC 3339.
    pub started: String,
    /// How the process ended.
    pub outcome: Outcome,
    /// The measurement; absent unless the outcome is `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measurement: Option<Measurement>,
    /// Faults in functions that few workloads call; only of the process that tests them.
    #[serde(default, skip_serializing_if = "Thin::is_empty")]
    pub findings: Thin<Vec<String>>,
    /// For a check that was not run: the check of an earlier run that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<Box<Passed>>,
    /// The kernel's counts; absent if no process was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Box<Usage>>,
    /// Interference by the rest of the machine; only of measured processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interference: Option<Interference>,
    /// Samples of the process's memory while the workload ran; only of processes that ran for that
    /// purpose, and long enough for a few samples.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Box<MemoryProfile>>,
    /// The mean resident memory; only of samples whose memory over time was observed from outside,
    /// often enough.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_heap: Option<Box<MeanHeap>>,
    /// The memory limit, in a run that looks for the smallest one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<Box<Limit>>,
    /// Memory of the kind to be limited; only of the process with which the search for a limit begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub demand: Option<Box<Demand>>,
    /// The library that served the malloc family; absent if the process did not get that far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proof: Option<Box<Proof>>,
    /// The complete environment of the process (padding as its length).
    #[serde(default)]
    pub environment: Thin<BTreeMap<String, String>>,
    /// The checksums of the process's files in `series/` and `latency/`, by folder.
    #[serde(default, skip_serializing_if = "Thin::is_empty")]
    pub tables: Thin<BTreeMap<String, String>>,
    /// The last lines that the process wrote to stderr, if it did not end `ok`.
    #[serde(default, skip_serializing_if = "EcoString::is_empty")]
    pub stderr: EcoString,
}

impl Record {
    /// Returns whether the process belongs to the case of this workload and thread count.
    pub fn is_of(&self, workload: &str, threads: u32) -> bool {
        self.workload == workload && self.threads == threads
    }

    /// Returns the process's highest resident set, or that of the earlier check that replaces it.
    pub fn peak_rss_bytes(&self) -> Option<u64> {
        self.measurement
            .as_ref()
            .map(|measurement| measurement.peak_rss_bytes)
            .or_else(|| Some(self.passed.as_ref()?.peak_rss_bytes))
    }

    /// Returns whether the process failed: it did not end `ok`, and was neither a trial nor under a
    /// memory limit, where that is a result.
    pub fn has_failed(&self) -> bool {
        !self.outcome.is_ok()
            && self.purpose != Purpose::Trial
            && self
                .limit
                .as_ref()
                .is_none_or(|limit| limit.bytes.is_none())
    }

    /// Returns whether the process took turns with the one that it is compared with.
    pub fn took_turns(&self) -> bool {
        let measured = self.measurement.as_ref();
        measured.is_some_and(|measurement| measurement.turns.is_some())
    }

    /// Returns how many processes of the run ran at the same time as this one, itself included: both sides of each
    /// duet.
    pub fn at_once(&self) -> u64 {
        let turns = self
            .measurement
            .as_ref()
            .and_then(|measurement| measurement.turns.as_ref());
        turns.map_or(1, |turns| 2 * u64::from(turns.at_once))
    }

    /// Returns the time from the process's start until it was reaped, or that of the earlier check that replaces it.
    pub fn wall_ns(&self) -> Option<u64> {
        self.passed
            .as_ref()
            .map(|passed| passed.wall_ns)
            .or_else(|| Some(self.usage.as_ref()?.wall_ns))
    }

    /// Makes the record of a process of which only the outcome is known.
    pub fn new(
        purpose: Purpose,
        cell: &Cell,
        workload: &str,
        threads: u32,
        outcome: Outcome,
    ) -> Record {
        Record {
            purpose,
            cell: cell.id.clone(),
            workload: workload.into(),
            threads,
            allocator: cell.allocator.as_str().into(),
            block: cell.block,
            part: cell.part,
            attempt: cell.attempt,
            position: cell.position,
            seed: cell.seed,
            started: String::new(),
            outcome,
            measurement: None,
            findings: Thin::default(),
            passed: None,
            usage: None,
            interference: None,
            memory: None,
            mean_heap: None,
            limit: cell.limit.map(Box::new),
            demand: None,
            proof: None,
            environment: Thin::default(),
            tables: Thin::default(),
            stderr: EcoString::new(),
        }
    }
}
