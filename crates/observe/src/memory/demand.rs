//! How much of a kind of memory a process takes if nothing limits it: where the search for its smallest limit begins.
//! Sampled from outside: a short peak between two looks is missed.

use super::pace::Pace;
use super::process_files::{ProcessFiles, Walked};
use crate::clock::thread_cpu_ns;
use heapmark_plan::LimitKind;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The memory that a process was seen to take.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Demand {
    /// Most bytes that a limit would have counted, including the harness's; 0 if the process ended before it was looked at.
    pub most_bytes: u64,
    /// Bytes of the harness's own tables and stacks.
    pub harness_bytes: u64,
    /// Most bytes that the kernel could have taken back at once, in all processes: they were freed
    /// by MADV_FREE.
    pub reclaimable_bytes: u64,
    /// How often the process was sampled.
    pub looks: u64,
}

/// Nothing is timed here, so samples are taken this many times more often than usual.
const UNTIMED: u32 = 10;

/// Samples a process, or a tree of processes.
pub struct DemandSampler {
    kind: LimitKind,
    demand: Demand,
    pace: Pace,
}

impl DemandSampler {
    /// Makes a sampler for a limit of this kind.
    pub fn new(kind: LimitKind) -> DemandSampler {
        DemandSampler {
            kind,
            demand: Demand::default(),
            pace: Pace::default(),
        }
    }

    /// Samples these processes; returns the wait until the next look.
    pub fn look(&mut self, processes: &[i32]) -> Duration {
        let files = || processes.iter().copied().map(ProcessFiles::of);
        let of_each = files().filter_map(|mut files| match self.kind {
            LimitKind::Cgroup => files.resident_bytes(),
            LimitKind::Data => files.status_bytes("VmData:"),
            LimitKind::As => files.status_bytes("VmPeak:"),
        });
        let bytes = match self.kind {
            LimitKind::Cgroup => of_each.sum(),
            // Each process has a limit of its own.
            LimitKind::Data | LimitKind::As => of_each.max().unwrap_or(0),
        };
        let reclaimable = files()
            .filter_map(|mut files| files.walked())
            .map(|walk: Walked| walk.lazily_free_bytes)
            .sum();
        let demand = &mut self.demand;
        demand.most_bytes = demand.most_bytes.max(bytes);
        demand.reclaimable_bytes = demand.reclaimable_bytes.max(reclaimable);
        demand.looks += 1;
        self.pace.next(thread_cpu_ns()) / UNTIMED
    }

    /// Returns the sampled demand, with the harness's share; if a control group was charged, the kernel's own peak
    /// counts instead.
    pub fn seen(&self, charged_bytes: Option<u64>, harness_bytes: u64) -> Demand {
        Demand {
            most_bytes: charged_bytes.unwrap_or(self.demand.most_bytes),
            harness_bytes,
            ..self.demand
        }
    }
}
