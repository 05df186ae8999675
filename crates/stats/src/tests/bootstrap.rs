//! The mean over cells and its interval.

use super::super::bootstrap::{MOST_DRAWN, tail};
use super::super::{mean_shift, shift};
use super::noise::{normal, share};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;

/// Cells that share half of the variance of a block.
fn cells(count: usize, blocks: u32, random: &mut impl Rng) -> Vec<BTreeMap<u32, f64>> {
    let shared: Vec<f64> = (0..blocks).map(|_| 0.03 * normal(random)).collect();
    let cell = |random: &mut _| {
        (0..)
            .zip(&shared)
            .map(|(block, log)| (block, log + 0.03 * normal(random)))
            .collect()
    };
    (0..count).map(|_| cell(random)).collect()
}

#[test]
fn the_mean_of_one_cell_is_its_shift() {
    let random = &mut ChaCha8Rng::seed_from_u64(11);
    let cell = cells(1, 15, random);
    let values: Vec<f64> = cell[0].values().copied().collect();
    let (mean, alone) = (mean_shift(&cell, 1).unwrap(), shift(&values).unwrap());
    assert_eq!(
        (mean.estimate, mean.cells, mean.blocks),
        (alone.estimate, 1, 15)
    );
    let (ours, theirs) = (mean.interval.unwrap(), alone.interval.unwrap());
    let width = theirs.high - theirs.low;
    assert!(
        (ours.low - theirs.low).abs() < 0.2 * width
            && (ours.high - theirs.high).abs() < 0.2 * width
    );
}

/// Blocks are drawn for all cells at once: cells that repeat each other add no evidence.
#[test]
fn a_cell_twice_is_one_cell() {
    let random = &mut ChaCha8Rng::seed_from_u64(12);
    let one = cells(1, 12, random);
    let twice = vec![one[0].clone(), one[0].clone()];
    assert_eq!(
        mean_shift(&one, 3).unwrap().interval,
        mean_shift(&twice, 3).unwrap().interval
    );
}

#[test]
fn the_seed_alone_decides() {
    let random = &mut ChaCha8Rng::seed_from_u64(13);
    let cells = cells(2, 10, random);
    let interval = |seed| mean_shift(&cells, seed).unwrap().interval.unwrap();
    assert_eq!(interval(1), interval(1));
    assert_ne!(interval(1), interval(2));
}

#[test]
fn few_blocks_have_no_interval_and_none_have_no_mean() {
    let random = &mut ChaCha8Rng::seed_from_u64(14);
    assert!(
        mean_shift(&cells(2, 5, random), 1)
            .unwrap()
            .interval
            .is_none()
    );
    assert!(
        mean_shift(&cells(2, 6, random), 1)
            .unwrap()
            .interval
            .is_some()
    );
    assert_eq!(mean_shift(&[], 1), None);
    assert_eq!(
        mean_shift(&[BTreeMap::from([(0, 1.0)]), BTreeMap::new()], 1),
        None
    );
    assert_eq!(mean_shift(&[BTreeMap::from([(0, f64::NAN)])], 1), None);
}

/// Intervals by batches of many blocks cover the truth as often as they should, and are about as
/// wide as those by drawing.
#[test]
fn many_blocks_in_batches_cover_the_truth() {
    let random = &mut ChaCha8Rng::seed_from_u64(15);
    let covered = share(400, || {
        let interval = mean_shift(&cells(3, 80, random), 1)
            .unwrap()
            .interval
            .unwrap();
        interval.low <= 0.0 && interval.high >= 0.0
    });
    assert!((0.92..0.98).contains(&covered), "{covered}");
    let width = |blocks: usize| {
        let cells = cells(3, blocks as u32, &mut ChaCha8Rng::seed_from_u64(16));
        let interval = mean_shift(&cells, 1).unwrap().interval.unwrap();
        (interval.high - interval.low) * (blocks as f64).sqrt()
    };
    let (drawn, batched) = (width(MOST_DRAWN), width(MOST_DRAWN + 1));
    assert!((0.6..1.6).contains(&(batched / drawn)), "{drawn} {batched}");
}

/// Few blocks move the percentiles further out; many leave them where they would be.
#[test]
fn few_blocks_are_paid_for() {
    assert!(tail(6) < tail(10) && tail(10) < tail(40) && tail(40) < 0.025);
    assert!((tail(100_000) - 0.025).abs() < 1e-5);
}

#[test]
fn the_interval_covers_the_truth() {
    let random = &mut ChaCha8Rng::seed_from_u64(15);
    let covered = share(40, || {
        let mut cells = cells(3, 10, random);
        cells[0].remove(&4);
        let interval = mean_shift(&cells, 1).unwrap().interval.unwrap();
        interval.low <= 0.0 && 0.0 <= interval.high
    });
    println!("covered: {covered}");
    assert!(covered >= 0.9, "{covered}");
}
