//! Findings, and how many more blocks they would take.

use super::super::{
    BlocksMore, Finding, Judgement, LEAST_BLOCKS, Rule, THRESHOLD, holm, judge_family, paired,
    signed_rank,
};
use super::noise::normal;
use crate::ALPHA;
use proptest::prelude::*;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Uniform scatter: `n` values within `width` of a place, symmetric.
fn around(place: f64, width: f64, n: usize) -> Vec<f64> {
    (0..n)
        .map(|i| place + width * (2.0 * i as f64 / (n - 1) as f64 - 1.0))
        .collect()
}

fn alone(differences: &[f64]) -> Judgement {
    judge_family(&[differences], ALPHA)[0].unwrap()
}

fn more(judgement: &Judgement) -> u32 {
    match judgement.blocks_more {
        Some(BlocksMore::About(blocks)) => blocks,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_five_findings() {
    for (place, width, expected) in [
        (-0.05, 0.02, Finding::Lower),
        (0.05, 0.02, Finding::Higher),
        (0.0, 0.005, Finding::Same),
        (0.008, 0.01, Finding::Small),
        (0.0, 0.1, Finding::Unclear),
        (0.05, 0.2, Finding::Unclear),
    ] {
        let judgement = alone(&around(place, width, 20));
        assert_eq!(
            judgement.finding, expected,
            "{place} +- {width}: {judgement:?}"
        );
        assert_eq!(
            judgement.blocks_more.is_some(),
            expected == Finding::Unclear
        );
    }
}

#[test]
fn a_difference_that_cannot_matter_is_the_same_however_sure_it_is() {
    let judgement = alone(&around(0.001, 0.0005, 20));
    assert!(judgement.adjusted_p < 1e-4);
    assert_eq!(judgement.finding, Finding::Same);
}

#[test]
fn up_and_down_have_the_same_threshold() {
    for factor in [1.0099f64, 1.0101] {
        let [up, down] =
            [factor, 1.0 / factor].map(|ratio| alone(&around(ratio.ln(), 1e-6, 20)).finding);
        let (higher, lower) = if factor.ln() > THRESHOLD {
            (Finding::Higher, Finding::Lower)
        } else {
            (Finding::Same, Finding::Same)
        };
        assert_eq!((up, down), (higher, lower));
    }
}

#[test]
fn too_few_blocks_are_too_few_whatever_they_say() {
    for (place, blocks) in [(0.5, 5), (0.0, 5), (0.5, 3)] {
        let judgement = alone(&around(place, 1e-4, blocks));
        assert_eq!(judgement.finding, Finding::TooFew);
        assert_eq!(more(&judgement), LEAST_BLOCKS - blocks as u32);
    }
}

/// By ranks six blocks that agree have a p of 1/32, which no family of two may pass.
#[test]
fn blocks_too_few_for_ranks_are_judged_by_their_scatter() {
    let family = |width: f64| judge_family(&vec![around(0.1, width, 6); 90], ALPHA)[0].unwrap();
    assert_eq!(family(0.01).finding, Finding::Higher);
    assert_eq!(family(0.09).finding, Finding::Unclear);
    assert_eq!(signed_rank(&around(0.1, 0.01, 6)), Some(1.0 / 32.0));
}

/// The other blocks convince Student's t, but the interval contains 0.
#[test]
fn no_difference_is_claimed_beside_an_interval_that_contains_none() {
    let one_disagrees = [-0.001, 0.03, 0.03, 0.03, 0.03, 0.031];
    let judgement = alone(&one_disagrees);
    assert!(judgement.adjusted_p < 0.01, "{judgement:?}");
    assert_eq!(judgement.finding, Finding::Unclear);
    assert_eq!(
        alone(&one_disagrees[1..].repeat(2)).finding,
        Finding::Higher
    );
}

/// A finding of one comparison alone may not hold as one of eight.
#[test]
fn a_family_is_judged_together() {
    let doubtful = around(0.05, 0.125, 20);
    let p = signed_rank(&doubtful).unwrap();
    assert!(p < 0.05 && 8.0 * p > 0.05, "{p}");
    assert_eq!(alone(&doubtful).finding, Finding::Higher);
    let mut family = vec![around(0.0, 0.1, 20); 7];
    family.push(doubtful);
    let judged = judge_family(&family, ALPHA);
    assert_eq!(judged[7].unwrap().finding, Finding::Unclear);
    assert!((judged[7].unwrap().adjusted_p - 8.0 * p).abs() < 1e-12);
}

#[test]
fn what_is_the_same_alone_is_not_yet_as_one_of_many() {
    let near = around(0.002, 0.018, 20);
    let same_p = paired(&near, &Rule::new(1, ALPHA)).unwrap().same_p;
    assert!(same_p < 0.05 && 24.0 * same_p > 0.05, "{same_p}");
    assert_eq!(alone(&near).finding, Finding::Same);
    let judged = judge_family(&vec![near; 24], ALPHA);
    assert!(
        judged
            .iter()
            .all(|judgement| judgement.unwrap().finding == Finding::Unclear),
        "{:?}",
        judged[0]
    );
    let nearer = judge_family(&vec![around(0.0, 0.005, 20); 24], ALPHA);
    assert!(
        nearer
            .iter()
            .all(|judgement| judgement.unwrap().finding == Finding::Same)
    );
}

proptest! {
    /// For one comparison by ranks, both agree.
    #[test]
    fn a_comparison_is_the_same_where_its_interval_lies_inside_the_threshold(
        place in -0.01..0.01f64,
        scatter in prop::collection::vec(-0.02..0.02f64, 10..50),
    ) {
        let tested = paired(&scatter.iter().map(|d| d / 2.0 + place).collect::<Vec<f64>>(), &Rule::new(1, ALPHA)).unwrap();
        let interval = tested.shift.interval.unwrap();
        let inside = -THRESHOLD <= interval.low && interval.high <= THRESHOLD;
        prop_assert_eq!(tested.same_p <= 0.05, inside, "{:?}", tested);
    }
}

#[test]
fn a_comparison_without_data_still_counts_for_the_family() {
    let judged = judge_family(&[around(0.05, 0.125, 20), Vec::new()], ALPHA);
    assert_eq!(judged[1], None);
    assert_eq!(
        judged[0].unwrap().adjusted_p,
        2.0 * signed_rank(&around(0.05, 0.125, 20)).unwrap()
    );
}

#[test]
fn holm_asks_less_at_each_step_and_never_turns_back() {
    assert_eq!(holm(&[]), Some(vec![]));
    assert_eq!(holm(&[0.04, 0.01, 0.03]), Some(vec![0.06, 0.03, 0.06]));
    assert_eq!(holm(&[0.5, 0.9]), Some(vec![1.0, 1.0]));
    assert_eq!(holm(&[0.1, f64::NAN]), None);
    assert_eq!(holm(&[0.1, 1.1]), None);
}

/// The sqrt law by hand: 20 blocks, half-width h, distance d; a clear finding takes 20 (h (1.96 +
/// 0.84) / (1.96 d))^2 in all.
#[test]
fn blocks_more_follow_from_the_half_width_and_the_distance() {
    let width_of = |judgement: &Judgement| {
        let interval = judgement.shift.interval.unwrap();
        (interval.high - interval.low) / 2.0
    };
    let in_all = |width: f64, distance: f64| 20.0 * (width * 2.8016 / (1.96 * distance)).powi(2);
    let apart = alone(&around(0.05, 0.2, 20));
    assert!(
        (f64::from(more(&apart)) + 20.0 - in_all(width_of(&apart), 0.05)).abs() <= 1.0,
        "{apart:?}"
    );
    let none = alone(&around(0.0, 0.05, 20));
    assert!(
        (f64::from(more(&none)) + 20.0 - in_all(width_of(&none), THRESHOLD)).abs() <= 1.0,
        "{none:?}"
    );
    let hopeless = alone(&around(0.0, 1.0, 20));
    assert_eq!(hopeless.blocks_more, Some(BlocksMore::TooMany));
}

#[test]
fn a_larger_family_takes_more_blocks() {
    let of = |family| more(&judge_family(&vec![around(0.05, 0.2, 20); family], ALPHA)[0].unwrap());
    assert!(of(1) < of(8) && of(8) < of(100));
}

/// With a known truth, the count is right most of the time: unclear after 12 blocks, then as many
/// more as estimated.
#[test]
fn that_many_blocks_more_are_mostly_enough() {
    let random = &mut ChaCha8Rng::seed_from_u64(7);
    for truth in [0.0, 0.03] {
        let (mut tried, mut clear) = (0, 0);
        while tried < 100 {
            let mut differences: Vec<f64> =
                (0..12).map(|_| truth + 0.03 * normal(random)).collect();
            let Some(BlocksMore::About(more)) = alone(&differences).blocks_more else {
                continue;
            };
            if more > 100 {
                continue;
            }
            differences.extend((0..more).map(|_| truth + 0.03 * normal(random)));
            tried += 1;
            clear += usize::from(alone(&differences).finding != Finding::Unclear);
        }
        println!("blocks_more at {truth}: {clear} of {tried}");
        assert!(2 * clear > tried, "{truth}: {clear} of {tried}");
    }
}

#[test]
fn without_scatter_a_count_is_still_a_count() {
    assert_eq!(alone(&[0.0; 20]).finding, Finding::Same);
    assert_eq!(more(&alone(&[0.0; 4])), 2);
    assert_eq!(judge_family(&[[f64::NAN]], ALPHA), [None]);
}
