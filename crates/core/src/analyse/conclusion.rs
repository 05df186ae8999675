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
use heapmark_stats::{Judgement, judge_family, mean};
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
    /// The A/A copy of the baseline came out different from it, over all cases or in each of them, and the leader is not
    /// certainly further than that from any other.
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
    let clock = tables.first().map_or(Clock::Wall, |table| table.clock);
    let copy = CopyApart::new(&run.plan, &tables);
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
    if tables.is_empty() || candidates.is_empty() {
        return (Conclusion::NothingOk, left_out);
    }
    let baseline = &run.plan.baseline;
    let ranked = rank(baseline, candidates, &mut left_out);
    let conclusion = settle(&run.plan, &ranked, clock, copy);
    (conclusion, left_out)
}

/// An A/A copy that differs from the baseline, over all cases or in each of them.
struct CopyApart {
    /// The copy's time over the baseline's.
    ratio: Ratio,
    /// The clock that shows it.
    by: Clock,
    /// How far from the baseline the copy may be, as a log ratio.
    most: f64,
}

impl CopyApart {
    fn new(plan: &Plan, tables: &[JudgedCase]) -> Option<CopyApart> {
        let by = tables.first()?.clock;
        let copy = copy(plan.aa_copy.as_ref()?, tables, plan)?;
        let ratio = Ratio::of_shift(copy.shift);
        let of_cases = tables.iter().map(|table| table.case);
        if !of_cases.clone().all(|case| case.aa_copy_differs) {
            let most = ratio.farthest();
            let differs = copy.finding.is_difference();
            return differs.then_some(CopyApart { ratio, by, most });
        }
        // By wall time, whatever clock decides over all cases. In opposite directions, these differences may cancel each
        // other out.
        let apart = of_cases.filter_map(|case| Some(case.aa_copy?.farthest()));
        let most = mean(&apart.collect::<Vec<_>>())?.max(ratio.farthest());
        if tables.iter().all(|table| table.clock != Clock::Cpu) {
            return Some(CopyApart { ratio, by, most });
        }
        let by_wall = tables.iter().map(|table| match table.clock {
            Clock::Cpu => table.by(Clock::Wall),
            Clock::Wall | Clock::Own => *table,
        });
        let of_wall = CopyApart::new(plan, &by_wall.collect::<Vec<_>>())?;
        Some(CopyApart {
            most: most.max(of_wall.most),
            ..of_wall
        })
    }
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

fn settle(plan: &Plan, ranked: &[Candidate], by: Clock, copy: Option<CopyApart>) -> Conclusion {
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
    let equals_apart = copy.as_ref().map_or(0.0, |copy| copy.most);
    let tests = pairwise::all(leader, others, plan, equals_apart);
    let base = others.iter().find(|other| other.name == plan.baseline);
    let ranking = Ranking {
        leader: leader.name.clone(),
        by,
        cases,
        blocks: tests.iter().map(PairwiseTest::blocks).min().unwrap_or(0),
        memory: base.and_then(|base| MemoryRatio::new(&leader.memory, &base.memory)),
        tests,
    };
    let rivals = ranking.rivals().count();
    match copy {
        _ if rivals == 0 => Conclusion::Fastest(ranking),
        Some(CopyApart { ratio, by, .. }) if rivals == others.len() => {
            Conclusion::Withheld(Withheld::AaCopy { ratio, by })
        }
        _ => Conclusion::Unclear(ranking),
    }
}
