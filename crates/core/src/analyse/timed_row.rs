//! The rows of timed processes.

use super::group::Group;
use super::measured_cell::Beside;
use super::purge::Purge;
use super::role::Role;
use super::spread::TwoModes;
use super::table::TableRow;
use super::times::{Stalled, TimeParts, Timed};
use super::verdict::RowVerdicts;
use crate::execute::LEFT_BEHIND;
use crate::execute::user_command::VALUE_COST;
use crate::metric::{self, HELD_BEFORE, Judged, Unit, Value, WALL};
use crate::plan::OwnValue;
use crate::store::RunFile;
use std::collections::{BTreeMap, BTreeSet};

/// The least number of bytes held before the first block that a row reports. The huge page that
/// some allocators take at their start is smaller.
const MUCH_BEFORE_BYTES: f64 = 8_388_608.0;

impl TableRow {
    /// Builds a row of timed processes. If no process has a time, the row has no cells.
    pub(super) fn timed(run: &RunFile, group: &Group, beside: &Beside) -> TableRow {
        let noted = |note: &str| group.check.and_then(|check| check.notes.get(note).cloned());
        let mut row = TableRow {
            findings: group.findings.clone(),
            purge: Purge::of(group),
            served: noted("served"),
            // A command's are said below its table.
            left_behind: noted(LEFT_BEHIND).filter(|_| group.case.command().is_none()),
            parameters: other_parameters(group),
            unusable: group.unusable,
            ..TableRow::new(run, group.case, group.allocator, group.failed.clone())
        };
        row.cells = beside.cells(group);
        if (row.cells.first()).is_none_or(|cell| cell.metric.key != WALL.key) {
            row.cells.clear();
            return row;
        }
        let ns_per_op = row.time().spread.median;
        // A program does not run in the guest, so its time does not include the guest's cost.
        let in_guest = group.role.ranks();
        let floor = beside.floor.filter(|_| in_guest);
        let floor_ns = floor.and_then(Group::median_ns_per_op);
        let faster_ns = beside
            .baseline
            .and_then(Group::median_ns_per_op)
            .map_or(ns_per_op, |theirs| theirs.min(ns_per_op));
        TableRow {
            samples: group.processes.len(),
            blocks: group.blocks(),
            stalled: stalled(group),
            modes: TwoModes::among(group),
            floor_share: floor_ns.map(|floor_ns| floor_ns / ns_per_op),
            ratio_is_bound: group.role == Role::Candidate
                && floor_ns.is_some_and(|floor_ns| floor_ns > faster_ns / 2.0),
            net_ns_per_op: floor_ns.map(|floor_ns| ns_per_op - floor_ns),
            parts: parts(&row, floor),
            figures: figures(group),
            times: times(group),
            ..row
        }
    }

    /// What the allocator held before the first block, if that is worth mentioning.
    pub fn held_before(&self) -> Option<f64> {
        self.median(HELD_BEFORE)
            .filter(|bytes| *bytes >= MUCH_BEFORE_BYTES)
    }

    /// Fills in the verdicts of tests, by the keys of their metrics. Recorded times say nothing
    /// about allocators, so those of a paced case have no ratio.
    pub(super) fn judge(&mut self, verdicts: &RowVerdicts, paced: bool) {
        for cell in &mut self.cells {
            if cell.metric.judged == Judged::ByTest {
                cell.verdict = verdicts.get(cell.metric.key).copied();
                cell.ratio = cell
                    .ratio
                    .filter(|_| !(paced && cell.metric.unit == Unit::Ns));
            }
        }
    }

    /// Whether the allocator matters to a whole process; `None` if the process's calls were not
    /// counted.
    pub fn responds_to_malloc(&self) -> Option<bool> {
        let calls = self.median("malloc_calls_per_operation")?;
        Some(calls >= CALLS_THAT_MATTER)
    }
}

/// With fewer calls per operation, malloc serves only start-up and heap growth; the objects come
/// from elsewhere.
const CALLS_THAT_MATTER: f64 = 0.01;

/// Where the row's time goes; `None` without a floor.
fn parts(row: &TableRow, floor: Option<&Group>) -> Option<TimeParts> {
    let floor = floor?;
    let floor_kernel_ns = floor.median_of(|process| process.kernel_ns_per_op());
    let harness_ns = floor.median_ns_per_op()?;
    let kernel_ns = row.median("kernel_ns_per_op")? - floor_kernel_ns.unwrap_or_default();
    let kernel_ns = kernel_ns.max(0.0);
    Some(TimeParts {
        harness_ns,
        kernel_ns,
        allocator_ns: row.time().spread.median - harness_ns - kernel_ns,
        faults: row.median("faults_per_op")?,
    })
}

fn other_parameters(group: &Group) -> BTreeMap<String, String> {
    let usual = &group.case.parameters;
    let mut parameters = group
        .case
        .row(&group.allocator.name)
        .map(|row| row.parameters.clone())
        .unwrap_or_default();
    parameters.retain(|name, value| usual.get(name).is_some_and(|usual| usual != value));
    parameters
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
    group
        .processes
        .iter()
        .map(|(slot, process)| Timed {
            block: slot.0,
            ns_per_op: process.ns_per_op(),
            disturbed: group.disturbed.contains(slot),
            stalled: group.stalled.contains_key(slot),
        })
        .collect()
}

/// Whether some table uses this figure of a sample; exports include all figures.
pub fn reads_figure(name: &str) -> bool {
    let is_own = name == VALUE_COST || name.starts_with(OwnValue::FIGURES);
    is_own || metric::all().any(|metric| matches!(metric.of, Value::Figure) && metric.key == name)
}

fn figures(group: &Group) -> BTreeMap<String, f64> {
    // A whole process reports most figures in its check, which is not timed.
    let check = group.check.filter(|_| group.case.whole_process);
    let mut figures = check.map(|check| check.figures.clone()).unwrap_or_default();
    let names: BTreeSet<&String> = group
        .processes
        .values()
        .flat_map(|process| process.measurement.figures.keys())
        .collect();
    for name in names {
        let median = group.median_of(|process| process.measurement.figures.get(name).copied());
        figures.extend(median.map(|median| (name.clone(), median)));
    }
    figures
}
