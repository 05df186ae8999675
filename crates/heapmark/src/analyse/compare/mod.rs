//! Compares row by row: an allocator with the baseline of its run, or with itself in an earlier
//! run. Two runs share no block, so every ratio includes what the machine did differently between
//! them. If both runs measured the same baseline, each row is divided by it first, and only the
//! change beyond the baseline's counts.

mod between;
mod counterpart;
mod ranges;
#[cfg(test)]
mod tests;

pub use between::between;

use super::group::Group;
use super::ratio::Ratio;
use super::role::Role;
use super::verdict::{self, JudgedTable, Verdict};
use super::{counting, grid, judged};
use crate::metric::{self, Metric, Process, Value};
use crate::plan::Case;
use crate::store::{Record, RunFile};
use heapmark_stats::blocks_needed;
use heapmark_stats::{Rule, Tested, judge_tested, paired};
use serde::Serialize;

/// One of the runs that are compared.
pub struct Side<'a> {
    /// Its head.
    pub head: &'a RunFile,
    /// Its records.
    pub records: &'a [Record],
}

/// All rows that could be compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// In plan order.
    pub rows: Vec<Compared>,
    /// Rows of one side that cannot be compared with the other side, and why.
    pub left_out: Vec<LeftAlone>,
    /// Between two runs only: the facts that differ.
    pub differences: Vec<Difference>,
    /// The allocator that rows were divided by first.
    pub anchor: Option<String>,
}

/// A row and what it is compared with.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// Allocator name.
    pub allocator: String,
    /// Its value over that of the other side, as measured.
    pub ratio: Ratio,
    /// Between two runs: the same with the anchor's value in each run as the unit.
    pub beside_anchor: Option<Ratio>,
    /// The verdict; `None` for the anchor itself, which shows how much the runs differ.
    pub verdict: Option<Verdict>,
}

/// A row without a counterpart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftAlone {
    /// `larson@2/jemalloc`.
    pub row: String,
    /// Why.
    pub why: String,
}

/// A fact that two runs disagree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Its name.
    pub what: String,
    /// In the earlier run.
    pub old: String,
    /// In the later one.
    pub new: String,
}

/// Why the times of a paced row carry no information.
const PACED: &str = "it was replayed at the recorded times, which no allocator changes";

/// Compares every candidate with the baseline of its run.
pub fn within(side: &Side, by: &Metric, threshold: f64) -> Comparison {
    let Some(value) = of_process(by) else {
        return ranges::within(side, by, threshold);
    };
    let grid = grid(side.head, &counting(side.records));
    let cases = side.head.plan.cases.iter();
    let tables: Vec<JudgedTable> = cases
        .clone()
        .zip(&grid)
        .map(|(case, groups)| judged(side.head, case, groups))
        .collect();
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for ((case, table), calls) in cases
        .zip(&tables)
        .zip(verdict::verdicts(&tables, side.head.plan.alpha()))
    {
        for group in table.of(Role::Candidate) {
            if table.paced {
                left_out.push(LeftAlone::new(case, group, PACED));
                continue;
            }
            match paired(&table.logs(group, value), threshold.ln_1p()) {
                Some(tested) => rows.push((
                    Compared::new(case, group, &tested, calls.withheld()),
                    Some(tested),
                )),
                None => left_out.push(LeftAlone::new(
                    case,
                    group,
                    "it has no numbers beside the baseline's",
                )),
            }
        }
    }
    let rows = judge(rows, threshold, side.head.plan.alpha());
    Comparison {
        rows,
        left_out,
        differences: Vec::new(),
        anchor: None,
    }
}

/// Fills in the verdict of each tested row; rows without a test get none.
fn judge(rows: Vec<(Compared, Option<Tested>)>, threshold: f64, alpha: f64) -> Vec<Compared> {
    let family: Vec<Option<Tested>> = rows
        .iter()
        .map(|(_, tested)| *tested)
        .filter(Option::is_some)
        .collect();
    let least = blocks_needed(family.len(), alpha) as usize;
    let rule = Rule {
        threshold: threshold.ln_1p(),
        ..Rule::new(family.len(), least, alpha)
    };
    let mut judged = judge_tested(&family, &rule).into_iter().flatten();
    let call = |(mut row, tested): (Compared, Option<Tested>)| {
        let call = tested
            .and_then(|_| judged.next())
            .map(|judgement| Verdict::of(&judgement));
        row.verdict = call.map(|call| row.verdict.unwrap_or(call));
        row
    };
    rows.into_iter().map(call).collect()
}

/// How a timed process shows a metric; `None` if it is not one of timed processes.
fn of_process(by: &Metric) -> Option<fn(&Process) -> Option<f64>> {
    match by.of {
        Value::Process(of) => Some(of),
        Value::Sample(_) | Value::Memory(_) | Value::PerOperation | Value::Row => None,
    }
}

/// Why a run cannot be compared by a metric, if so.
pub fn refusal(side: &Side, by: &Metric) -> Option<String> {
    let measured = metric::of_mode(side.head.plan.mode);
    let usable: Vec<&str> = measured
        .iter()
        .filter(|one| one.judged != metric::Judged::No)
        .map(|one| one.key)
        .collect();
    let is_there = usable.contains(&by.key);
    let hint = || match &usable[..] {
        [] => "nothing in it is judged".to_owned(),
        keys => format!("it can be compared by {}", keys.join(", ")),
    };
    (!is_there).then(|| {
        format!(
            "the run of {} did not measure {}: {}",
            side.head.started,
            by.key,
            hint()
        )
    })
}

impl Compared {
    /// Without a verdict yet, unless it is withheld.
    fn new(case: &Case, group: &Group, tested: &Tested, withheld: Option<Verdict>) -> Compared {
        Compared {
            workload: case.workload.clone(),
            threads: case.threads,
            allocator: group.allocator.name.clone(),
            ratio: Ratio::of_shift(tested.shift),
            beside_anchor: None,
            verdict: withheld,
        }
    }
}

impl LeftAlone {
    fn new(case: &Case, group: &Group, why: &str) -> LeftAlone {
        LeftAlone {
            row: format!("{}/{}", case.label(), group.allocator.name),
            why: why.to_owned(),
        }
    }
}
