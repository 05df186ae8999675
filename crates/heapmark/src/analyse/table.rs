//! One table for every kind of run: rows x metrics, a workload at a thread count.

use super::failure::Failed;
use super::footprint::Sampling;
use super::latency::{TimedCalls, Timing};
use super::role::Role;
use super::row::State;
use super::table_cell::TableCell;
use super::work_of;
use crate::metric;
use crate::plan::{Case, Factor};
use crate::store::{AllocatorInfo, RunFile};
use heapmark_wire::limit_search::does;
use serde::Serialize;
use std::collections::BTreeMap;

/// A workload at a thread count.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// What tells it from a table of the same name in another run.
    #[serde(skip)]
    pub work: Vec<String>,
    /// More threads than usable CPUs.
    pub oversubscribed: bool,
    /// What is different from the case before it, if only that is.
    #[serde(skip)]
    pub factor: Option<Factor>,
    /// The row that the others are compared with.
    pub baseline: String,
    /// A caution that the table must not be read without.
    pub caution: Option<String>,
    /// How single calls were timed, in a run that does that.
    #[serde(flatten)]
    pub timing: Option<Timing>,
    /// In plan order, unless they were sorted.
    pub rows: Vec<TableRow>,
}

/// An allocator in it.
#[derive(Clone, Debug, Serialize)]
pub struct TableRow {
    /// Its name.
    pub allocator: String,
    /// Its tier, as the run recorded it.
    pub tier: String,
    /// What it is in the comparison.
    pub role: Role,
    /// How it failed, if it did: then it has no cells.
    pub failed: Option<Failed>,
    /// What is known of it, in the order of the metrics.
    pub cells: Vec<TableCell>,
    /// Metrics without a value here, and why.
    pub why_not: BTreeMap<String, String>,
    /// What stands behind the values of some metrics, in words: names of what was counted.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub details: BTreeMap<String, String>,
    /// How the memory of its processes was sampled, in a run that does that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<Sampling>,
    /// The timed calls of its processes, in a run that times single calls.
    #[serde(flatten)]
    pub calls: Option<TimedCalls>,
    /// The limits that were tried, in a run that looks for the smallest one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<TriedLimit>,
}

/// A limit that was tried, and how each process under it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TriedLimit {
    /// The limit.
    pub bytes: u64,
    /// Of timed processes: the limit in per cent of the smallest one that does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub percent: Option<u32>,
    /// The outcomes' words.
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

    /// Whether the search took it for one that does; `None` if the search has not decided that yet.
    pub fn does(&self) -> Option<bool> {
        let failed = self.outcomes.len() - self.ok();
        does(self.ok() as u32, failed as u32)
    }
}

impl Table {
    pub(super) fn new(run: &RunFile, case: &Case, rows: Vec<TableRow>) -> Table {
        Table {
            workload: case.workload.clone(),
            threads: case.threads,
            work: work_of(case),
            oversubscribed: case.oversubscribed,
            factor: case.factor,
            baseline: case.baseline(&run.plan.baseline).to_owned(),
            caution: case.caution.clone(),
            timing: None,
            rows,
        }
    }

    /// Rows with the least of a metric first, and those without it last.
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
            cells: Vec::new(),
            why_not: BTreeMap::new(),
            details: BTreeMap::new(),
            sampling: None,
            calls: None,
            limits: Vec::new(),
        }
    }

    /// Whether some process of it has ended `ok`.
    pub fn has_run(&self) -> bool {
        !(self.cells.is_empty() && self.why_not.is_empty())
    }

    /// The value of a metric that has no labels.
    pub fn cell(&self, key: &str) -> Option<&TableCell> {
        self.cells.iter().find(|cell| cell.metric.key == key)
    }

    /// The median of such a metric.
    pub fn median(&self, key: &str) -> Option<f64> {
        Some(self.cell(key)?.spread.median)
    }

    /// The value of a metric of the timed calls of a function.
    pub fn of_function(&self, function: &str, key: &str) -> Option<&TableCell> {
        self.cells
            .iter()
            .find(|cell| cell.label == function && cell.metric.key == key)
    }

    /// The same in nanoseconds, which are whole there.
    pub fn call_ns(&self, function: &str, key: &str) -> Option<u64> {
        let cell = self.of_function(function, key);
        cell.map(|cell| cell.spread.median as u64)
    }

    /// A row of timed processes.
    pub(super) fn timed(
        run: &RunFile,
        case: &Case,
        allocator: &AllocatorInfo,
        state: State,
    ) -> TableRow {
        let (numbers, failed) = match state {
            State::Measured(numbers) => (Some(numbers), None),
            State::Failed(failed) => (None, Some(failed)),
            State::Missing { .. } => (None, None),
        };
        let mut row = TableRow::new(run, case, allocator, failed);
        if let Some(numbers) = numbers {
            let over = numbers
                .factor
                .zip(case.factor)
                .map(|(over, factor)| TableCell {
                    metric: metric::named(factor.metric()),
                    label: String::new(),
                    spread: over.blocks,
                    n: over.ratio.pairs as u64,
                    ratio: Some(over.ratio),
                    verdict: over.verdict,
                });
            row.cells.push(numbers.time);
            row.cells.extend(numbers.cells);
            row.cells.extend(over);
        }
        row
    }
}
