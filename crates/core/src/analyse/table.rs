//! The type of table for every kind of run: rows x metrics, for a workload at a thread count.

use super::command_facts::CommandFacts;
use super::compare;
use super::factor::FactorRatio;
use super::failure::Failed;
use super::footprint::Sampling;
use super::latency::{TimedCalls, Timing};
use super::memory::Memory;
use super::purge::Purge;
use super::ratio::Ratio;
use super::role::Role;
use super::spread::{Spread, TwoModes};
use super::table_cell::TableCell;
use super::times::{Stalled, TimeParts, Timed};
use super::verdict::Verdict;
use crate::execute::user_command::VALUE_COST;
use crate::metric::WALL;
use crate::plan::{Case, Factor, case_name};
use crate::store::{AllocatorInfo, RunFile};
use heapmark_wire::limit_search::does;
use serde::Serialize;
use std::collections::BTreeMap;

/// A workload at a thread count. Fields that serde skips are those of timed processes, whose tables
/// `timed_document` writes.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Table {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// The work of the case, which distinguishes this table from one of the same name in another run.
    #[serde(skip)]
    pub work: Vec<String>,
    /// Whether there are more threads than usable CPUs.
    pub oversubscribed: bool,
    /// The factor by which this case differs from the case before it, if the rest is equal.
    #[serde(skip)]
    pub factor: Option<Factor>,
    /// The row that the others are compared with.
    pub baseline: String,
    /// A caution that the table must not be read without.
    pub caution: Option<String>,
    /// How single calls were timed, in a run that times single calls.
    #[serde(flatten)]
    pub timing: Option<Timing>,
    /// Whether the times include the purge.
    #[serde(skip)]
    pub counts_purge: bool,
    /// Whether the rows are whole processes.
    #[serde(skip)]
    pub whole_process: bool,
    /// Whether the times are recorded ones or a fixed time, which no allocator changes: only memory can differ.
    #[serde(skip)]
    pub paced: bool,
    /// Whether each allocator took turns with the baseline on one CPU: then all times are CPU times.
    #[serde(skip)]
    pub took_turns: bool,
    /// Whether one thread replayed the calls of several, as a control for the case in which several threads do.
    #[serde(skip)]
    pub played_by_one: bool,
    /// The user's command, if the case runs one.
    #[serde(skip)]
    pub command: Option<CommandFacts>,
    /// The A/A copy over the baseline; `None` if the run had no copy.
    #[serde(skip)]
    pub aa_copy: Option<Ratio>,
    /// Whether the A/A copy came out different: then only larger differences are claimed here.
    #[serde(skip)]
    pub aa_copy_differs: bool,
    /// For a program under allocators: the share of the baseline's CPU time that the fastest
    /// allocator saves, 0 if none does.
    #[serde(skip)]
    pub won_at_most: Option<f64>,
    /// Whether the harness takes more than half of the fastest allocator's time. Means over cases of malloc and free
    /// alone exclude the floor of each case, high or not; other means include all floors.
    #[serde(skip)]
    pub floor_is_high: bool,
    /// The rows, in plan order unless they were sorted.
    pub rows: Vec<TableRow>,
}

