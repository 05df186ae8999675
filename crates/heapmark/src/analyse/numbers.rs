//! The numbers of a row, computed from its processes.

use super::factor::FactorRatio;
use super::group::Group;
use super::measured_cell::Beside;
use super::memory::Memory;
use super::ratio::Ratio;
use super::role::Role;
use super::spread::{Spread, TwoModes};
use super::table_cell::TableCell;
use super::verdict::{RowVerdicts, Verdict};
use crate::metric::{self, HELD_BEFORE, Judged, Unit, Value, WALL};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// From this much on a row says what its allocator held before the first block. A huge page that
/// some take at their start is less.
const MUCH_BEFORE_BYTES: f64 = 8_388_608.0;

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
    /// `ns_per_op`, by which rows are ranked.
    pub time: TableCell,
    /// The other metrics.
    pub cells: Vec<TableCell>,
    /// Over the same allocator without the case's factor, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub factor: Option<FactorRatio>,
    /// The two modes of its times, if one median would describe neither.
    pub modes: Option<TwoModes>,
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
    fn new(numbers: &Numbers, floor: &Group) -> Option<TimeParts> {
        let floor_kernel_ns = floor.median_of(|_, process| process.kernel_ns_per_op);
        let harness_ns = floor.median_ns_per_op()?;
        let kernel_ns = numbers.median("kernel_ns_per_op")? - floor_kernel_ns.unwrap_or_default();
        let kernel_ns = kernel_ns.max(0.0);
        Some(TimeParts {
            harness_ns,
            kernel_ns,
            allocator_ns: numbers.time.spread.median - harness_ns - kernel_ns,
            faults: numbers.median("faults_per_op")?,
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
    pub(super) fn new(group: &Group, beside: &Beside) -> Option<Numbers> {
        let mut cells = beside.cells(group);
        let place = cells.iter().position(|cell| cell.metric.key == WALL.key)?;
        let time = cells.remove(place);
        let ns_per_op = time.spread.median;
        // A program does not run in the guest, so its time does not include the guest's cost.
        let in_guest = group.role.ranks();
        let floor = beside.floor.filter(|_| in_guest);
        let floor_ns = floor.and_then(Group::median_ns_per_op);
        let faster_ns = beside
            .baseline
            .and_then(Group::median_ns_per_op)
            .map_or(ns_per_op, |theirs| theirs.min(ns_per_op));
        let mut numbers = Numbers {
            samples: group.processes.len(),
            blocks: group.blocks(),
            unusable: group.unusable,
            stalled: stalled(group),
            time,
            cells,
            factor: None,
            modes: TwoModes::among(group),
            floor_share: floor_ns.map(|floor_ns| floor_ns / ns_per_op),
            ratio_is_bound: group.role == Role::Candidate
                && floor_ns.is_some_and(|floor_ns| floor_ns > faster_ns / 2.0),
            net_ns_per_op: floor_ns.map(|floor_ns| ns_per_op - floor_ns),
            parts: None,
            figures: figures(group),
            times: times(group),
        };
        numbers.parts = floor.and_then(|floor| TimeParts::new(&numbers, floor));
        Some(numbers)
    }

    /// All metrics.
    pub fn all(&self) -> impl Iterator<Item = &TableCell> {
        std::iter::once(&self.time).chain(&self.cells)
    }

    /// A metric.
    pub fn cell(&self, key: &str) -> Option<&TableCell> {
        self.all().find(|cell| cell.metric.key == key)
    }

    /// The median of a metric.
    pub fn median(&self, key: &str) -> Option<f64> {
        Some(self.cell(key)?.spread.median)
    }

    /// A metric over the baseline's; `None` for the floor, and if one of the two has no value.
    pub fn ratio(&self, key: &str) -> Option<Ratio> {
        self.cell(key)?.ratio
    }

    /// The verdict on that; `None` for rows that are not judged.
    pub fn verdict(&self, key: &str) -> Option<Verdict> {
        self.cell(key)?.verdict
    }

    /// Operations of all threads per microsecond.
    pub fn rate(&self) -> Spread {
        self.cell("mops_per_s")
            .expect("what has a time has a rate")
            .spread
    }

    /// What the allocator held before the first block, if that is worth a word.
    pub fn held_before(&self) -> Option<f64> {
        self.median(HELD_BEFORE)
            .filter(|bytes| *bytes >= MUCH_BEFORE_BYTES)
    }

    /// Memory at its peak; `None` if no process reported a resident set.
    pub fn memory(&self) -> Option<Memory> {
        Some(Memory {
            peak_rss_bytes: self.median("peak_rss_bytes")?,
            overhead: self.median("overhead"),
        })
    }

    /// Fills in the verdicts of tests, by the keys of their metrics. Recorded times say nothing
    /// about allocators, so those of a paced case have no ratio.
    pub(super) fn judge(&mut self, verdicts: &RowVerdicts, paced: bool) {
        for cell in std::iter::once(&mut self.time).chain(&mut self.cells) {
            if cell.metric.judged == Judged::ByTest {
                cell.verdict = verdicts.get(cell.metric.key).copied();
                cell.ratio = cell
                    .ratio
                    .filter(|_| !(paced && cell.metric.unit == Unit::Ns));
            }
        }
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
        .map(|(slot, (_, process))| Timed {
            block: slot.0,
            ns_per_op: process.ns_per_op,
            disturbed: group.disturbed.contains(slot),
            stalled: group.stalled.contains_key(slot),
        })
        .collect()
}

/// Whether some table uses this figure of a sample; exports include all.
pub fn reads_figure(name: &str) -> bool {
    metric::all().any(|metric| matches!(metric.of, Value::Figure) && metric.key == name)
}

fn figures(group: &Group) -> BTreeMap<String, f64> {
    // A whole process reports most figures in its check, which is not timed.
    let check = group.check.filter(|_| group.case.whole_process);
    let mut figures = check.map(|check| check.figures.clone()).unwrap_or_default();
    let names: BTreeSet<&String> = group
        .processes
        .values()
        .flat_map(|(m, _)| m.figures.keys())
        .collect();
    for name in names {
        let median = group.median_of(|m, _| m.figures.get(name).copied());
        figures.extend(median.map(|median| (name.clone(), median)));
    }
    figures
}
