//! Tables of a run that counted instructions instead of timing. No interval: the same binary on the same input counts the same,
//! as far as addresses do not decide; several blocks show how far.

use super::failure::Failed;
use super::group::Filed;
use super::row::Role;
use super::spread::Spread;
use crate::execute::callgrind::FIGURE;
use crate::plan::Case;
use crate::store::{AllocatorInfo, Purpose, RunFile};
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
    /// The row that the others are compared with.
    pub baseline: String,
    /// The fewest instructions first.
    pub rows: Vec<CountRow>,
}

/// An allocator in it.
#[derive(Clone, Debug, Serialize)]
pub struct CountRow {
    /// Its name.
    pub allocator: String,
    /// What it is in the comparison.
    pub role: Role,
    /// Instructions per operation over its blocks; `None` where there are none.
    pub instructions: Option<Spread>,
    /// Its median over the baseline's.
    pub ratio: Option<f64>,
    /// How it failed, if it did.
    pub failed: Option<Failed>,
}

/// One table per case of the plan.
pub(super) fn cases(run: &RunFile, records: &Filed) -> Vec<CountCase> {
    run.plan.cases.iter().map(|case| of_case(run, case, records)).collect()
}

fn of_case(run: &RunFile, case: &Case, records: &Filed) -> CountCase {
    let baseline = case.baseline(&run.plan.baseline);
    let mut rows: Vec<CountRow> = run.entrants(case).map(|info| row(case, info, baseline, records)).collect();
    let base = rows.iter().find(|row| row.role == Role::Baseline).and_then(|row| row.instructions);
    for row in rows.iter_mut().filter(|row| row.role != Role::Floor) {
        row.ratio = row.instructions.zip(base).map(|(own, base)| own.median / base.median);
    }
    let order = |row: &CountRow| row.instructions.map_or(f64::INFINITY, |instructions| instructions.median);
    rows.sort_by(|a, b| order(a).total_cmp(&order(b)));
    CountCase {
        workload: case.workload.clone(),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        baseline: baseline.to_string(),
        rows,
    }
}

fn row(case: &Case, allocator: &AllocatorInfo, baseline: &str, records: &Filed) -> CountRow {
    let own = records.of_row(case, allocator, Purpose::Count);
    let failed = Failed::among(&own);
    let counted = own.iter().filter(|record| record.purpose == Purpose::Count);
    let counts: Vec<f64> = counted.filter_map(|one| one.measurement.as_ref()?.figures.get(FIGURE).copied()).collect();
    CountRow {
        allocator: allocator.name.clone(),
        role: Role::of(allocator, baseline),
        instructions: Spread::of(&counts).filter(|_| failed.is_none()),
        ratio: None,
        failed,
    }
}
