//! Which one? The fastest allocator of a run, if the blocks carry that claim. Must never turn "cannot be told apart" into "same".
//!
//! Raw times are never averaged across workloads: the leader has the smallest geometric mean of ratios, and each contest takes,
//! block by block, the mean over cases of log ratios.

use super::Case;
use super::group::Group;
use super::memory::Memory;
use super::ratio::Ratio;
use super::row::is_floor;
use super::stats::signed_rank;
use crate::store::RunFile;
use serde::Serialize;
use std::collections::BTreeMap;

/// Corrected p below this is evidence.
pub const ALPHA: f64 = 0.05;
/// A difference up to this factor is too small to choose by.
pub const THRESHOLD: f64 = 1.01;
/// No verdict on fewer blocks, however few comparisons there are.
pub const LEAST_BLOCKS: u32 = 10;

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
    /// Blocks that this many comparisons need: max(10, 1 + log2(m / 0.05)), rounded up.
    pub blocks_needed: u32,
    /// The leader's memory over the baseline's, geometric mean over cases; `None` where the leader is the baseline or either
    /// has no memory in some case.
    pub memory_ratio: Option<f64>,
}

/// The leader against one other.
#[derive(Clone, Debug, Serialize)]
pub struct Contest {
    /// The other.
    pub against: String,
    /// Whether the other is the run's baseline.
    pub baseline: bool,
    /// Leader over other; `None` where no block has both in every case.
    pub ratio: Option<Ratio>,
    /// Two-sided p, multiplied by the number of contests (Bonferroni), at most 1.
    pub corrected_p: Option<f64>,
    /// Why the two cannot be told apart; `None` where they can.
    pub doubt: Option<Doubt>,
}

/// Why no winner is claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Doubt {
    /// Too few blocks for any claim.
    FewBlocks,
    /// The difference may be chance.
    Chance,
    /// The difference is real and at most 1 %.
    Small,
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
        self.contests
            .iter()
            .filter(|contest| contest.doubt.is_some())
    }
}

/// An allocator with numbers in every case.
struct Entrant {
    name: String,
    /// Per case: ln ns/op by block.
    logs: Vec<BTreeMap<u32, f64>>,
    memory: Vec<Option<Memory>>,
}

/// Judges a run: `grid` holds the rows of each case, in the same order as `cases` and their rows.
pub(super) fn judge(run: &RunFile, cases: &[Case], grid: &[Vec<Group>]) -> (Verdict, Vec<LeftOut>) {
    let mut entrants = Vec::new();
    let mut left_out = Vec::new();
    for (place, allocator) in run
        .allocators
        .iter()
        .enumerate()
        .filter(|(_, allocator)| !is_floor(allocator))
    {
        let groups = || grid.iter().map(|groups| &groups[place]);
        let failed = groups().filter(|group| group.failed.is_some()).count();
        let missing = groups().filter(|group| group.processes.is_empty()).count() - failed;
        if failed + missing > 0 {
            left_out.push(LeftOut {
                allocator: allocator.name.clone(),
                failed,
                missing,
            });
            continue;
        }
        entrants.push(Entrant {
            name: allocator.name.clone(),
            logs: groups().map(log_ns_per_op).collect(),
            memory: cases
                .iter()
                .map(|case| {
                    case.rows[place]
                        .numbers()
                        .and_then(|numbers| numbers.memory)
                })
                .collect(),
        });
    }
    if run.cases.is_empty() || entrants.is_empty() {
        return (Verdict::NothingOk, left_out);
    }
    let ranked = rank(&run.baseline, entrants, &mut left_out);
    (settle(run, &ranked), left_out)
}

fn log_ns_per_op(group: &Group) -> BTreeMap<u32, f64> {
    group
        .processes
        .iter()
        .map(|(block, (_, process))| (*block, process.ns_per_op.ln()))
        .collect()
}

/// The fastest first, by geometric mean of the ratios to the baseline, or to the first entrant where the baseline is none.
fn rank(baseline: &str, entrants: Vec<Entrant>, left_out: &mut Vec<LeftOut>) -> Vec<Entrant> {
    let reference = entrants
        .iter()
        .position(|entrant| entrant.name == baseline)
        .unwrap_or(0);
    let ratios: Vec<Vec<Option<f64>>> = entrants
        .iter()
        .map(|entrant| ratios(entrant, &entrants[reference]))
        .collect();
    let mut ranked = Vec::new();
    for (entrant, ratios) in entrants.into_iter().zip(ratios) {
        match geometric_mean(ratios.iter().copied()) {
            Some(score) => ranked.push((score, entrant)),
            None => {
                let missing = ratios.iter().filter(|ratio| ratio.is_none()).count();
                left_out.push(LeftOut {
                    allocator: entrant.name,
                    failed: 0,
                    missing,
                });
            }
        }
    }
    ranked.sort_by(|(a, _), (b, _)| a.total_cmp(b));
    ranked.into_iter().map(|(_, entrant)| entrant).collect()
}

