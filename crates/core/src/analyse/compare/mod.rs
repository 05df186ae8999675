//! Compares row by row: an allocator with the baseline of its run, or with itself in an earlier
//! run. Two runs share no block, so every ratio also includes how the machine differed between
//! them. If both runs measured the same baseline, each row is divided by it first, and only the
//! change beyond the baseline's counts.

mod between;
pub mod counterpart;
mod ranges;
#[cfg(test)]
mod tests;

pub use between::between;
use counterpart::has_its_name;
pub use counterpart::{counterpart, have_other_turns, library, parameters, variables, work};

use super::group::CaseGroups;
use super::ratio::Ratio;
use super::role::Role;
use super::verdict::{self, Verdict};
use super::{counting, grid};
use crate::execute::user_command::VALUE_COST;
use crate::metric::{self, Metric, Unit, Value};
use crate::plan::Case;
use crate::store::{Record, RunFile};
use heapmark_stats::{Rule, Tested, judge_tested, paired};
use serde::Serialize;

/// A run that is compared.
pub struct Side<'a> {
    /// The run's head.
    pub head: &'a RunFile,
    /// The run's records.
    pub records: &'a [Record],
}

impl Side<'_> {
    /// The part of the run that measured this metric; the first part if none did.
    fn part(&self, by: &Metric) -> RunFile {
        let mut parts = self.head.parts();
        let place = parts
            .iter()
            .position(|run| {
                metric::of_mode(run.plan.mode)
                    .iter()
                    .any(|one| one.key == by.key)
            })
            .unwrap_or(0);
        parts.swap_remove(place)
    }
}

/// All rows that could be compared.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Comparison {
    /// The compared rows, in plan order.
    pub rows: Vec<Compared>,
    /// Rows of one side that cannot be compared with the other side, and why.
    pub left_out: Vec<LeftAlone>,
    /// Between two runs only: the facts that differ.
    pub differences: Vec<Difference>,
    /// The anchor: the allocator that rows were divided by first.
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
    /// The row's value over that of the other side, as measured.
    pub ratio: Ratio,
    /// Between two runs: the ratio with the anchor's value in each run as the unit.
    pub beside_anchor: Option<Ratio>,
    /// The verdict; `None` for the anchor itself, which shows how much the runs differ.
    pub verdict: Option<Verdict>,
}

/// A row without a counterpart.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftAlone {
    /// The row's label, such as `larson@2/jemalloc`.
    pub row: String,
    /// Why the row has no counterpart.
    pub why: String,
}

impl LeftAlone {
    /// Whether the row was to be measured, and has no numbers.
    pub fn has_no_numbers(&self) -> bool {
        [NO_BASELINE, NO_NUMBERS, NO_ANCHOR].contains(&self.why.as_str())
    }

    /// Whether no allocator changes what would be compared.
    pub fn is_fixed(&self) -> bool {
        [PACED, FIXED_TIME].contains(&self.why.as_str())
    }
}

/// A fact that two runs disagree on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The name of the fact.
    pub what: String,
    /// The fact in the earlier run.
    pub old: String,
    /// The fact in the later run.
    pub new: String,
}

/// Why the times of a paced row carry no information.
pub const PACED: &str = "it was replayed at the recorded times, which no allocator changes";

/// Why the times of a command that runs for a fixed time carry no information.
pub const FIXED_TIME: &str = "it runs for a fixed time, which no allocator changes";

/// Returns why a case cannot be compared by this metric, if the metric is a time that no allocator changes; the
/// memory of such a case can be compared.
pub fn no_times(table: &CaseGroups, by: &Metric) -> Option<&'static str> {
    match by.unit {
        Unit::Ns if table.case.is_paced() => Some(PACED),
        Unit::Ns if table.is_paced() => Some(FIXED_TIME),
        _ => None,
    }
}

/// Why a row cannot be compared with the baseline of its run.
const NO_BASELINE: &str = "it has no numbers beside the baseline's";
/// Why a row cannot be compared with an earlier run.
const NO_EARLIER: &str = "the old run does not have it";
/// Why a row of the earlier run cannot be compared.
const NO_LATER: &str = "the new run does not have it";
/// Why a row of two runs cannot be compared.
const NO_NUMBERS: &str = "one of the runs has no numbers for it";
/// Why a row of two runs with a common baseline cannot be compared.
const NO_ANCHOR: &str = "in one of the runs the baseline has no numbers beside it";

