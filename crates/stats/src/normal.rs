//! How the statistics of the tests are distributed if there is no difference: exactly known for
//! small samples, otherwise about normal.

use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::function::erf::erfc_inv;
use std::f64::consts::{PI, SQRT_2};

/// The most values of a sample for which the tests use the exact null distribution.
pub const EXACT_UP_TO: usize = 50;

/// The 97.5 % point of the standard normal distribution.
pub const Z_975: f64 = 1.959_963_984_540_054;

/// The distribution of a statistic if there is no difference.
pub enum Null {
    /// The chances of 0, one step, two steps, … up to at least the distribution's mean.
    Exact { chances: Vec<f64>, step: f64 },
    /// A normal distribution.
    Normal { mean: f64, sd: f64 },
}

impl Null {
    /// Returns the two-sided p of a statistic that is not above its mean; with continuity
    /// correction if the distribution is not exact.
    pub fn two_sided(&self, statistic: f64) -> f64 {
        let tail: f64 = match self {
            Null::Exact { chances, step } => chances[..=(statistic / step) as usize].iter().sum(),
            // All values are tied.
            Null::Normal { sd: 0.0, .. } => 0.5,
            Null::Normal { mean, sd } => upper_tail((mean - statistic - 0.5).max(0.0) / sd),
        };
        (2.0 * tail).min(1.0)
    }

    /// Returns the largest k with P(statistic < k) <= 2.5 %; `None` if 0 alone is more likely than
    /// that.
    pub fn bound(&self) -> Option<usize> {
        let bound = match self {
            Null::Exact { chances, step } => {
                let mut below = 0.0;
                chances
                    .iter()
                    .take_while(|chance| {
                        below += **chance;
                        below <= 0.025
                    })
                    .count() as f64
                    * step
            }
            Null::Normal { mean, sd } => mean - Z_975 * sd + 0.5,
        };
        // The bound is rounded down.
        Some(bound as usize).filter(|bound| *bound > 0)
    }
}

/// Returns P(Z > z) for z >= 0, to about 14 digits.
pub fn upper_tail(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * PI).sqrt();
    if z < 3.0 {
        0.5 - density * odd_series(z)
    } else {
        density / continued_fraction(z)
    }
}

/// Returns z + z^3/3 + z^5/(3*5) + …: (distribution function - one half) / density. All terms are
/// positive, so nothing cancels here; for large z the subtraction from one half would, which is why
/// the tail has a second form.
fn odd_series(z: f64) -> f64 {
    let mut term = z;
    let mut sum = z;
    let mut odd = 3.0;
    while term > sum * f64::EPSILON {
        term *= z * z / odd;
        sum += term;
        odd += 2.0;
    }
    sum
}

/// Returns z + 1/(z + 2/(z + 3/(z + …))), Laplace's continued fraction for density / tail. 100
/// levels are enough from z = 3 on.
fn continued_fraction(z: f64) -> f64 {
    (1..=100)
        .rev()
        .fold(z, |below, level| z + f64::from(level) / below)
}

/// Returns the z with P(Z > z) = p.
pub fn upper_point(p: f64) -> f64 {
    SQRT_2 * erfc_inv(2.0 * p)
}

/// Returns the 97.5 % point of Student's distribution.
pub fn t_975(freedom: f64) -> f64 {
    t_point(0.975, freedom)
}

/// Returns the point of Student's distribution below which this share lies.
pub fn t_point(share: f64, freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom)
        .expect("at least one degree of freedom")
        .inverse_cdf(share)
}
