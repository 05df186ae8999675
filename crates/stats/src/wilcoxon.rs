//! Wilcoxon's signed-rank test (1945): are paired differences symmetric about zero?
//!
//! Zeros are discarded before ranking, as SciPy's default does. Ties get mid-ranks. Up to
//! [`EXACT_UP_TO`] differences the null distribution is exact *for the actual ranks*, mid-ranks
//! too, so p is exact with ties as well; SciPy does that only by its permutation method. Beyond,
//! the normal approximation with tie and continuity correction.

use super::normal::{EXACT_UP_TO, bound, exact_bound, two_sided};
use std::sync::LazyLock;

/// The result of the test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignedRank {
    /// Sum of the ranks of the positive differences.
    pub positive_ranks: f64,
    /// Differences that are not zero.
    pub n: usize,
    /// Two-sided; 1 if every difference is zero.
    pub p: f64,
}

/// Tests the differences. `None` for no differences, and if one is not finite.
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    if differences.is_empty() || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let mut nonzero: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    nonzero.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_mid_ranks(&nonzero);
    let total: usize = ranks.iter().sum();
    let signed = ranks.iter().zip(&nonzero);
    let positive: usize = signed
        .filter(|(_, d)| **d > 0.0)
        .map(|(rank, _)| rank)
        .sum();
    let smaller = positive.min(total - positive);
    let p = if nonzero.is_empty() {
        1.0
    } else if nonzero.len() <= EXACT_UP_TO {
        exact_p(&ranks, smaller)
    } else {
        normal_p(&ranks, smaller)
    };
    Some(SignedRank {
        positive_ranks: positive as f64 / 2.0,
        n: nonzero.len(),
        p,
    })
}

/// The position (from 1, from either end) of the ordered Walsh averages that bounds the 95 %
/// interval of `n` differences: the largest k with P(W < k) <= 2.5 %. `None` if even the whole
/// range covers less than 95 % (n < 6).
pub(super) fn bound_position(n: usize) -> Option<usize> {
    if n > EXACT_UP_TO {
        let n = n as f64;
        let mean = n * (n + 1.0) / 4.0;
        let sd = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
        return Some(bound(mean, sd));
    }
    EXACT_POSITIONS[n]
}

/// By number of differences: the same for every sample of a size, and needed after each block of a
/// run.
static EXACT_POSITIONS: LazyLock<Vec<Option<usize>>> =
    LazyLock::new(|| (0..=EXACT_UP_TO).map(exact_position).collect());

fn exact_position(n: usize) -> Option<usize> {
    let ranks: Vec<usize> = (1..=n).collect();
    // Half of the distribution lies below n (n + 1) / 4: enough for 2.5 %.
    let ways = ways(&ranks, n * (n + 1) / 4).into_iter();
    exact_bound(ways.map(|count| count / 2f64.powi(n as i32)))
}

/// Twice the mid-rank of each value, so that all ranks are whole. The values come sorted by size.
fn doubled_mid_ranks(by_size: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::new();
    for tied in by_size.chunk_by(|a, b| a.abs() == b.abs()) {
        let (first, last) = (ranks.len() + 1, ranks.len() + tied.len());
        ranks.resize(last, first + last);
    }
    ranks
}

/// The number of subsets of the ranks whose sum is 0, 1, 2, … `most`. Up to 2^50 in all, so exact
/// in an f64.
fn ways(ranks: &[usize], most: usize) -> Vec<f64> {
    let mut ways = vec![0.0; most + 1];
    ways[0] = 1.0;
    for &rank in ranks {
        for sum in (rank..ways.len()).rev() {
            ways[sum] += ways[sum - rank];
        }
    }
    ways
}

fn exact_p(ranks: &[usize], smaller: usize) -> f64 {
    let as_extreme: f64 = ways(ranks, smaller).iter().sum();
    (2.0 * as_extreme / 2f64.powi(ranks.len() as i32)).min(1.0)
}

/// The sum of the squared mid-ranks is the variance, tie correction included.
fn normal_p(doubled_ranks: &[usize], smaller: usize) -> f64 {
    let mean = doubled_ranks.iter().sum::<usize>() as f64 / 4.0;
    let squares = doubled_ranks
        .iter()
        .map(|rank| (*rank as f64 / 2.0).powi(2) / 4.0);
    two_sided(smaller as f64 / 2.0, mean, squares.sum::<f64>().sqrt())
}
