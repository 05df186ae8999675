//! Wilcoxon's signed-rank test (1945): are paired differences symmetric about zero?
//!
//! Zeros are discarded before ranking, as SciPy's default does. Ties get mid-ranks. Up to
//! [`EXACT_UP_TO`] differences the null distribution is exact *for the actual ranks*, mid-ranks
//! too, so p is exact with ties as well; SciPy does that only by its permutation method. Beyond,
//! the normal approximation with tie and continuity correction.

use super::normal::{EXACT_UP_TO, Null};
use std::sync::LazyLock;

/// Returns the two-sided p of the differences; 1 if every one is zero. `None` for no differences,
/// and if one is not finite.
pub fn signed_rank(differences: &[f64]) -> Option<f64> {
    if differences.is_empty() || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let mut nonzero: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    nonzero.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let ranks = doubled_mid_ranks(&nonzero);
    let total: usize = ranks.iter().sum();
    let positive: usize = ranks
        .iter()
        .zip(&nonzero)
        .filter(|(_, d)| **d > 0.0)
        .map(|(rank, _)| rank)
        .sum();
    let smaller = positive.min(total - positive);
    Some(null(&ranks).two_sided(smaller as f64 / 2.0))
}

/// Returns the position (from 1, from either end) of the ordered Walsh averages that bounds the 95
/// % interval of `n` differences: the largest k with P(W < k) <= 2.5 %. `None` if even the whole
/// range covers less than 95 % (n < 6).
pub fn bound_position(n: usize) -> Option<usize> {
    EXACT_POSITIONS
        .get(n)
        .copied()
        .unwrap_or_else(|| position(n))
}

/// The exact positions by number of differences: the same for every sample of a size, and needed
/// after each block of a run.
static EXACT_POSITIONS: LazyLock<Vec<Option<usize>>> =
    LazyLock::new(|| (0..=EXACT_UP_TO).map(position).collect());

fn position(n: usize) -> Option<usize> {
    let doubled_ranks: Vec<usize> = (1..=n).map(|rank| 2 * rank).collect();
    null(&doubled_ranks).bound()
}

/// Returns the distribution of the sum of the ranks of the positive differences.
fn null(doubled_ranks: &[usize]) -> Null {
    let n = doubled_ranks.len();
    let total: usize = doubled_ranks.iter().sum();
    if n <= EXACT_UP_TO {
        let all = 2f64.powi(n as i32);
        // The distribution is symmetric: its lower half is enough.
        let ways = ways(doubled_ranks, total / 2).into_iter();
        return Null::Exact {
            chances: ways.map(|count| count / all).collect(),
            step: 0.5,
        };
    }
    // The sum of the squared mid-ranks is the variance, tie correction included.
    let squares = doubled_ranks
        .iter()
        .map(|rank| (*rank as f64 / 2.0).powi(2) / 4.0);
    Null::Normal {
        mean: total as f64 / 4.0,
        sd: squares.sum::<f64>().sqrt(),
    }
}

/// Returns twice the mid-rank of each value, so that all ranks are whole. The values come sorted by
/// size.
fn doubled_mid_ranks(by_size: &[f64]) -> Vec<usize> {
    let mut ranks = Vec::new();
    for tied in by_size.chunk_by(|a, b| a.abs() == b.abs()) {
        let first = ranks.len() + 1;
        let last = ranks.len() + tied.len();
        ranks.resize(last, first + last);
    }
    ranks
}

/// Returns the number of subsets of the ranks whose sum is 0, 1, 2, … `most`. These are up to 2^50
/// in all, so an f64 holds them exactly.
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