/// An allocator in a table. Fields that serde skips are those of timed processes: medians, unless
/// stated otherwise.
#[derive(Clone, Debug, Default, Serialize)]
pub struct TableRow {
    /// The allocator's name.
    pub allocator: String,
    /// The allocator's tier, as the run recorded it.
    pub tier: String,
    /// The row's part in the comparison.
    pub role: Role,
    /// How the row failed, if it did: then it has no cells.
    pub failed: Option<Failed>,
    /// The row's values, in the order of the metrics; for timed processes, their time is first.
    pub cells: Vec<TableCell>,
    /// Metrics without a value here, and why.
    pub why_not: BTreeMap<String, String>,
    /// Details of the values of some metrics, in words: the names of what was counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// How the memory of the row's processes was sampled, in a run that samples memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The timed calls of the row's processes, in a run that times single calls.
    #[serde(flatten)]
    pub calls: Option<TimedCalls>,
    /// The limits that were tried, in a run that looks for the smallest one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<TriedLimit>,
    /// Functions of the malloc family that the allocator leaves to libc; a row with any is `partial`.
    #[serde(skip)]
    pub left_to_libc: Vec<String>,
    /// Faults in functions that few workloads call; a row with any is `flawed`.
    #[serde(skip)]
    pub findings: Vec<String>,
    /// How the allocator returns memory in this case.
    #[serde(skip)]
    pub purge: Purge,
    /// The catalogue family whose purge is used, for a library given by its path.
    #[serde(skip)]
    pub purged_as: Option<String>,
    /// What the row's check reports about libc behind the allocator, if libc serves part of the memory.
    #[serde(skip)]
    pub served: Option<String>,
    /// How many processes the row's check has left behind, if any: neither their time nor their memory is the row's.
    #[serde(skip)]
    pub left_behind: Option<String>,
    /// The date of the allocator's sources; empty if its version contains the date.
    #[serde(skip)]
    pub sources: String,
    /// Parameters of the workload that have other values in this row than in the rest of the case.
    #[serde(skip)]
    pub parameters: BTreeMap<String, String>,
    /// The number of samples that are included.
    #[serde(skip)]
    pub samples: usize,
    /// The number of blocks that the samples are from: the baseline has a sample in each part of a block.
    #[serde(skip)]
    pub blocks: usize,
    /// The number of samples that ended `ok` without operations, time or iterations to divide.
    #[serde(skip)]
    pub unusable: usize,
    /// Included samples with stalls that may be the allocator's own doing; `None` if there were
    /// none.
    #[serde(skip)]
    pub stalled: Option<Stalled>,
    /// The ratio to the same allocator without the case's factor, if the case has one.
    #[serde(skip)]
    pub factor: Option<FactorRatio>,
    /// The two modes of the row's times, if one median would describe neither.
    #[serde(skip)]
    pub modes: Option<TwoModes>,
    /// The floor's `ns_per_op` over this row's, which is the harness's share of the time; `None`
    /// without a floor, and for rows that are not allocators.
    #[serde(skip)]
    pub floor_share: Option<f64>,
    /// Whether the floor is more than half of this row's or the baseline's time: without the floor,
    /// the ratio would be further from 1.
    #[serde(skip)]
    pub ratio_is_bound: bool,
    /// `ns_per_op` without the floor's; `None` as for `floor_share`.
    #[serde(skip)]
    pub net_ns_per_op: Option<f64>,
    /// Where the time goes; `None` as for `floor_share`.
    #[serde(skip)]
    pub parts: Option<TimeParts>,
    /// The workload's further figures.
    #[serde(skip)]
    pub figures: BTreeMap<String, f64>,
    /// Every sample, in block order.
    #[serde(skip)]
    pub times: Vec<Timed>,
}

/// A limit that was tried, and how each process under it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TriedLimit {
    /// The limit, in bytes.
    pub bytes: u64,
    /// For timed processes: the limit in per cent of the smallest one that is sufficient.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
    /// The words for the outcomes of the processes.
    pub outcomes: Vec<&'static str>,
}

impl TriedLimit {
    /// The first outcome that is not `ok`, or `ok`.
    pub fn word(&self) -> &'static str {
        self.outcomes
            .iter()
            .find(|word| **word != "ok")
            .copied()
            .unwrap_or("ok")
    }

    /// How many processes ended `ok`.
    pub fn ok(&self) -> usize {
        self.outcomes.iter().filter(|word| **word == "ok").count()
    }

    /// Returns whether the search found the limit sufficient; `None` if it is not decided yet.
    pub fn does(&self) -> Option<bool> {
        let failed = self.outcomes.len() - self.ok();
        does(self.ok() as u32, failed as u32)
    }
}

impl Table {
    /// Returns the case's name: `larson@2`.
    pub fn label(&self) -> String {
        case_name(&self.workload, self.threads)
    }

    pub(super) fn new(run: &RunFile, case: &Case, rows: Vec<TableRow>) -> Table {
        Table {
            workload: case.workload.clone(),
            threads: case.threads,
            work: work_of(case),
            oversubscribed: case.oversubscribed,
            factor: case.factor,
            baseline: case.baseline(&run.plan.baseline).to_owned(),
            caution: case.caution.clone(),
            counts_purge: case.counts_purge,
            played_by_one: case.is_played_by_one(),
            whole_process: case.whole_process,
            rows,
            ..Table::default()
        }
    }

    /// The row of an allocator.
    pub fn row(&self, allocator: &str) -> Option<&TableRow> {
        self.rows.iter().find(|row| row.allocator == allocator)
    }

    /// The table's rows that have numbers.
    pub fn measured(&self) -> impl Iterator<Item = &TableRow> + Clone {
        self.rows.iter().filter(|row| row.has_run())
    }

