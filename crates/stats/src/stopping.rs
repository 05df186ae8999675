//! When there are enough blocks. The rule does not look at whether there is a difference, only at widths of intervals;
//! and at estimates only if these are far from equality, ten times the precision and more.
//!
//! Stopping as soon as a difference is significant turns every fourth comparison of equals into a
//! "difference", because every look is another chance to be wrong. The width of an interval hardly
//! depends on where it lies.

use super::hodges_lehmann::Shift;

/// When a run is to end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stopping {
    /// The number of blocks before precision may end the run; fewer could not pass the correction
    /// for many comparisons.
    pub least: usize,
    /// The number of blocks at which the run ends.
    pub most: usize,
    /// The half-width, in log units, that every 95 % interval has to reach.
    pub precision: f64,
    /// The largest half-width that is enough if a ratio is far from 1: then a tenth of the log
    /// ratio is enough, up to this limit.
    pub far_precision: f64,
}

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Measure another block.
    GoOn,
    /// End the run.
    Stop(Stop),
}

/// Why a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Every interval is narrow enough.
    Precision,
    /// The requested maximum of blocks is reached.
    MaxBlocks,
    /// The time budget is used up.
    Budget,
}

impl Stopping {
    /// Returns whether `blocks` complete blocks are enough. `shifts` has one entry per comparison,
    /// `None` if there is none yet; a comparison that can never have one, because it crashed, has
    /// to be left out.
    ///
    /// The limits end a run at any time, since the user set them; precision only after the least
    /// number of blocks.
    pub fn after(&self, blocks: usize, shifts: &[Option<Shift>], budget_used_up: bool) -> Next {
        let is_precise =
            |shift: &Option<Shift>| shift.as_ref().is_some_and(|shift| self.is_precise(shift));
        if blocks >= self.least && shifts.iter().all(is_precise) {
            Next::Stop(Stop::Precision)
        } else if blocks >= self.most {
            Next::Stop(Stop::MaxBlocks)
        } else if budget_used_up {
            Next::Stop(Stop::Budget)
        } else {
            Next::GoOn
        }
    }

    fn is_precise(&self, shift: &Shift) -> bool {
        let far = (shift.estimate.abs() / 10.0).min(self.far_precision);
        half_width(shift).is_some_and(|width| width <= far.max(self.precision))
    }
}

/// Returns half the width of the shift's interval; `None` without an interval.
pub fn half_width(shift: &Shift) -> Option<f64> {
    Some(shift.interval?.half_width())
}
