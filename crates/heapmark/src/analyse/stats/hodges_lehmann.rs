//! By how much do paired values differ? The Hodges-Lehmann estimate (1963) and the interval that belongs to the signed-rank test.
//!
//! Zeros stay in: discarding them, as the test does, would push the estimate away from zero. With ties the interval keeps
//! the quantile of untied ranks.

use super::median::middle;
use super::wilcoxon::bound_position;

/// How far paired differences lie from zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    /// Median of the Walsh averages, the means of all pairs of differences (each with itself too).
    pub estimate: f64,
    /// The 95 % interval; `None` where there are too few differences for it (n < 6).
    pub interval: Option<Interval>,
    /// Differences that went in.
    pub n: usize,
}

/// Both ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Estimates the shift. `None` for no differences, and where one is not finite.
pub fn shift(differences: &[f64]) -> Option<Shift> {
    let walsh = walsh_averages(differences);
    let estimate = middle(&walsh)?;
    let interval = bound_position(differences.len())
        .map(|position| Interval { low: walsh[position - 1], high: walsh[walsh.len() - position] });
    Some(Shift { estimate, interval, n: differences.len() })
}

fn walsh_averages(differences: &[f64]) -> Vec<f64> {
    let mut averages: Vec<f64> = differences
        .iter()
        .enumerate()
        .flat_map(|(i, a)| differences[i..].iter().map(move |b| f64::midpoint(*a, *b)))
        .collect();
    averages.sort_unstable_by(f64::total_cmp);
    averages
}