    /// Whether the times are those of operations, which allocators can make shorter.
    pub fn times_operations(&self) -> bool {
        !self.whole_process && !self.paced
    }

    /// The baseline's row.
    pub fn baseline_row(&self) -> Option<&TableRow> {
        self.rows.iter().find(|row| row.role == Role::Baseline)
    }

    /// Whether means over several cases include this table's times: they include those of
    /// operations, and those of real programs.
    pub fn counts(&self) -> bool {
        match &self.command {
            // If the baseline failed, there is nothing to compare.
            Some(command) => command.real && self.baseline_row().is_some_and(TableRow::has_run),
            None => self.times_operations(),
        }
    }

    /// Sorts the rows by a metric, the least value first, and rows without a value last.
    pub(super) fn sort_by_least(&mut self, key: &str) {
        let order = |row: &TableRow| row.median(key).unwrap_or(f64::INFINITY);
        self.rows.sort_by(|a, b| order(a).total_cmp(&order(b)));
    }
}

impl TableRow {
    pub(super) fn new(
        run: &RunFile,
        case: &Case,
        allocator: &AllocatorInfo,
        failed: Option<Failed>,
    ) -> TableRow {
        TableRow {
            allocator: allocator.name.clone(),
            tier: allocator.tier.clone(),
            role: Role::of(allocator, case.baseline(&run.plan.baseline)),
            failed,
            left_to_libc: allocator.left_to_libc.clone(),
            purged_as: allocator.purged_as.clone(),
            sources: allocator.sources.clone(),
            ..TableRow::default()
        }
    }

    /// Whether some process of the row has ended `ok`.
    pub fn has_run(&self) -> bool {
        !(self.cells.is_empty() && self.why_not.is_empty())
    }

    /// The value of a metric that has no labels.
    pub fn cell(&self, key: &str) -> Option<&TableCell> {
        self.cells.iter().find(|cell| cell.metric.key == key)
    }

    /// The median of a metric that has no labels.
    pub fn median(&self, key: &str) -> Option<f64> {
        Some(self.cell(key)?.spread.median)
    }

    /// The value of a metric of the timed calls of a function.
    pub fn of_function(&self, function: &str, key: &str) -> Option<&TableCell> {
        self.cells
            .iter()
            .find(|cell| cell.label == function && cell.metric.key == key)
    }

    /// The value of a function's cell in whole nanoseconds.
    pub fn call_ns(&self, function: &str, key: &str) -> Option<u64> {
        let cell = self.of_function(function, key);
        cell.map(|cell| cell.spread.median as u64)
    }

    /// `ns_per_op` of timed processes, by which rows are ranked; infinite if the row has no numbers.
    pub fn time(&self) -> &TableCell {
        self.cell(WALL.key).unwrap_or(&NO_TIME)
    }

    /// The cell by which the row is ranked: its time, or the number that its command reports.
    pub fn ranked(&self) -> &TableCell {
        self.cell(VALUE_COST).unwrap_or_else(|| self.time())
    }

    /// The ratio of a metric to the baseline's; `None` for the floor, and if one of the two has no value.
    pub fn ratio(&self, key: &str) -> Option<Ratio> {
        self.cell(key)?.ratio
    }

    /// The verdict on a metric; `None` for rows that are not judged.
    pub fn verdict(&self, key: &str) -> Option<Verdict> {
        self.cell(key)?.verdict
    }

    /// Operations of all threads per microsecond.
    pub fn rate(&self) -> Spread {
        self.cell("mops_per_s")
            .expect("what has a time has a rate")
            .spread
    }

    /// The row's memory at its peak; `None` if no process reported a resident set.
    pub fn memory(&self) -> Option<Memory> {
        Some(Memory {
            peak_rss_bytes: self.median("peak_rss_bytes")?,
            overhead: self.median("overhead"),
        })
    }
}

/// The time of a row without numbers.
static NO_TIME: TableCell = TableCell {
    metric: WALL,
    label: String::new(),
    spread: Spread {
        median: f64::INFINITY,
        min: f64::INFINITY,
        max: f64::INFINITY,
    },
    n: 0,
    values: Vec::new(),
    ratio: None,
    verdict: None,
};

/// A case's parameters, and what its command does.
fn work_of(case: &Case) -> Vec<String> {
    let parameters = compare::parameters(case);
    let parameters = parameters.map(|(name, value)| format!("{name}={value}"));
    let command = compare::work(case).into_iter().map(String::from);
    parameters.chain(command).collect()
}
