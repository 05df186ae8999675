//! How often equal rows of two runs are called different, if each row has a state of its own in each run.

use super::noise::{normal, share};
use crate::{ALPHA, BETWEEN_RUNS, Rule, Tested, judge_tested, unpaired};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::f64::consts::SQRT_2;

const ROWS: usize = 6;
const SCATTER: f64 = 0.05;

/// The share of comparisons in which any of six equal rows is called different.
fn wrong(blocks: [usize; 2], with: impl Fn(Tested, &Rule) -> Tested) -> f64 {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let rule = Rule::new(ROWS, ALPHA);
    let mut run = |blocks| {
        let state = BETWEEN_RUNS * normal(&mut random);
        let values = (0..blocks).map(|_| state + SCATTER * normal(&mut random));
        values.collect::<Vec<f64>>()
    };
    share(500, || {
        let rows = (0..ROWS).map(|_| {
            Some(with(
                unpaired(&run(blocks[0]), &run(blocks[1]), &rule)?,
                &rule,
            ))
        });
        let judged = judge_tested(&rows.collect::<Vec<_>>(), &rule);
        judged
            .iter()
            .flatten()
            .any(|one| one.finding.is_difference())
    })
}

#[test]
fn equal_rows_of_two_runs_are_rarely_called_different() {
    assert!(wrong([10, 10], |tested, _| tested) > 0.5);
    for blocks in [[10, 10], [40, 10], [6, 20]] {
        let wrong = wrong(blocks, |tested, rule| {
            tested.with_scatter(SQRT_2 * BETWEEN_RUNS, rule)
        });
        assert!(wrong <= 0.07, "{wrong} with {blocks:?} blocks");
    }
}
