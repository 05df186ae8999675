//! Which one? The fastest allocator of a run, if the blocks carry that claim. Must never turn "cannot be told apart" into "same".
//!
//! Raw times are never averaged across workloads: the leader has the smallest geometric mean of ratios, and each contest takes,
//! block by block, the mean over cases of log ratios. A winner has to win every contest, corrected for their number.

use super::Case;
use super::contest::Contest;
use super::entrant::{Entrant, rank};
use super::group::Group;
use super::memory::MemoryRatio;
use super::row::is_floor;
use crate::plan::blocks_needed;
use crate::store::RunFile;
use serde::Serialize;

/// What the run says.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Verdict {
    /// No allocator has numbers in every case.
    NothingOk,
    /// One allocator has: there is nothing to compare.
    OnlyOne {
        /// Its name.
        allocator: String,
    },
    /// The leader is told apart from all others.
    Fastest(Standing),
    /// It is not.
    Unclear(Standing),
}

/// The leader and its contests.
#[derive(Clone, Debug, Serialize)]
pub struct Standing {
    /// Smallest geometric mean of ratios.
    pub leader: String,
    /// All others, the fastest first.
    pub contests: Vec<Contest>,
    /// Cases that were compared.
    pub cases: usize,
    /// Blocks of the contest that has fewest.
    pub blocks: usize,
    /// Blocks that m comparisons (cases x allocators) need: max(10, 1 + log2(m / 0.05)), rounded up.
    pub blocks_needed: u32,
    /// The leader's memory over the baseline's; `None` where the leader is the baseline, or there is nothing to compare.
    pub memory: Option<MemoryRatio>,
}

/// An allocator without numbers in every case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its name.
    pub allocator: String,
    /// Cases in which some process did not end `ok`.
    pub failed: usize,
    /// Cases in which it has no sample yet, or none in the same blocks as the others.
    pub missing: usize,
}

impl Standing {
    /// The contest with the baseline; `None` where that is the leader or has no numbers in every case.
    pub fn against_baseline(&self) -> Option<&Contest> {
        self.contests.iter().find(|contest| contest.baseline)
    }

    /// Those that the leader cannot be told from.
    pub fn rivals(&self) -> impl Iterator<Item = &Contest> {
        self.contests.iter().filter(|contest| contest.doubt.is_some())
    }
}

/// Judges a run: `grid` holds the rows of each case, in the same order as `cases` and their rows.
pub(super) fn judge(run: &RunFile, cases: &[Case], grid: &[Vec<Group>]) -> (Verdict, Vec<LeftOut>) {
    // What only programs run says nothing about allocators.
    let of_allocators = run.plan.cases.iter().map(|case| case.is_for_allocators());
    let judged: Vec<(&Case, &Vec<Group>)> =
        cases.iter().zip(grid).zip(of_allocators).filter(|(_, judged)| *judged).map(|(pair, _)| pair).collect();
    let mut entrants = Vec::new();
    let mut left_out = Vec::new();
    for (place, allocator) in run.allocators.iter().enumerate() {
        if is_floor(allocator) {
            continue;
        }
        let groups: Vec<&Group> = judged.iter().map(|(_, groups)| &groups[place]).collect();
        let failed = groups.iter().filter(|group| group.failed.is_some()).count();
        let missing = groups.iter().filter(|group| group.processes.is_empty()).count() - failed;
        if failed + missing > 0 {
            left_out.push(LeftOut { allocator: allocator.name.clone(), failed, missing });
        } else {
            let numbers = judged.iter().map(|(case, _)| case.rows[place].numbers());
            let memory = numbers.map(|numbers| numbers.and_then(|numbers| numbers.memory)).collect();
            entrants.push(Entrant::new(&allocator.name, &groups, memory));
        }
    }
    if judged.is_empty() || entrants.is_empty() {
        return (Verdict::NothingOk, left_out);
    }
    let ranked = rank(&run.plan.baseline, entrants, &mut left_out);
    (settle(&run.plan.baseline, &ranked), left_out)
}

fn settle(baseline: &str, ranked: &[Entrant]) -> Verdict {
    let (leader, others) = match ranked {
        [] => return Verdict::NothingOk,
        [only] => {
            return Verdict::OnlyOne { allocator: only.name.clone() };
        }
        [leader, others @ ..] => (leader, others),
    };
    let cases = leader.logs.len();
    let blocks_needed = blocks_needed(cases * ranked.len());
    let contest = |other: &Entrant| Contest::new(leader, other, baseline, others.len(), blocks_needed);
    let contests: Vec<Contest> = others.iter().map(contest).collect();
    let base = others.iter().find(|other| other.name == baseline);
    let standing = Standing {
        leader: leader.name.clone(),
        cases,
        blocks: contests.iter().map(Contest::blocks).min().unwrap_or(0),
        blocks_needed,
        memory: base.and_then(|base| MemoryRatio::new(&leader.memory, &base.memory)),
        contests,
    };
    if standing.rivals().next().is_none() { Verdict::Fastest(standing) } else { Verdict::Unclear(standing) }
}
