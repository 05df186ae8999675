//! The numbers of a row, computed from its processes.

use super::aged::AgedOverFresh;
use super::group::{Group, PairKey};
use super::memory::{MeanFootprint, Memory};
use super::ratio::Ratio;
use super::role::Role;
use super::spread::{Spread, TwoModes};
use super::table_cell::TableCell;
use super::verdict::Verdict;
use crate::execute::Measurement;
use crate::metric::{self, Metric, Process, Sample, Value, faults_per_op};
use crate::plan::Mode;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The numbers of a row. Medians over processes unless stated otherwise.
#[derive(Clone, Debug, Serialize)]
pub struct Numbers {
    /// Samples that are included.
    pub samples: usize,
    /// Blocks that they are from: the baseline has a sample in each part of a block.
    pub blocks: usize,
    /// Samples that ended `ok` without operations, time or iterations to divide.
    pub unusable: usize,
    /// Samples among them with stalls that may be the allocator's own doing; `None` if there were
    /// none.
    pub stalled: Option<Stalled>,
    /// Wall time x threads / operations.
    pub ns_per_op: Spread,
    /// Operations of all threads per microsecond.
    pub mops_per_s: Spread,
    /// CPU time / operations.
    pub cpu_ns_per_op: Option<Spread>,
    /// The purge's part of the wall time; `None` if the case does not count it.
    pub purge_share: Option<f64>,
    /// `ns_per_op` without the purge; `None` if the case does not count it.
    pub ns_per_op_without_purge: Option<f64>,
    /// `ns_per_op` over the baseline's; `None` for the floor, and if the baseline has no numbers.
    pub ratio: Option<Ratio>,
    /// `cpu_ns_per_op` over the baseline's; `None` as for `ratio`, and if a clock measured no CPU
    /// time.
    pub cpu_ratio: Option<Ratio>,
    /// `user_ns_per_op` over the baseline's; `None` as for `cpu_ratio`.
    pub user_ratio: Option<Ratio>,
    /// The verdict on `user_ratio`.
    pub user_verdict: Option<Verdict>,
    /// Growth of the resident set over the baseline's; `None` as for `ratio`.
    pub memory_ratio: Option<Ratio>,
    /// The verdict on `memory_ratio`.
    pub memory_verdict: Option<Verdict>,
    /// The verdict on `ratio`; `None` for rows that are not judged.
    pub verdict: Option<Verdict>,
    /// Over the same allocator in a fresh heap, if this case's heap was aged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aged: Option<AgedOverFresh>,
    /// The verdict on `cpu_ratio`.
    pub cpu_verdict: Option<Verdict>,
    /// The two modes of its times, if one median would describe neither.
    pub modes: Option<TwoModes>,
    /// Memory at its peak; `None` if no process reported a resident set.
    pub memory: Option<Memory>,
    /// Memory over time; `None` if it was not sampled from outside.
    pub mean_footprint: Option<MeanFootprint>,
    /// The floor's `ns_per_op` over this row's, the harness's share of it; `None` without a floor,
    /// and for rows that are not allocators.
    pub floor_share: Option<f64>,
    /// Whether the floor is more than half of this row's or the baseline's time: without it, `ratio`
    /// would be further from 1.
    pub ratio_is_bound: bool,
    /// `ns_per_op` without the floor's; `None` as for `floor_share`.
    pub net_ns_per_op: Option<f64>,
    /// Where the time goes; `None` as for `floor_share`.
    pub parts: Option<TimeParts>,
    /// The metrics of whole processes; only if the case's rows are such.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<TableCell>,
    /// The workload's further figures.
    pub figures: BTreeMap<String, f64>,
    /// Every sample, in block order. Exports have the samples themselves.
    #[serde(skip)]
    pub times: Vec<Timed>,
}

/// Where the time of an operation goes: together `ns_per_op`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TimeParts {
    /// The floor.
    pub harness_ns: f64,
    /// System time above the floor's: page faults and system calls of the allocator.
    pub kernel_ns: f64,
    /// The rest, waits included.
    pub allocator_ns: f64,
    /// Minor page faults of an operation, those of the floor included.
    pub faults: f64,
}

impl TimeParts {
    fn new(group: &Group, floor: &Group) -> Option<TimeParts> {
        let kernel_of = |group: &Group| group.median_of(|_, process| process.kernel_ns_per_op);
        let harness_ns = floor.median_ns_per_op()?;
        let kernel_ns = (kernel_of(group)? - kernel_of(floor).unwrap_or_default()).max(0.0);
        Some(TimeParts {
            harness_ns,
            kernel_ns,
            allocator_ns: group.median_ns_per_op()? - harness_ns - kernel_ns,
            faults: group.median_of(|measurement, _| faults_per_op(measurement))?,
        })
    }
}

/// Samples that waited for memory, swapped, or were throttled by the CPU limit of their control
/// group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Stalled {
    /// Their number.
    pub samples: usize,
    /// The causes.
    pub by: BTreeSet<&'static str>,
}

/// A sample as the charts show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    /// Its block.
    pub block: u32,
    /// Wall time x threads / operations.
    pub ns_per_op: f64,
    /// Whether it had interference.
    pub disturbed: bool,
    /// Whether it had a stall that may be its own doing.
    pub stalled: bool,
}

