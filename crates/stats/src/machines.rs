//! From the machines that were measured to the next one: a prediction interval.
//!
//! Mean and standard deviation of the machines' own estimates, and Student's t: nothing else.
//! Random-effects models of meta-analysis (Paule and Mandel's estimate of the variance between
//! machines with Hartung and Knapp's interval) estimate that variance as zero too often if machines
//! differ a little: with 5 or 10 of them they cover the truth in 84 to 92 % where they promise 95,
//! and with 3 they are so wide that they say nothing. The plain interval covers it in at least
//! 94.5 %, whatever lies between machines (`tests/machines.rs` simulates that). Its price is width.

use super::finding::{Finding, THRESHOLD};
use super::hodges_lehmann::Interval;
use super::mean::{mean, standard_deviation};
use super::normal::t_975;

/// With fewer machines nothing is claimed about another one: two give an interval of ± 15.6
/// standard deviations.
pub const LEAST_MACHINES: usize = 3;

/// What the estimates of several machines say together, in log units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machines {
    /// Their mean.
    pub estimate: f64,
    /// Their standard deviation.
    pub spread: f64,
    /// How many there are.
    pub machines: usize,
    /// The 95 % interval of the mean of all such machines.
    pub mean: Interval,
    /// The 95 % interval of what the next machine will have.
    pub next: Interval,
}

/// What may be said about a machine that was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Lower there as well, by more than the threshold.
    Lower,
    /// Higher there as well.
    Higher,
    /// Certainly lower on some of the measured machines, and certainly higher on others.
    DiffersByMachine,
    /// Lower on average, but perhaps not there.
    LowerOnAverage,
    /// Higher on average, but perhaps not there.
    HigherOnAverage,
    /// Within the threshold there as well.
    Same,
    /// Anything else.
    Unclear,
    /// Too few machines were measured.
    TooFewMachines,
}

/// The estimates of all machines together; `None` for fewer than two, and if one is not finite.
pub fn machines(estimates: &[f64]) -> Option<Machines> {
    let spread = standard_deviation(estimates)?;
    let estimate = mean(estimates)?;
    let around = |half_width: f64| Interval {
        low: estimate - half_width,
        high: estimate + half_width,
    };
    let machines = estimates.len();
    Some(Machines {
        estimate,
        spread,
        machines,
        mean: around(half_width(spread, machines, 1.0 / machines as f64)),
        next: around(half_width(spread, machines, 1.0 + 1.0 / machines as f64)),
    })
}

fn half_width(spread: f64, machines: usize, variance: f64) -> f64 {
    t_975(machines as f64 - 1.0) * spread * variance.sqrt()
}

impl Machines {
    /// What may be said; `findings` are those of the machines, adjusted for how many there are.
    ///
    /// That machines contradict each other comes before their average: it would mislead the users of
    /// some of them.
    pub fn transfer(&self, findings: &[Finding]) -> Transfer {
        let found = |finding| findings.contains(&finding);
        if self.machines < LEAST_MACHINES {
            Transfer::TooFewMachines
        } else if found(Finding::Lower) && found(Finding::Higher) {
            Transfer::DiffersByMachine
        } else if self.next.high < -THRESHOLD {
            Transfer::Lower
        } else if self.next.low > THRESHOLD {
            Transfer::Higher
        } else if -THRESHOLD <= self.next.low && self.next.high <= THRESHOLD {
            Transfer::Same
        } else if self.mean.high < -THRESHOLD {
            Transfer::LowerOnAverage
        } else if self.mean.low > THRESHOLD {
            Transfer::HigherOnAverage
        } else {
            Transfer::Unclear
        }
    }

    /// The half-width of the interval for the next machine if there were twice as many machines,
    /// and if each had twice as many blocks; `errors` are the standard errors of the estimates.
    pub fn if_doubled(&self, errors: &[f64]) -> Option<Doubled> {
        let within = mean(&errors.iter().map(|error| error * error).collect::<Vec<_>>())?;
        let between = (self.spread * self.spread - within).max(0.0);
        let variance = |machines: usize| 1.0 + 1.0 / machines as f64;
        let twice = 2 * self.machines;
        // By chance machines may lie closer together than their errors promise.
        let steadier = (between + within / 2.0).sqrt().min(self.spread);
        Some(Doubled {
            machines: half_width(self.spread, twice, variance(twice)),
            blocks: half_width(steadier, self.machines, variance(self.machines)),
        })
    }
}

/// Half-widths of the interval for the next machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubled {
    /// With twice as many machines.
    pub machines: f64,
    /// With twice as many blocks on each.
    pub blocks: f64,
}
