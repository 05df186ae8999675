//! Row by row: an allocator beside the baseline of its run, or beside itself in an earlier run. Two runs share no block, so
//! what the machine did differently between them is in every ratio; where both measured the same baseline, each row is held
//! against it first, and only what moved beside it counts.

mod between;
#[cfg(test)]
mod tests;

pub use between::between;

use super::group::Group;
use super::process::Process;
use super::ratio::Ratio;
use super::row::Role;
use super::stats::{Rule, Tested, judge_tested, paired};
use super::verdict::{self, Judged, Verdict};
use super::{counting, grid, judged};
use crate::plan::{Case, blocks_needed};
use crate::store::{Record, RunFile};
use serde::Serialize;

/// By which clock rows are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Wall time.
    Wall,
    /// CPU time.
    Cpu,
}

/// A run to be compared.
pub struct Side<'a> {
    /// Its head.
    pub head: &'a RunFile,
    /// What it measured.
    pub records: &'a [Record],
}

/// All rows that could be compared.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// In plan order.
    pub rows: Vec<Compared>,
    /// Rows of one side that the other cannot be held against, and why.
    pub left_out: Vec<LeftAlone>,
    /// Between two runs only: what is not the same in both.
    pub differences: Vec<Difference>,
    /// The allocator that rows were held against first.
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
    /// Its time over that of the other side, as measured.
    pub time: Ratio,
    /// Between two runs: the same with the anchor's time in each run as the unit.
    pub beside_anchor: Option<Ratio>,
    /// What may be said of it; `None` of the anchor itself, which says how much the runs differ.
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
    /// What.
    pub what: String,
    /// In the earlier run.
    pub old: String,
    /// In the later one.
    pub new: String,
}

/// Why the times of such a row say nothing.
const PACED: &str = "it was replayed at the recorded times, so its time is nobody's merit";

/// Every candidate beside the baseline of its run.
pub fn within(side: &Side, by: By, threshold: f64) -> Comparison {
    let grid = grid(side.head, &counting(side.records));
    let cases = side.head.plan.cases.iter();
    let tables: Vec<Judged> = cases.clone().zip(&grid).map(|(case, groups)| judged(side.head, case, groups)).collect();
    let (mut rows, mut left_out) = (Vec::new(), Vec::new());
    for ((case, table), calls) in cases.zip(&tables).zip(verdict::verdicts(&tables, side.head.plan.alpha())) {
        for group in table.of(Role::Candidate) {
            if table.paced {
                left_out.push(LeftAlone::new(case, group, PACED));
                continue;
            }
            match paired(&table.logs(group, by.value()), threshold.ln_1p()) {
                Some(tested) => rows.push((Compared::new(case, group, &tested, calls.withheld()), Some(tested))),
                None => left_out.push(LeftAlone::new(case, group, "it has no numbers beside the baseline's")),
            }
        }
    }
    let rows = judge(rows, threshold, side.head.plan.alpha());
    Comparison { rows, left_out, differences: Vec::new(), anchor: None }
}

/// Says of each row what may be said; of one that was not tested nothing.
fn judge(rows: Vec<(Compared, Option<Tested>)>, threshold: f64, alpha: f64) -> Vec<Compared> {
    let family: Vec<Option<Tested>> = rows.iter().map(|(_, tested)| *tested).filter(Option::is_some).collect();
    let least = blocks_needed(family.len(), alpha) as usize;
    let rule = Rule { threshold: threshold.ln_1p(), ..Rule::new(family.len(), least, alpha) };
    let mut judged = judge_tested(&family, &rule).into_iter().flatten();
    let call = |(mut row, tested): (Compared, Option<Tested>)| {
        let call = tested.and_then(|_| judged.next()).map(|judgement| Verdict::of(&judgement));
        row.verdict = call.map(|call| row.verdict.unwrap_or(call));
        row
    };
    rows.into_iter().map(call).collect()
}

impl By {
    fn value(self) -> fn(&Process) -> Option<f64> {
        match self {
            By::Wall => |process| Some(process.ns_per_op),
            By::Cpu => |process| process.cpu_ns_per_op,
        }
    }
}

impl Compared {
    /// Not judged yet, unless nothing may be claimed of it.
    fn new(case: &Case, group: &Group, tested: &Tested, withheld: Option<Verdict>) -> Compared {
        Compared {
            workload: case.workload.clone(),
            threads: case.threads,
            allocator: group.allocator.name.clone(),
            time: Ratio::of_shift(tested.shift),
            beside_anchor: None,
            verdict: withheld,
        }
    }
}

impl LeftAlone {
    fn new(case: &Case, group: &Group, why: &str) -> LeftAlone {
        LeftAlone { row: format!("{}/{}", case.label(), group.allocator.name), why: why.to_owned() }
    }
}
