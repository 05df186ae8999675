//! Tables of a run that counted instead of timing. No interval: counts of instructions and of
//! system calls hardly vary between processes, and several blocks show by how much they do.

use super::failure::Failed;
use super::group::RecordsByRow;
use super::row::Role;
use super::spread::Spread;
use crate::execute::per_operation;
use crate::plan::{Case, Counter};
use crate::store::{AllocatorInfo, Purpose, Record, RunFile};
use serde::Serialize;

/// One table.
#[derive(Clone, Debug, Serialize)]
pub struct CountCase {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// More threads than usable CPUs.
    pub oversubscribed: bool,
    /// What counted.
    pub counter: Counter,
    /// The row that the others are compared with.
    pub baseline: String,
    /// A caution that the table must not be read without.
    pub caution: Option<String>,
    /// The lowest count of the first event first.
    pub rows: Vec<CountRow>,
}

/// An allocator in it.
#[derive(Clone, Debug, Serialize)]
pub struct CountRow {
    /// Its name.
    pub allocator: String,
    /// What it is in the comparison.
    pub role: Role,
    /// One per event of the counter, in its order; empty if the row failed or nothing ran.
    pub counts: Vec<Count>,
    /// How it failed, if it did.
    pub failed: Option<Failed>,
}

/// How often an event occurred.
#[derive(Clone, Debug, Serialize)]
pub struct Count {
    /// The event.
    pub event: String,
    /// Per operation, over its blocks; `None` if the machine cannot count it.
    pub per_operation: Option<Spread>,
    /// Its median over the baseline's.
    pub ratio: Option<f64>,
    /// Why it was not counted.
    pub why_not: Option<String>,
}

impl CountRow {
    /// The first event that was counted.
    pub fn first(&self) -> Option<&Count> {
        self.counts.iter().find(|count| count.per_operation.is_some())
    }
}

impl Count {
    fn median(&self) -> Option<f64> {
        self.per_operation.map(|spread| spread.median)
    }
}

/// One table per case of the plan.
pub(super) fn cases(run: &RunFile, counter: Counter, records: &RecordsByRow) -> Vec<CountCase> {
    run.plan.cases.iter().map(|case| of_case(run, counter, case, records)).collect()
}

fn of_case(run: &RunFile, counter: Counter, case: &Case, records: &RecordsByRow) -> CountCase {
    let baseline = case.baseline(&run.plan.baseline);
    let mut rows: Vec<CountRow> = run.rows_of(case).map(|info| row(case, counter, info, baseline, records)).collect();
    let base = rows.iter().find(|row| row.role == Role::Baseline).map(|row| row.counts.clone()).unwrap_or_default();
    for row in rows.iter_mut().filter(|row| row.role != Role::Floor) {
        for (own, base) in row.counts.iter_mut().zip(&base) {
            own.ratio = own.median().zip(base.median().filter(|base| *base > 0.0)).map(|(own, base)| own / base);
        }
    }
    let order = |row: &CountRow| row.first().and_then(Count::median).unwrap_or(f64::INFINITY);
    rows.sort_by(|a, b| order(a).total_cmp(&order(b)));
    CountCase {
        workload: case.workload.clone(),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        counter,
        baseline: baseline.to_string(),
        caution: case.caution.clone(),
        rows,
    }
}

fn row(case: &Case, counter: Counter, allocator: &AllocatorInfo, baseline: &str, records: &RecordsByRow) -> CountRow {
    let own = records.of_row(case, allocator, Purpose::Count);
    let failed = Failed::among(&own);
    let counted: Vec<_> = own.iter().filter(|record| record.purpose == Purpose::Count).copied().collect();
    let events = counter.events();
    let events = events.iter().filter(|_| failed.is_none() && !counted.is_empty());
    CountRow {
        allocator: allocator.name.clone(),
        role: Role::of(allocator, baseline),
        counts: events.map(|event| count(event, &counted)).collect(),
        failed,
    }
}

fn count(event: &str, records: &[&Record]) -> Count {
    let figure = per_operation(event);
    let told = || records.iter().filter_map(|record| record.measurement.as_ref());
    let counts: Vec<f64> = told().filter_map(|measurement| measurement.figures.get(&figure).copied()).collect();
    Count {
        event: event.to_owned(),
        per_operation: Spread::of(&counts),
        ratio: None,
        why_not: told().find_map(|measurement| measurement.notes.get(event).cloned()),
    }
}
