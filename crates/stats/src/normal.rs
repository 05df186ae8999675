//! The upper tail of the standard normal distribution, for samples too large for an exact null
//! distribution.

use std::f64::consts::PI;

/// The most values of a sample for which the tests use the exact null distribution.
pub const EXACT_UP_TO: usize = 50;

/// The 97.5 % point of the standard normal distribution.
pub const Z_975: f64 = 1.959_963_984_540_054;

/// Two-sided p of a statistic below its mean, with continuity correction.
pub fn two_sided(statistic: f64, mean: f64, sd: f64) -> f64 {
    (2.0 * upper_tail((mean - statistic - 0.5).max(0.0) / sd)).min(1.0)
}

/// The largest k with P(statistic < k) <= 2.5 %, for a statistic with this mean and standard
/// deviation.
pub fn bound(mean: f64, sd: f64) -> usize {
    (mean - Z_975 * sd + 0.5).floor() as usize
}

/// As [`bound`], from the chances of the statistic being 0, 1, 2, …; `None` if 0 alone is more likely
/// than 2.5 %.
pub fn exact_bound(chances: impl Iterator<Item = f64>) -> Option<usize> {
    let mut below = 0.0;
    let within = chances.take_while(|chance| {
        below += chance;
        below <= 0.025
    });
    Some(within.count()).filter(|bound| *bound > 0)
}

/// P(Z > z) for z >= 0, to about 14 digits.
pub fn upper_tail(z: f64) -> f64 {
    let density = (-z * z / 2.0).exp() / (2.0 * PI).sqrt();
    if z < 3.0 {
        0.5 - density * odd_series(z)
    } else {
        density / continued_fraction(z)
    }
}

/// z + z^3/3 + z^5/(3*5) + …: (distribution function - one half) / density. All terms are positive,
/// so nothing cancels here; for large z the subtraction from one half would, which is why the tail
/// has a second form.
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

/// z + 1/(z + 2/(z + 3/(z + …))), Laplace's continued fraction for density / tail. 100 levels are
/// enough from z = 3 on.
fn continued_fraction(z: f64) -> f64 {
    (1..=100)
        .rev()
        .fold(z, |below, level| z + f64::from(level) / below)
}

/// The z with P(Z > z) = p, for p up to one half. Found by bisection, as it is called once per
/// comparison.
pub fn upper_point(p: f64) -> f64 {
    // Beyond 38 the tail is too small for an f64.
    let (mut low, mut high) = (0.0, 38.0);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if upper_tail(middle) > p {
            low = middle
        } else {
            high = middle
        }
    }
    f64::midpoint(low, high)
}
