//! Two samples whose values are not paired: the Mann-Whitney test (1947), the Hodges-Lehmann shift
//! with the interval of that test, and Welch's t-test, which others use.
//!
//! Without ties and up to [`EXACT_UP_TO`] values each, the null distribution is exact; otherwise
//! the normal approximation with tie and continuity correction. Values of two runs share no block,
//! so the shift includes any drift between the runs.

use super::hodges_lehmann::{Interval, Shift};
use super::mean::{mean, standard_deviation};
use super::median::{middle, sorted};
use super::normal::{EXACT_UP_TO, Null};
use super::student::two_sided;

/// Returns the two-sided p for both being samples of the same distribution. `None` for an empty
/// sample, and if a value is not finite.
pub fn rank_sum(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let all = sorted(a.iter().chain(b).copied())?;
    // Pairs in which a is larger; a tie counts half. Halves are summed exactly.
    let wins: f64 = pairs(a, b)
        .map(|(a, b)| 0.5 * (f64::from(a >= b) + f64::from(a > b)))
        .sum();
    let smaller = wins.min((a.len() * b.len()) as f64 - wins);
    let tied = all
        .chunk_by(|a, b| a == b)
        .map(|tied| tied.len() as f64)
        .map(|tied| tied.powi(3) - tied)
        .sum();
    Some(null(a.len(), b.len(), tied).two_sided(smaller))
}

/// Returns the two-sided p of Welch's t-test (1947) for both having the same mean. The test assumes
/// that the values are independent, which neighbouring runs on one machine are not. 1 or 0 if
/// neither sample scatters; `None` if one has fewer than two values, and if a value is not finite.
pub fn welch(a: &[f64], b: &[f64]) -> Option<f64> {
    let error = |values: &[f64]| Some(standard_deviation(values)?.powi(2) / values.len() as f64);
    let of_a = error(a)?;
    let of_b = error(b)?;
    let parts = of_a.powi(2) / (a.len() as f64 - 1.0) + of_b.powi(2) / (b.len() as f64 - 1.0);
    let freedom = (of_a + of_b).powi(2) / parts;
    two_sided(mean(a)? - mean(b)?, (of_a + of_b).sqrt(), freedom)
}

/// Estimates by how much `a` lies above `b`. `None` as for [`rank_sum`]; no interval if even the
/// whole range covers less than 95 %.
pub fn shift_between(a: &[f64], b: &[f64]) -> Option<Shift> {
    let differences = sorted(pairs(a, b).map(|(a, b)| a - b))?;
    Some(Shift {
        estimate: middle(&differences),
        interval: null(a.len(), b.len(), 0.0)
            .bound()
            .map(|position| Interval {
                low: differences[position - 1],
                high: differences[differences.len() - position],
            }),
        n: a.len().min(b.len()),
    })
}

fn pairs(a: &[f64], b: &[f64]) -> impl Iterator<Item = (f64, f64)> {
    a.iter().flat_map(move |a| b.iter().map(move |b| (*a, *b)))
}

/// Returns the distribution of the number of pairs in which a value of the first sample is the
/// larger one; `tied` is the sum of t^3 - t over all groups of t equal values. Its bound is the
/// position, from 1 and from either end, of the ordered differences that bounds the 95 % interval.
fn null(a: usize, b: usize, tied: f64) -> Null {
    if tied == 0.0 && a.max(b) <= EXACT_UP_TO {
        return Null::Exact {
            chances: shares(a, b),
            step: 1.0,
        };
    }
    let a = a as f64;
    let b = b as f64;
    let n = a + b;
    Null::Normal {
        mean: a * b / 2.0,
        sd: (a * b / 12.0 * (n + 1.0 - tied / (n * (n - 1.0)))).sqrt(),
    }
}

/// Returns the chance of each number of pairs in which a value of the first sample is the larger
/// one. The largest of all values belongs to the first sample with chance i / (i + j), and then
/// wins j pairs.
fn shares(a: usize, b: usize) -> Vec<f64> {
    let mut certain = vec![0.0; a * b + 1];
    certain[0] = 1.0;
    let mut before = vec![certain.clone(); b + 1];
    for i in 1..=a {
        let mut now = vec![certain.clone()];
        for j in 1..=b {
            let first = i as f64 / (i + j) as f64;
            now.push(
                (0..=a * b)
                    .map(|pairs| {
                        let won = pairs.checked_sub(j).map_or(0.0, |pairs| before[j][pairs]);
                        first * won + (1.0 - first) * now[j - 1][pairs]
                    })
                    .collect(),
            );
        }
        before = now;
    }
    before.swap_remove(b)
}