/// Compares every candidate with the baseline of its run.
pub fn within(side: &Side, by: &Metric, threshold: f64) -> Comparison {
    let side = &Side {
        head: &side.part(by),
        records: side.records,
    };
    let Value::Process(value) = by.of else {
        return ranges::within(side, by, threshold);
    };
    let plan = &side.head.plan;
    let tables = grid(side.head, &counting(side.records));
    let verdicts = verdict::verdicts(&tables, plan.alpha());
    let mut candidates = Vec::new();
    for (table, calls) in tables.iter().zip(&verdicts) {
        let rows = table.of(Role::Candidate);
        let apart = calls.equals_apart(table, by);
        candidates.extend(rows.map(|row| (table, row, apart)));
    }
    // As in the run's own table, rows that cannot be compared belong to the family, too.
    let rule = Rule {
        threshold: threshold.ln_1p(),
        ..Rule::new(candidates.len(), plan.alpha())
    };
    let tested = candidates
        .iter()
        .map(|(table, row, _)| paired(&table.logs_by(row, by, value), &rule));
    let judged = judge_tested(&tested.collect::<Vec<_>>(), &rule);
    let mut comparison = Comparison::default();
    for ((table, row, apart), judgement) in candidates.into_iter().zip(judged) {
        let name = &row.allocator.name;
        let compared = match no_times(table, by) {
            Some(why) => Err(why),
            None => judgement.ok_or(NO_BASELINE),
        };
        let compared = compared.map(|judgement| Compared {
            verdict: Some(Verdict::beside_equals(&judgement, apart)),
            ..Compared::new(table.case, name, Ratio::of_shift(judgement.shift))
        });
        comparison.add(table.case, name, compared);
    }
    comparison
}

/// Runs once the size of the test's family is known.
type RunTest = Box<dyn Fn(&Rule) -> Option<Tested>>;

/// The test of one row.
struct Test {
    run: RunTest,
    /// How far apart equals came out, as a log ratio.
    equals_apart: f64,
}

impl Comparison {
    /// Adds a row, or the reason why it is left out.
    fn add(&mut self, case: &Case, allocator: &str, row: Result<Compared, &str>) {
        match row {
            Ok(row) => self.rows.push(row),
            Err(why) => self.left_out.push(LeftAlone {
                row: format!("{}/{allocator}", case.label()),
                why: why.to_owned(),
            }),
        }
    }

    /// Adds the rows that only the old run has.
    fn add_missing(&mut self, old: &RunFile, new: &RunFile) {
        for case in &old.plan.cases {
            let mut later = new.plan.cases.iter();
            let later = later.find(|later| has_its_name(later, case));
            for row in old.rows_of(case) {
                let is_there = |later| new.rows_of(later).any(|other| other.name == row.name);
                if !Role::of(row, "").is_companion() && !later.is_some_and(is_there) {
                    self.add(case, &row.name, Err(NO_LATER));
                }
            }
        }
    }

    /// Fills in the verdicts, from a test for each row; rows without a test get none.
    fn judge(&mut self, tests: &[Option<Test>], threshold: f64, alpha: f64) {
        let rule = Rule {
            threshold: threshold.ln_1p(),
            ..Rule::new(tests.iter().flatten().count(), alpha)
        };
        let tested = tests.iter().flatten().map(|test| (test.run)(&rule));
        let family: Vec<Option<Tested>> = tested.collect();
        let mut judgements = judge_tested(&family, &rule).into_iter().flatten();
        for (row, tested) in self.rows.iter_mut().zip(tests) {
            row.verdict = tested.as_ref().and_then(|test| {
                let judgement = judgements.next()?;
                Some(Verdict::beside_equals(&judgement, test.equals_apart))
            });
        }
    }
}

/// Why a run cannot be compared by a metric; `None` if it can.
pub fn refusal(side: &Side, by: &Metric) -> Option<String> {
    let mut measured: Vec<&Metric> = side
        .head
        .parts()
        .iter()
        .flat_map(|part| metric::of_part(&part.plan))
        .collect();
    // Only a few workloads report figures of their own.
    let is_there = |one: &Metric| {
        let of = |record: &Record| record.measurement.as_ref()?.figures.get(one.key).copied();
        let may_lack = matches!(one.of, Value::Figure) || one.key == VALUE_COST;
        !may_lack || side.records.iter().any(|record| of(record).is_some())
    };
    measured.retain(|one| one.judged != metric::Judged::No && is_there(one));
    let usable: Vec<&str> = measured.iter().map(|one| one.key).collect();
    let hint = match &usable[..] {
        [] => "nothing in it is judged".to_owned(),
        keys => format!("it can be compared by {}", keys.join(", ")),
    };
    (!usable.contains(&by.key)).then(|| {
        format!(
            "the run of {} did not measure {}: {hint}",
            side.head.started, by.key
        )
    })
}

impl Compared {
    /// A comparison without a verdict yet.
    fn new(case: &Case, allocator: &str, ratio: Ratio) -> Compared {
        Compared {
            workload: case.workload.clone(),
            threads: case.threads,
            allocator: allocator.to_owned(),
            ratio,
            beside_anchor: None,
            verdict: None,
        }
    }
}
