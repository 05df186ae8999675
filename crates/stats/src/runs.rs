//! Two runs differ by more than their blocks show: by the state of the machine, which all blocks of a run share.

use super::finding::{Rule, Tested};
use super::hodges_lehmann::{Interval, Shift};
use super::normal::{Z_975, upper_tail};

/// Standard deviation of ln ratio from run to run, beyond what the blocks of a run show. Measured with six runs of `quick` 20
/// minutes apart on a virtual machine with 2 CPUs whose host is shared with others (docs/METHODOLOGY.md); smaller if
/// nothing else shares the machine.
pub const BETWEEN_RUNS: f64 = 0.035;

impl Shift {
    /// Returns the shift with an interval that counts scatter of this standard deviation, too, which all of its values share.
    pub fn with_scatter(self, deviation: f64) -> Shift {
        let Shift { estimate, .. } = self;
        let reach = |end: f64| (end - estimate).hypot(Z_975 * deviation);
        let interval = self.interval.map(|interval| Interval {
            low: estimate - reach(interval.low),
            high: estimate + reach(interval.high),
        });
        Shift { interval, ..self }
    }
}

impl Tested {
    /// Returns what a comparison shows if its values share scatter of this standard deviation, which they cannot show.
    pub fn with_scatter(self, deviation: f64, rule: &Rule) -> Tested {
        let shift = self.shift.with_scatter(deviation);
        let Some(interval) = shift.interval.filter(|_| deviation > 0.0) else {
            return self;
        };
        let error = interval.half_width() / Z_975;
        let p = |distance: f64| 2.0 * upper_tail(distance / error);
        let distance = shift.estimate.abs();
        let same_p = match rule.threshold - distance {
            left if left > 0.0 => self.same_p.max(p(left)),
            _ => self.same_p,
        };
        Tested {
            shift,
            p: self.p.max(p(distance)),
            same_p,
            // They do not change how runs differ.
            blocks_help: false,
        }
    }
}
