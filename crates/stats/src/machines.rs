//! From the machines that were measured to the next one: a prediction interval.
//!
//! Uses the mean and standard deviation of the machines' own estimates, and Student's t.
//! Random-effects models of meta-analysis (Paule and Mandel's estimate of the variance between
//! machines with Hartung and Knapp's interval) estimate that variance as zero too often if machines
//! differ a little: with 5 or 10 of them they cover the truth in 84 to 92 % instead of the promised
//! 95, and with 3 they are so wide that they are useless. The plain interval covers it in at least
//! 94.5 % of normal scatter. Its price is width.
//!
//! Machines come in kinds, and a few machines may all be of one kind: then no interval can cover the
//! next one. `tests/machines.rs` simulates both, and how often the mean lies in its own interval.

use super::finding::{Finding, THRESHOLD};
use super::hodges_lehmann::Interval;
use super::mean::{mean, standard_deviation};
use super::normal::{t_975, t_point};

/// With fewer machines there is no interval for another one: two give one of ± 15.6 standard deviations.
pub const LEAST_MACHINES: usize = 3;

/// With fewer machines, or types of machines, nothing is claimed about another one: they may all be of
/// one kind. If one of two kinds makes up a half or a fifth of all machines, the next one lies in its
/// interval in 87 or 88 % of cases with three machines, in 94 or 91 % with four, in 97 or 93 % with
/// five.
pub const LEAST_TO_TRANSFER: usize = 5;

/// The joint result of the estimates of several machines, or of types of machines, in log units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machines {
    /// Mean of the estimates.
    pub estimate: f64,
    /// Standard deviation of the estimates.
    pub spread: f64,
    /// The number of estimates.
    pub machines: usize,
    /// The 95 % interval of the mean of all such machines, if they scatter normally. If one in five is
    /// of another kind, it contains the mean in 67 to 84 % with 3 to 8 machines.
    pub mean: Interval,
    /// The 95 % interval of what the next machine will have.
    pub next: Interval,
}

/// What may be said about a machine that was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Lower on that machine as well, by more than the threshold.
    Lower,
    /// Higher on that machine as well, by more than the threshold.
    Higher,
    /// Certainly lower on some of the measured machines, and certainly higher on others.
    DiffersByMachine,
    /// Lower on average over all machines, but perhaps not on that one.
    LowerOnAverage,
    /// Higher on average over all machines, but perhaps not on that one.
    HigherOnAverage,
    /// Within the threshold on that machine as well.
    Same,
    /// None of these claims is certain.
    Unclear,
    /// Too few machines, or types of machines, were measured.
    TooFew,
}

/// Combines the estimates of all machines; `None` for fewer than two, and if one is not finite.
pub fn machines(estimates: &[f64]) -> Option<Machines> {
    let spread = standard_deviation(estimates)?;
    let estimate = mean(estimates)?;
    let around = |half_width: f64| Interval {
        low: estimate - half_width,
        high: estimate + half_width,
    };
    let machines = estimates.len();
    let error = spread / (machines as f64).sqrt();
    Some(Machines {
        estimate,
        spread,
        machines,
        mean: around(t_975(machines as f64 - 1.0) * error),
        next: around(to_the_next(spread, machines)),
    })
}

/// The end of the interval for the next machine, as a share of Student's distribution: 97.5 % is
/// right for normal scatter, but with long tails (Student's own with three degrees of freedom) it
/// covers less than 93 %.
const NEXT_ENDS_AT: f64 = 0.98;

/// Returns half the width of the interval for the next machine.
fn to_the_next(spread: f64, machines: usize) -> f64 {
    let known = machines as f64;
    t_point(NEXT_ENDS_AT, known - 1.0) * spread * (1.0 + 1.0 / known).sqrt()
}

impl Machines {
    /// Returns what may be said about a machine that was not measured; `findings` are those of the
    /// measured machines, adjusted for their number. Of all `rows` of a campaign, none is wrongly called different on
    /// average more often than one alone would be (Bonferroni).
    ///
    /// A contradiction between machines comes before their average, which would mislead the users
    /// of some of them.
    pub fn transfer(&self, findings: &[Finding], rows: usize) -> Transfer {
        let one_of_all = 1.0 - 0.025 / rows.max(1) as f64;
        let freedom = self.machines as f64 - 1.0;
        let reach = t_point(one_of_all, freedom) * self.spread / (self.machines as f64).sqrt();
        let found = |finding| findings.contains(&finding);
        if found(Finding::Lower) && found(Finding::Higher) {
            Transfer::DiffersByMachine
        } else if self.machines < LEAST_TO_TRANSFER {
            Transfer::TooFew
        } else if self.next.high < -THRESHOLD {
            Transfer::Lower
        } else if self.next.low > THRESHOLD {
            Transfer::Higher
        } else if -THRESHOLD <= self.next.low && self.next.high <= THRESHOLD {
            Transfer::Same
        } else if self.estimate + reach < -THRESHOLD {
            Transfer::LowerOnAverage
        } else if self.estimate - reach > THRESHOLD {
            Transfer::HigherOnAverage
        } else {
            Transfer::Unclear
        }
    }

    /// Returns the half-width of the interval for the next machine if there were twice as many
    /// machines, and if each had twice as many blocks; `errors` are the standard errors of the
    /// estimates.
    pub fn if_doubled(&self, errors: &[f64]) -> Option<Doubled> {
        let within = mean(&errors.iter().map(|error| error * error).collect::<Vec<_>>())?;
        let between = (self.spread * self.spread - within).max(0.0);
        // By chance machines may lie closer together than their errors promise.
        let steadier = (between + within / 2.0).sqrt().min(self.spread);
        Some(Doubled {
            machines: to_the_next(self.spread, 2 * self.machines),
            blocks: to_the_next(steadier, self.machines),
        })
    }
}

/// Half-widths of the interval for the next machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Doubled {
    /// Half-width with twice as many machines.
    pub machines: f64,
    /// Half-width with twice as many blocks on each.
    pub blocks: f64,
}
