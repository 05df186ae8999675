//! The finding of one comparison of a family. Must never turn "cannot be told" into "same".
//!
//! Differences are log ratios, so 1 % up and 1 % down are the same distance. Which direction is
//! better is not decided here.

use super::alpha::{LEAST_BLOCKS, blocks_for_ranks};
use super::hodges_lehmann::{Shift, shift};
use super::holm::holm;
use super::normal::{Z_975, upper_point};
use super::student::student;
use super::two_samples::{rank_sum, shift_between, welch};
use super::wilcoxon::signed_rank;
use std::iter::zip;

/// ln 1.01: a difference up to 1 % is too small to matter.
pub const THRESHOLD: f64 = 0.009_950_330_853_168_083;

/// Counts of blocks above this are all equally out of reach.
pub const MOST_BLOCKS_MORE: u32 = 1000;

/// The 80 % point of the standard normal distribution: a count of further blocks that is right on
/// average is too small half the time.
const Z_80: f64 = 0.841_621_233_572_914_3;

/// The limits that every comparison of a family has to meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// The number of comparisons that were planned together.
    pub family: usize,
    /// A difference up to this is too small to matter, in log units.
    pub threshold: f64,
    /// The accepted chance of a false alarm, over the whole family.
    pub alpha: f64,
    /// Whether a difference is claimed only if the interval excludes zero, too: the interval is of ranks, and Student's
    /// t, which decides with few blocks, may find a difference where the interval contains zero.
    pub with_interval: bool,
}

/// The finding of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Lower, and by more than the threshold.
    Lower,
    /// Higher, and by more than the threshold.
    Higher,
    /// Certainly within the threshold, whether or not there is a difference.
    Same,
    /// There is a difference, but perhaps none that matters: the estimate lies within the
    /// threshold.
    Small,
    /// Too few blocks for any claim, whatever they show.
    TooFew,
    /// Neither a difference nor equality is certain.
    Unclear,
}

impl Finding {
    /// Whether there is a difference, of whatever size.
    pub fn is_difference(self) -> bool {
        matches!(self, Finding::Lower | Finding::Higher | Finding::Small)
    }
}

/// A finding with the values that it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Judgement {
    /// The finding.
    pub finding: Finding,
    /// Estimate and interval. The interval is not adjusted for the family.
    pub shift: Shift,
    /// The two-sided p, adjusted for the family.
    pub adjusted_p: f64,
    /// For an unclear finding, or too few blocks: how many more would make it clear.
    pub blocks_more: Option<BlocksMore>,
}

/// An estimate of how many more blocks are needed, as good as the shift it is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlocksMore {
    /// About this many more blocks.
    About(u32),
    /// Certainly more blocks than is reasonable: [`MOST_BLOCKS_MORE`].
    TooMany,
}

impl Rule {
    /// Makes the rule of a family with the usual threshold.
    pub fn new(family: usize, alpha: f64) -> Rule {
        Rule {
            family,
            threshold: THRESHOLD,
            alpha,
            with_interval: true,
        }
    }

    /// Returns whether ranks of this many blocks could pass the correction for the family; otherwise Student's t
    /// decides.
    fn has_enough_for_ranks(&self, blocks: usize) -> bool {
        blocks >= blocks_for_ranks(self.family, self.alpha) as usize
    }
}

/// One comparison of a family, before the family is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tested {
    /// Estimate and interval.
    pub shift: Shift,
    /// The two-sided p: the chance of a shift this large if there is none.
    pub p: f64,
    /// The chance of a shift this small if the true one equals the threshold, on the side that is
    /// more likely; twice that chance, as in a two-sided test, so that it is below 5 % if the 95 %
    /// interval lies within the threshold.
    pub same_p: f64,
    /// Whether more blocks would narrow the interval as the root of their number.
    pub blocks_help: bool,
}

impl Tested {
    /// Makes two one-sided tests (Schuirmann 1987), of the differences moved by the threshold in
    /// either direction.
    fn new(
        shift: Shift,
        threshold: f64,
        p_if_moved: impl Fn(f64) -> Option<f64>,
    ) -> Option<Tested> {
        let inside = shift.estimate.abs() < threshold;
        let same_p = if inside {
            p_if_moved(threshold)?.max(p_if_moved(-threshold)?)
        } else {
            1.0
        };
        Some(Tested {
            shift,
            p: p_if_moved(0.0)?,
            same_p,
            blocks_help: true,
        })
    }
}

/// Tests a comparison of a family by its paired differences; `None` for no differences, and if one is not
/// finite.
pub fn paired(differences: &[f64], rule: &Rule) -> Option<Tested> {
    let by_ranks = rule.has_enough_for_ranks(differences.len());
    Tested::new(shift(differences)?, rule.threshold, |by| {
        let moved = moved(differences, by);
        if by_ranks {
            signed_rank(&moved)
        } else {
            student(&moved).or(Some(1.0))
        }
    })
}

