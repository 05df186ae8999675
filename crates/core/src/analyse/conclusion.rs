//! The fastest allocator of a run, if the blocks support that claim. Must never turn "cannot be
//! told apart" into "same".
//!
//! Raw times are never averaged across workloads: the leader has the smallest geometric mean of
//! ratios, and each pairwise test takes, block by block, the mean over cases of log ratios. A
//! winner has to win every pairwise test, corrected for their number.

use super::candidate::{Candidate, LeftOut, rank};
use super::clock::Clock;
use super::group::Group;
use super::judged_case::JudgedCase;
use super::memory::MemoryRatio;
use super::pairwise::{self, PairwiseTest, block_means};
use super::ratio::Ratio;
use super::table::TableRow;
use crate::plan::Plan;
use crate::store::RunFile;
use heapmark_stats::{Finding, Judgement, judge_family};
use serde::Serialize;

/// The conclusion of a run.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Conclusion {
    /// The run timed single calls: none of its times shows how fast a program is.
    #[default]
    NotAsked,
    /// No allocator has numbers in every case.
    NothingOk,
    /// Only one allocator has numbers in every case: there is nothing to compare.
    OnlyOne {
        /// The allocator's name.
        allocator: String,
    },
    /// The leader differs from all others.
    Fastest(Ranking),
    /// The leader does not differ from all others.
    Unclear(Ranking),
    /// No allocator is called fastest, whatever the numbers are.
    Withheld(Withheld),
}

/// Why nothing is claimed.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "why", rename_all = "kebab-case")]
pub enum Withheld {
    /// The A/A copy of the baseline came out different from it, over all cases or in each of them.
    AaCopy {
        /// The copy's time over the baseline's.
        ratio: Ratio,
        /// The clock that decides.
        by: Clock,
    },
    /// No allocator can change the times of any case: they are recorded ones, or a fixed time.
    Paced,
}

/// The leader and its pairwise tests.
#[derive(Clone, Debug, Serialize)]
pub struct Ranking {
    /// The candidate with the smallest geometric mean of ratios.
    pub leader: String,
    /// The clock by which the candidates were compared.
    pub by: Clock,
    /// The tests of all others, the fastest first.
    pub tests: Vec<PairwiseTest>,
    /// The number of cases that were compared.
    pub cases: usize,
    /// The number of blocks in the pairwise test that has the fewest.
    pub blocks: usize,
    /// The leader's memory over the baseline's; `None` if the leader is the baseline, or there is
    /// nothing to compare.
    pub memory: Option<MemoryRatio>,
}

impl Ranking {
    /// The pairwise test with the baseline; `None` if the baseline is the leader or lacks numbers
    /// in some case.
    pub fn against_baseline(&self) -> Option<&PairwiseTest> {
        self.tests.iter().find(|test| test.baseline)
    }

    /// The candidates that do not differ from the leader.
    pub fn rivals(&self) -> impl Iterator<Item = &PairwiseTest> {
        self.tests.iter().filter(|test| test.doubt.is_some())
    }
}

/// Judges cases of a run.
pub(super) fn judge(run: &RunFile, judged: &[JudgedCase]) -> (Conclusion, Vec<LeftOut>) {
    // A case that only programs ran gives no information about allocators.
    let mut tables = judged.to_vec();
    tables.retain(|judged| judged.table.case.is_for_allocators());
    let any = !tables.is_empty();
    tables.retain(|table| !table.case.paced);
    if any && tables.is_empty() {
        return (Conclusion::Withheld(Withheld::Paced), Vec::new());
    }
    // If the copy's wall time differs in each case, nothing is claimed by any clock.
    let in_each = tables.iter().all(|table| table.case.aa_copy_differs);
    if in_each {
        tables
            .iter_mut()
            .filter(|table| table.clock == Clock::Cpu)
            .for_each(|table| *table = table.by(Clock::Wall));
    }
    let clock = tables.first().map_or(Clock::Wall, |table| table.clock);
    // A case in which the A/A copy differs yields no verdict of its own; if the copy differs over all
    // cases, or in each, there is none at all.
    let aa_copy = run.plan.aa_copy.as_ref();
    let copy = aa_copy.and_then(|aa_copy| copy(aa_copy, &tables, &run.plan));
    let differs = |copy: &Judgement| {
        matches!(
            copy.finding,
            Finding::Lower | Finding::Higher | Finding::Small
        )
    };
    let copy = copy.filter(|copy| in_each || differs(copy));
    let mut candidates = Vec::new();
    let mut left_out = Vec::new();
    for name in &run.plan.allocators {
        let rows: Vec<_> = tables.iter().filter_map(|table| table.row(name)).collect();
        let ranks = |row: &TableRow| row.role.ranks();
        if !rows.iter().all(|(row, _)| ranks(row)) {
            continue;
        }
        let count = |is: fn(&Group) -> bool| rows.iter().filter(|(_, group)| is(group)).count();
        let failed = count(|group| group.failed.is_some());
        // Failed rows are included: they have no processes.
        let empty = count(|group| group.processes.is_empty());
        if empty > 0 {
            left_out.push(LeftOut {
                allocator: name.clone(),
                failed,
                missing: empty - failed,
                of: tables.len(),
            });
        } else {
            let memory = rows.iter().map(|(row, _)| row.memory());
            candidates.push(Candidate::new(name, &tables, memory.collect()));
        }
    }
    let conclusion = match copy {
        Some(copy) if !candidates.is_empty() => Conclusion::Withheld(Withheld::AaCopy {
            ratio: Ratio::of_shift(copy.shift),
            by: clock,
        }),
        _ if tables.is_empty() || candidates.is_empty() => Conclusion::NothingOk,
        _ => {
            let ranked = rank(&run.plan.baseline, candidates, &mut left_out);
            settle(&run.plan.baseline, &ranked, run.plan.alpha(), clock)
        }
    };
    (conclusion, left_out)
}

impl<'a> JudgedCase<'a> {
    /// The allocator's row, and the processes behind it.
    pub(super) fn row(&self, name: &str) -> Option<(&'a TableRow, &'a Group<'a>)> {
        self.case
            .rows
            .iter()
            .zip(&self.table.groups)
            .find(|(row, _)| row.allocator == name)
    }
}

/// Compares the A/A copy with the baseline, over all cases.
fn copy(aa_copy: &str, tables: &[JudgedCase], plan: &Plan) -> Option<Judgement> {
    let [copy, baseline] =
        [aa_copy, plan.baseline.as_str()].map(|name| Candidate::new(name, tables, Vec::new()));
    judge_family(&[block_means(&copy, &baseline)], plan.alpha()).remove(0)
}

fn settle(baseline: &str, ranked: &[Candidate], alpha: f64, by: Clock) -> Conclusion {
    let (leader, others) = match ranked {
        [] => return Conclusion::NothingOk,
        [only] => {
            return Conclusion::OnlyOne {
                allocator: only.name.clone(),
            };
        }
        [leader, others @ ..] => (leader, others),
    };
    let cases = leader.logs.len();
    let tests = pairwise::all(leader, others, baseline, alpha);
    let base = others.iter().find(|other| other.name == baseline);
    let ranking = Ranking {
        leader: leader.name.clone(),
        by,
        cases,
        blocks: tests.iter().map(PairwiseTest::blocks).min().unwrap_or(0),
        memory: base.and_then(|base| MemoryRatio::new(&leader.memory, &base.memory)),
        tests,
    };
    if ranking.rivals().next().is_none() {
        Conclusion::Fastest(ranking)
    } else {
        Conclusion::Unclear(ranking)
    }
}