impl Numbers {
    pub(super) fn new(
        group: &Group,
        baseline: Option<&Group>,
        floor: Option<&Group>,
    ) -> Option<Numbers> {
        let spread = |value: fn(&Process) -> Option<f64>| {
            Spread::of(&group.values(|_, process| value(process)))
        };
        let ratio = |value: fn(&Process) -> Option<f64>| match group.role {
            Role::Floor => None,
            Role::Baseline => spread(value).map(|_| Ratio::baseline(group.blocks())),
            Role::Candidate | Role::AaCopy | Role::Program => Ratio::of(group, baseline?, value),
        };
        let ns_per_op = spread(|process| Some(process.ns_per_op))?;
        // Of a case that counts the purge.
        let purged = |value: fn(&Process) -> Option<f64>| {
            let counts = group.case.counts_purge;
            group.median_of(|_, process| value(process).filter(|_| counts))
        };
        // A program does not run in the guest, so its time does not include the guest's cost.
        let in_guest = matches!(group.role, Role::Baseline | Role::Candidate);
        let floor = floor.filter(|_| in_guest);
        let floor_ns = floor.and_then(Group::median_ns_per_op);
        let faster_ns = baseline
            .and_then(Group::median_ns_per_op)
            .map_or(ns_per_op.median, |theirs| theirs.min(ns_per_op.median));
        Some(Numbers {
            samples: group.processes.len(),
            blocks: group.blocks(),
            unusable: group.unusable,
            stalled: stalled(group),
            ns_per_op,
            mops_per_s: spread(|process| Some(process.mops_per_s))?,
            cpu_ns_per_op: spread(|process| process.cpu_ns_per_op),
            purge_share: purged(|process| process.purge_share),
            ns_per_op_without_purge: purged(Process::ns_per_op_without_purge),
            ratio: ratio(|process| Some(process.ns_per_op)),
            cpu_ratio: ratio(|process| process.cpu_ns_per_op),
            user_ratio: ratio(|process| process.user_ns_per_op),
            user_verdict: None,
            memory_ratio: ratio(|process| process.grown_bytes),
            memory_verdict: None,
            verdict: None,
            aged: None,
            cpu_verdict: None,
            modes: TwoModes::among(group),
            memory: Memory::new(group),
            mean_footprint: MeanFootprint::new(group),
            floor_share: floor_ns.map(|floor_ns| floor_ns / ns_per_op.median),
            ratio_is_bound: group.role == Role::Candidate
                && floor_ns.is_some_and(|floor_ns| floor_ns > faster_ns / 2.0),
            net_ns_per_op: floor_ns.map(|floor_ns| ns_per_op.median - floor_ns),
            parts: floor.and_then(|floor| TimeParts::new(group, floor)),
            cells: cells(group),
            figures: figures(group),
            times: times(group),
        })
    }

    /// The median of a metric of whole processes.
    pub fn median(&self, key: &str) -> Option<f64> {
        let mut cells = self.cells.iter();
        let cell = cells.find(|cell| cell.metric.key == key)?;
        Some(cell.spread.median)
    }

    /// Whether another allocator would have changed a whole process; `None` if its calls were not
    /// counted.
    pub fn responds_to_malloc(&self) -> Option<bool> {
        let calls = self.median("malloc_calls_per_operation")?;
        Some(calls >= CALLS_THAT_MATTER)
    }
}

/// With fewer calls per operation, malloc serves only start-up and heap growth; the objects come
/// from elsewhere.
const CALLS_THAT_MATTER: f64 = 0.01;

fn cells(group: &Group) -> Vec<TableCell> {
    let values = |metric: &Metric| match metric.of {
        Value::Check(of) => group
            .check
            .and_then(|check| of(&check.figures))
            .into_iter()
            .collect(),
        _ => group.values(|measurement, process| {
            metric.value(&Sample {
                measurement,
                process: Some(*process),
                memory: None,
                mean_heap: None,
            })
        }),
    };
    let metrics = match group.case.whole_process {
        true => metric::of_case(Mode::Time, group.case),
        false => Vec::new(),
    };
    let cell = |metric: &'static Metric| TableCell::new(metric, &values(metric));
    metrics.into_iter().filter_map(cell).collect()
}

fn stalled(group: &Group) -> Option<Stalled> {
    let mut stalled = Stalled {
        samples: 0,
        by: BTreeSet::new(),
    };
    for (slot, stalls) in &group.stalled {
        if group.processes.contains_key(slot) {
            stalled.samples += 1;
            stalled.by.extend(stalls);
        }
    }
    (stalled.samples > 0).then_some(stalled)
}

fn times(group: &Group) -> Vec<Timed> {
    let timed = |(slot, (_, process)): (&PairKey, &(&Measurement, Process))| Timed {
        block: slot.0,
        ns_per_op: process.ns_per_op,
        disturbed: group.disturbed.contains(slot),
        stalled: group.stalled.contains_key(slot),
    };
    group.processes.iter().map(timed).collect()
}

/// Figures of where the blocks lie that a program reads: time between those of a packed and of a
/// scattered copy, pages, and the pages of both copies.
pub const PLACEMENT: [&str; 4] = [
    "placement_share",
    "pages_per_1000_nodes",
    "packed_pages_per_1000_nodes",
    "scattered_pages_per_1000_nodes",
];

/// Whether some table uses this figure of a sample; exports include all.
pub fn reads_figure(name: &str) -> bool {
    let is_figure = |metric: &Metric| matches!(metric.of, Value::Figure) && metric.key == name;
    PLACEMENT.contains(&name) || metric::all().any(is_figure)
}

fn figures(group: &Group) -> BTreeMap<String, f64> {
    // A whole process reports most figures in its check, which is not timed.
    let check = group.check.filter(|_| group.case.whole_process);
    let mut figures = check.map_or(BTreeMap::new(), |check| check.figures.clone());
    let processes = group.processes.values();
    let names: BTreeSet<&String> = processes.flat_map(|(m, _)| m.figures.keys()).collect();
    for name in names {
        let median = group.median_of(|m, _| m.figures.get(name).copied());
        figures.extend(median.map(|median| (name.clone(), median)));
    }
    figures
}
