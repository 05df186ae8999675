//! The leader of a run against one other, block by block, and whether that tells them apart.

use super::entrant::Entrant;
use super::ratio::Ratio;
use super::stats::{mean, signed_rank};
use crate::plan::ALPHA;
use serde::Serialize;

/// A difference up to this factor is too small to choose by.
pub const THRESHOLD: f64 = 1.01;

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

impl Contest {
    pub(super) fn new(leader: &Entrant, other: &Entrant, baseline: &str, contests: usize, needed: u32) -> Contest {
        let logs: Vec<f64> = leader.logs[0].keys().filter_map(|block| block_mean(leader, other, *block)).collect();
        let ratio = Ratio::from_logs(&logs);
        let corrected_p = signed_rank(&logs).map(|test| (test.p * contests as f64).min(1.0));
        let doubt = match (ratio, corrected_p) {
            (Some(ratio), Some(p)) if ratio.pairs >= needed as usize => doubt(ratio.ratio, p),
            _ => Some(Doubt::FewBlocks),
        };
        let baseline = other.name == baseline;
        Contest { against: other.name.clone(), baseline, ratio, corrected_p, doubt }
    }

    /// In how many blocks both have a value in every case.
    pub fn blocks(&self) -> usize {
        self.ratio.map_or(0, |ratio| ratio.pairs)
    }
}

/// An estimate of 1 or more contradicts the ranking: then the order may be chance however small p is.
fn doubt(ratio: f64, p: f64) -> Option<Doubt> {
    if p >= ALPHA || ratio >= 1.0 {
        Some(Doubt::Chance)
    } else if ratio >= 1.0 / THRESHOLD {
        Some(Doubt::Small)
    } else {
        None
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