/// Per case; `None` where no block has both.
fn ratios(entrant: &Entrant, reference: &Entrant) -> Vec<Option<f64>> {
    let of_case = |(ours, theirs): (&BTreeMap<u32, f64>, &BTreeMap<u32, f64>)| {
        let logs: Vec<f64> = ours
            .iter()
            .filter_map(|(block, log)| Some(log - theirs.get(block)?))
            .collect();
        Some(Ratio::from_logs(&logs)?.ratio)
    };
    entrant
        .logs
        .iter()
        .zip(&reference.logs)
        .map(of_case)
        .collect()
}

fn settle(run: &RunFile, ranked: &[Entrant]) -> Verdict {
    let (leader, others) = match ranked {
        [] => return Verdict::NothingOk,
        [only] => {
            return Verdict::OnlyOne {
                allocator: only.name.clone(),
            };
        }
        [leader, others @ ..] => (leader, others),
    };
    let cases = leader.logs.len();
    let comparisons = (cases * ranked.len()) as f64;
    let blocks_needed = LEAST_BLOCKS.max((1.0 + (comparisons / ALPHA).log2()).ceil() as u32);
    let contests: Vec<Contest> = others
        .iter()
        .map(|other| {
            Contest::new(
                leader,
                other,
                other.name == run.baseline,
                others.len(),
                blocks_needed,
            )
        })
        .collect();
    let standing = Standing {
        leader: leader.name.clone(),
        cases,
        blocks: contests
            .iter()
            .map(|contest| contest.ratio.map_or(0, |ratio| ratio.pairs))
            .min()
            .unwrap_or(0),
        blocks_needed,
        memory_ratio: others
            .iter()
            .find(|other| other.name == run.baseline)
            .and_then(|base| memory(leader, base)),
        contests,
    };
    if standing.rivals().next().is_none() {
        Verdict::Fastest(standing)
    } else {
        Verdict::Unclear(standing)
    }
}

impl Contest {
    fn new(
        leader: &Entrant,
        other: &Entrant,
        baseline: bool,
        contests: usize,
        blocks_needed: u32,
    ) -> Contest {
        let logs: Vec<f64> = leader.logs[0]
            .keys()
            .filter_map(|block| block_mean(leader, other, *block))
            .collect();
        let ratio = Ratio::from_logs(&logs);
        let corrected_p = signed_rank(&logs).map(|test| (test.p * contests as f64).min(1.0));
        let doubt = match (ratio, corrected_p) {
            (Some(ratio), Some(p)) if ratio.pairs >= blocks_needed as usize => {
                // An estimate above 1 contradicts the ranking, so the order may be chance however small p is.
                if p >= ALPHA || ratio.ratio >= 1.0 {
                    Some(Doubt::Chance)
                } else {
                    (ratio.ratio >= 1.0 / THRESHOLD).then_some(Doubt::Small)
                }
            }
            _ => Some(Doubt::FewBlocks),
        };
        Contest {
            against: other.name.clone(),
            baseline,
            ratio,
            corrected_p,
            doubt,
        }
    }
}

/// The mean over cases of ln(leader / other) in one block; `None` unless both ran in every case.
fn block_mean(leader: &Entrant, other: &Entrant, block: u32) -> Option<f64> {
    let logs: Option<Vec<f64>> = leader
        .logs
        .iter()
        .zip(&other.logs)
        .map(|(ours, theirs)| Some(ours.get(&block)? - theirs.get(&block)?))
        .collect();
    mean(&logs?)
}

fn memory(leader: &Entrant, baseline: &Entrant) -> Option<f64> {
    geometric_mean(
        leader
            .memory
            .iter()
            .zip(&baseline.memory)
            .map(|(ours, theirs)| ours.as_ref()?.over(theirs.as_ref()?)),
    )
}

/// `None` where any of the ratios is missing.
fn geometric_mean(ratios: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let logs: Option<Vec<f64>> = ratios.map(|ratio| ratio.map(f64::ln)).collect();
    mean(&logs?).map(f64::exp)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}
