//! The leader of a run against one other, block by block, and whether that tells them apart.

use super::candidate::Candidate;
use super::ratio::Ratio;
use super::stats::{BlocksMore, Finding, Judgement, Rule, Tested, judge_tested, mean, paired};
use crate::plan::pairs;
use serde::Serialize;

/// The leader against one other.
#[derive(Clone, Debug, Serialize)]
pub struct PairwiseTest {
    /// The other.
    pub against: String,
    /// Whether the other is the run's baseline.
    pub baseline: bool,
    /// Leader over other; `None` where no block has both in every case.
    pub ratio: Option<Ratio>,
    /// Two-sided p, adjusted (Holm) for all contests if the leader wins them all, else for all pairs of allocators.
    pub corrected_p: Option<f64>,
    /// Why the two cannot be told apart; `None` where they can.
    pub doubt: Option<Doubt>,
    /// About so many more blocks would remove a doubt that is chance.
    pub blocks_more: Option<u32>,
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

impl PairwiseTest {
    /// In how many blocks both have a value in every case.
    pub fn blocks(&self) -> usize {
        self.ratio.map_or(0, |ratio| ratio.pairs)
    }
}

/// The leader against each of the others. A winner has to win every contest, so that one family of them is enough: simulated, one of equals
/// is named in less than 1 % of runs. Where it does not win all, to name those that it cannot be told from says that it can be told from
/// the rest; but it was chosen among all by the same blocks, so that all pairs are one family then.
pub(super) fn all(
    leader: &Candidate,
    others: &[Candidate],
    baseline: &str,
    needed: u32,
    alpha: f64,
) -> Vec<PairwiseTest> {
    let logs_beside = |other: &Candidate| -> Vec<f64> {
        leader.logs[0].keys().filter_map(|block| block_mean(leader, other, *block)).collect()
    };
    let judged = |family: usize| {
        let rule = Rule::new(family, needed as usize, alpha);
        // Contests of others are not looked at: they count as contests that show nothing.
        let mut tested: Vec<Option<Tested>> =
            others.iter().map(|other| paired(&logs_beside(other), rule.threshold)).collect();
        tested.resize(family, None);
        judge_tested(&tested, &rule)
    };
    let mut judgements = judged(others.len());
    if judgements.iter().any(|judgement| doubt(judgement.as_ref(), needed as usize).is_some()) {
        judgements = judged(pairs(others.len() + 1));
    }
    let test = |(other, judgement): (&Candidate, Option<Judgement>)| PairwiseTest {
        against: other.name.clone(),
        baseline: other.name == baseline,
        ratio: judgement.map(|judgement| Ratio::of_shift(judgement.shift)),
        corrected_p: judgement.map(|judgement| judgement.adjusted_p),
        doubt: doubt(judgement.as_ref(), needed as usize),
        blocks_more: judgement.and_then(|judgement| match judgement.blocks_more? {
            BlocksMore::About(blocks) => Some(blocks),
            BlocksMore::TooMany => None,
        }),
    };
    others.iter().zip(judgements).map(test).collect()
}

/// An estimate that contradicts the ranking says that the order may be chance, however small p is.
fn doubt(judgement: Option<&Judgement>, needed: usize) -> Option<Doubt> {
    let Some(judgement) = judgement.filter(|judgement| judgement.shift.n >= needed) else {
        return Some(Doubt::FewBlocks);
    };
    match judgement.finding {
        Finding::Lower => None,
        Finding::Same | Finding::Small => Some(Doubt::Small),
        Finding::Higher | Finding::Unclear => Some(Doubt::Chance),
    }
}

/// The mean over cases of ln(leader / other) in one block; `None` unless both ran in every case.
fn block_mean(leader: &Candidate, other: &Candidate, block: u32) -> Option<f64> {
    let logs: Option<Vec<f64>> = leader
        .logs
        .iter()
        .zip(&other.logs)
        .map(|(ours, theirs)| Some(ours.get(&block)? - theirs.get(&block)?))
        .collect();
    mean(&logs?)
}
