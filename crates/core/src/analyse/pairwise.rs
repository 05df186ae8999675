//! Compares the leader of a run with one other candidate, block by block, and decides whether they
//! differ.

use super::candidate::Candidate;
use super::ratio::Ratio;
use super::verdict::blocks_more;
use crate::plan::{Plan, pairs};
use heapmark_stats::{Finding, Judgement, Rule, Tested, judge_tested, mean, mean_shift, paired};
use serde::Serialize;
use std::collections::BTreeMap;

/// The test of the leader against one other candidate.
#[derive(Clone, Debug, Serialize)]
pub struct PairwiseTest {
    /// The other candidate's name.
    pub against: String,
    /// Whether the other candidate is the run's baseline.
    pub baseline: bool,
    /// The leader's value over the other's; `None` if no block has values of both in every case.
    pub ratio: Option<Ratio>,
    /// Two-sided p, adjusted (Holm) for all pairwise tests of the leader if it wins them all, else
    /// for all pairs of allocators.
    pub corrected_p: Option<f64>,
    /// Why the two cannot be told apart; `None` if they can.
    pub doubt: Option<Doubt>,
    /// About how many more blocks would remove a doubt that is due to chance.
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
    /// The number of blocks in which both candidates have a value in every case.
    pub fn blocks(&self) -> usize {
        self.ratio.map_or(0, |ratio| ratio.pairs)
    }
}

/// Tests the leader against each of the others. A winner has to win every pairwise test, so it is
/// enough that its tests are one family: in simulations, one of several equals is named in less
/// than 1 % of runs. If the leader does not win all tests, the list of those that it cannot be told
/// apart from implies that it differs from the rest. The leader was chosen among all by the same
/// blocks, so all pairs are then one family.
pub(super) fn all(
    leader: &Candidate,
    others: &[Candidate],
    plan: &Plan,
    equals_apart: f64,
) -> Vec<PairwiseTest> {
    let (baseline, alpha) = (&plan.baseline, plan.alpha());
    let doubt = |judgement: Option<&Judgement>| doubt(judgement, equals_apart);
    let judged = |family: usize| {
        let rule = Rule {
            // What is printed beside means over several cases is the interval of the mean (`may_be_equal`).
            with_interval: leader.logs.len() == 1,
            ..Rule::new(family, alpha)
        };
        // Pairwise tests among the others are not run: they count as tests that show nothing.
        let mut tested: Vec<Option<Tested>> = others
            .iter()
            .map(|other| paired(&block_means(leader, other), &rule))
            .collect();
        tested.resize(family, None);
        judge_tested(&tested, &rule)
    };
    // The answer states this interval.
    let over_cases = || mean_shift(&leader.logs, plan.seed)?.interval;
    let may_be_equal = leader.logs.len() > 1 && over_cases().is_some_and(|mean| mean.high >= 0.0);
    let mut judgements = judged(others.len());
    if may_be_equal
        || judgements
            .iter()
            .any(|judgement| doubt(judgement.as_ref()).is_some())
    {
        judgements = judged(pairs(others.len() + 1));
    }
    others
        .iter()
        .zip(judgements)
        .map(|(other, judgement)| PairwiseTest {
            against: other.name.clone(),
            baseline: other.name == *baseline,
            ratio: judgement.map(|judgement| Ratio::of_shift(judgement.shift)),
            corrected_p: judgement.map(|judgement| judgement.adjusted_p),
            doubt: doubt(judgement.as_ref())
                .or_else(|| (may_be_equal && other.name == *baseline).then_some(Doubt::Chance)),
            blocks_more: judgement.as_ref().and_then(blocks_more),
        })
        .collect()
}

/// An estimate that contradicts the ranking means that the order may be chance, however small p is; so does one that is
/// no larger than the difference between equals.
fn doubt(judgement: Option<&Judgement>, equals_apart: f64) -> Option<Doubt> {
    let Some(judgement) = judgement else {
        return Some(Doubt::FewBlocks);
    };
    match judgement.finding {
        Finding::Lower if Ratio::of_shift(judgement.shift).is_beyond(equals_apart) => None,
        Finding::Same | Finding::Small => Some(Doubt::Small),
        Finding::TooFew => Some(Doubt::FewBlocks),
        Finding::Lower | Finding::Higher | Finding::Unclear => Some(Doubt::Chance),
    }
}

/// The mean over cases of ln(one / other), for each block in which both ran in every case.
pub(super) fn block_means(one: &Candidate, other: &Candidate) -> Vec<f64> {
    let blocks = one.logs.first().into_iter().flat_map(BTreeMap::keys);
    blocks
        .filter_map(|block| {
            let logs = one
                .logs
                .iter()
                .zip(&other.logs)
                .map(|(ours, theirs)| Some(ours.get(block)? - theirs.get(block)?));
            mean(&logs.collect::<Option<Vec<f64>>>()?)
        })
        .collect()
}
