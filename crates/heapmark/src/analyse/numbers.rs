//! The numbers of a row, computed from its processes.

use super::group::{Group, PairKey};
use super::memory::{MeanFootprint, Memory};
use super::ratio::Ratio;
use super::role::Role;
use super::spread::{Spread, TwoModes};
use super::verdict::Verdict;
use super::whole::Whole;
use crate::execute::Measurement;
use crate::metric::Process;
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
    /// Growth of the resident set over the baseline's; `None` as for `ratio`.
    pub memory_ratio: Option<Ratio>,
    /// The verdict on `memory_ratio`.
    pub memory_verdict: Option<Verdict>,
    /// The verdict on `ratio`; `None` for rows that are not judged.
    pub verdict: Option<Verdict>,
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
    /// `ns_per_op` without the floor's; `None` as for `floor_share`.
    pub net_ns_per_op: Option<f64>,
    /// The row as a process; only if the case's rows are whole processes.
    pub whole: Option<Whole>,
    /// The workload's further figures.
    pub figures: BTreeMap<String, f64>,
    /// Every sample, in block order. Exports have the samples themselves.
    #[serde(skip)]
    pub times: Vec<Timed>,
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
        role: Role,
        baseline: Option<&Group>,
        floor_ns: Option<f64>,
    ) -> Option<Numbers> {
        let ns_per_op = Spread::of(&group.values(|_, process| Some(process.ns_per_op)))?;
        let samples = group.processes.len();
        let counts_purge = group.case.counts_purge;
        let ratio = |value: fn(&Process) -> Option<f64>| match role {
            Role::Floor => None,
            Role::Baseline => group
                .values(|_, process| value(process))
                .first()
                .map(|_| Ratio::baseline(group.blocks())),
            Role::Candidate | Role::AaCopy | Role::Program => Ratio::of(group, baseline?, value),
        };
        Some(Numbers {
            samples,
            blocks: group.blocks(),
            unusable: group.unusable,
            stalled: stalled(group),
            ns_per_op,
            mops_per_s: Spread::of(&group.values(|_, process| Some(process.mops_per_s)))?,
            cpu_ns_per_op: Spread::of(&group.values(|_, process| process.cpu_ns_per_op)),
            purge_share: group.median_of(|_, process| process.purge_share.filter(|_| counts_purge)),
            ns_per_op_without_purge: group
                .median_of(|_, process| process.ns_per_op_without_purge().filter(|_| counts_purge)),
            ratio: ratio(|process| Some(process.ns_per_op)),
            cpu_ratio: ratio(|process| process.cpu_ns_per_op),
            memory_ratio: ratio(|process| process.grown_bytes),
            memory_verdict: None,
            verdict: None,
            cpu_verdict: None,
            modes: TwoModes::among(group),
            memory: Memory::new(group),
            mean_footprint: MeanFootprint::new(group),
            // A program does not run in the guest, so its time does not include the guest's cost.
            floor_share: floor_ns
                .filter(|_| matches!(role, Role::Baseline | Role::Candidate))
                .map(|floor_ns| floor_ns / ns_per_op.median),
            net_ns_per_op: floor_ns
                .filter(|_| matches!(role, Role::Baseline | Role::Candidate))
                .map(|floor_ns| ns_per_op.median - floor_ns),
            whole: group
                .case
                .whole_process
                .then(|| Whole::new(group))
                .flatten(),
            figures: figures(group),
            times: times(group),
        })
    }
}

fn stalled(group: &Group) -> Option<Stalled> {
    let own = || {
        group
            .stalled
            .iter()
            .filter(|(slot, _)| group.processes.contains_key(*slot))
    };
    let by = own().flat_map(|(_, stalls)| stalls).copied().collect();
    Some(Stalled {
        samples: own().count(),
        by,
    })
    .filter(|stalled| stalled.samples > 0)
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

fn figures(group: &Group) -> BTreeMap<String, f64> {
    // A whole process reports most figures in its check, which is not timed.
    let told = group
        .check
        .filter(|_| group.case.whole_process)
        .map(|check| check.figures.clone());
    let names: BTreeSet<&String> = group
        .processes
        .values()
        .flat_map(|(m, _)| m.figures.keys())
        .collect();
    let medians = names.into_iter().filter_map(|name| {
        Some((
            name.clone(),
            group.median_of(|m, _| m.figures.get(name).copied())?,
        ))
    });
    told.into_iter().flatten().chain(medians).collect()
}