/// Tests a comparison of a family by two samples that are not paired.
pub fn unpaired(a: &[f64], b: &[f64], rule: &Rule) -> Option<Tested> {
    let by_ranks = rule.has_enough_for_ranks(a.len().min(b.len()));
    Tested::new(shift_between(a, b)?, rule.threshold, |by| {
        let moved = moved(a, by);
        if by_ranks {
            rank_sum(&moved, b)
        } else {
            welch(&moved, b).or(Some(1.0))
        }
    })
}

fn moved(values: &[f64], by: f64) -> Vec<f64> {
    values.iter().map(|value| value + by).collect()
}

/// Judges all comparisons of a family, each given by its differences, at the usual threshold;
/// `None` for a comparison without any differences.
pub fn judge_family<D: AsRef<[f64]>>(family: &[D], alpha: f64) -> Vec<Option<Judgement>> {
    let rule = Rule::new(family.len(), alpha);
    let tested = family
        .iter()
        .map(|differences| paired(differences.as_ref(), &rule));
    judge_tested(&tested.collect::<Vec<_>>(), &rule)
}

/// Judges comparisons of any kind, as [`judge_family`] does. A comparison that cannot be tested
/// counts in the family as one that shows nothing.
///
/// "Different" and "same" are two families: each kind of claim is wrong in any comparison no more
/// often than alpha.
pub fn judge_tested(family: &[Option<Tested>], rule: &Rule) -> Vec<Option<Judgement>> {
    let adjusted = |p: fn(&Tested) -> f64| {
        let ps = family.iter().map(|tested| tested.as_ref().map_or(1.0, p));
        holm(&ps.collect::<Vec<f64>>()).expect("the tests give probabilities")
    };
    let ps = zip(
        adjusted(|tested| tested.p),
        adjusted(|tested| tested.same_p),
    );
    zip(family, ps)
        .map(|(tested, (adjusted_p, adjusted_same_p))| {
            let Tested {
                shift, blocks_help, ..
            } = *tested.as_ref()?;
            let finding = find(&shift, adjusted_p, adjusted_same_p, rule);
            let would_help = match finding {
                Finding::TooFew => true,
                Finding::Unclear => blocks_help,
                _ => false,
            };
            Some(Judgement {
                finding,
                shift,
                adjusted_p,
                blocks_more: would_help.then(|| blocks_more(&shift, rule)),
            })
        })
        .collect()
}

/// Returns the finding of a comparison. `Same` comes before `Small`: figures that repeat to the
/// last digit would otherwise never be the same.
fn find(shift: &Shift, adjusted_p: f64, adjusted_same_p: f64, rule: &Rule) -> Finding {
    let excludes_none = shift.interval.is_some_and(|i| i.low > 0.0 || i.high < 0.0);
    let significant = adjusted_p < rule.alpha && (excludes_none || !rule.with_interval);
    let inside = shift
        .interval
        .is_some_and(|i| -rule.threshold <= i.low && i.high <= rule.threshold);
    if shift.n < LEAST_BLOCKS as usize {
        Finding::TooFew
    } else if significant && shift.estimate < -rule.threshold {
        Finding::Lower
    } else if significant && shift.estimate > rule.threshold {
        Finding::Higher
    } else if inside && adjusted_same_p < rule.alpha {
        Finding::Same
    } else if significant {
        Finding::Small
    } else {
        Finding::Unclear
    }
}

/// Returns how many more blocks an unclear comparison would take if the estimate stayed the same.
///
/// The half-width h of n blocks shrinks with the root of their number (the sqrt law), so a distance
/// d that has to become z of its standard errors, h / 1.96, takes n * (z h / (1.96 d))^2 blocks in
/// all. z is the bound itself plus 0.84, which makes success four chances in five instead of one in
/// two.
/// - To be significant, d = |estimate|.
/// - To be the same, d = threshold - |estimate|. Only if the estimate lies within the threshold;
///   then the easier of the two counts.
///
/// The bound is that of the whole family, alpha / family: Holm's correction never needs more.
///
/// The count is as noisy as the estimate: it is an order of magnitude, not a promise.
fn blocks_more(shift: &Shift, rule: &Rule) -> BlocksMore {
    let n = shift.n as f64;
    let missing = (LEAST_BLOCKS as usize).saturating_sub(shift.n).max(1) as f64;
    let Some(interval) = shift.interval else {
        return counted(missing);
    };
    let error = interval.half_width() / Z_975;
    let bound = upper_point(rule.alpha / 2.0 / rule.family.max(1) as f64);
    let needed = |distance: f64| n * ((bound + Z_80) * error / distance).powi(2);
    let distance = shift.estimate.abs();
    let mut in_all = needed(distance);
    if distance < rule.threshold {
        in_all = in_all.min(needed(rule.threshold - distance));
    }
    // Without scatter and distance (0 / 0), only the least number of blocks is needed.
    counted((in_all - n).ceil().max(missing))
}

fn counted(more: f64) -> BlocksMore {
    if more <= f64::from(MOST_BLOCKS_MORE) {
        BlocksMore::About(more as u32)
    } else {
        BlocksMore::TooMany
    }
}
