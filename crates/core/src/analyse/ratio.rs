//! The ratio of two allocators' values in the same blocks. Values of different blocks are never
//! paired.

use super::group::{Group, of_blocks};
use crate::metric::Process;
use heapmark_stats::{Interval, Shift, shift};
use serde::Serialize;
use std::cmp::Ordering;

/// The candidate's value over the other's, estimated from log ratios of the same block. Below 1:
/// the candidate takes less.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The Hodges-Lehmann estimate of the ratio.
    pub ratio: f64,
    /// 95 % interval, low and high; `None` with fewer than 6 pairs.
    pub interval: Option<(f64, f64)>,
    /// The number of blocks in which both sides have a value.
    pub pairs: usize,
}

/// Converts an interval of log ratios to one of ratios.
pub(super) fn ends(logs: Interval) -> (f64, f64) {
    (logs.low.exp(), logs.high.exp())
}

impl Ratio {
    /// A ratio from log ratios, one per block. `None` if there are none.
    pub fn from_logs(logs: &[f64]) -> Option<Ratio> {
        shift(logs).map(Ratio::of_shift)
    }

    /// A ratio from an estimate in log units.
    pub fn of_shift(shift: Shift) -> Ratio {
        Ratio {
            ratio: shift.estimate.exp(),
            interval: shift.interval.map(ends),
            pairs: shift.n,
        }
    }

    /// The side of 1 on which the whole interval lies, if it does.
    pub fn side(&self) -> Option<Ordering> {
        match self.interval? {
            (_, high) if high < 1.0 => Some(Ordering::Less),
            (low, _) if low > 1.0 => Some(Ordering::Greater),
            _ => None,
        }
    }

    /// How far from 1 the ratio may be, on either side: the larger log of the interval's ends.
    pub(super) fn farthest(&self) -> f64 {
        let (low, high) = self.interval.unwrap_or((self.ratio, self.ratio));
        low.ln().abs().max(high.ln().abs())
    }

    /// Whether this ratio is certainly further from 1 than that of equals, as a log ratio; any is if equals are not
    /// apart (0).
    pub(super) fn is_beyond(&self, equals_apart: f64) -> bool {
        let certainly =
            |(low, high): (f64, f64)| low.ln() > equals_apart || high.ln() < -equals_apart;
        equals_apart == 0.0 || self.interval.is_some_and(certainly)
    }

    /// The baseline over itself: 1 by definition, no interval.
    pub fn baseline(pairs: usize) -> Ratio {
        Ratio {
            ratio: 1.0,
            interval: None,
            pairs,
        }
    }

    /// The ratio of two rows, pairing the processes that ran one after the other; one value for each block.
    pub(super) fn of(
        candidate: &Group,
        other: &Group,
        value: impl Fn(&Process) -> Option<f64>,
    ) -> Option<Ratio> {
        Ratio::from_logs(&of_blocks(candidate.log_ratios(other, value)))
    }
}
