//! Sizes as the host works them out and the guest draws them, held against a table that was worked out apart from them.

use crate::support::CATALOG;
use heapmark::plan::{Override, cases};
use heapmark_guest::rng::SplitMix;
use heapmark_guest::sizes::Sizes;

const DRAWS: u32 = 1_000_000;

/// How often the guest draws each of the ten classes from 50 to 500.
fn shares(workload: &str, distribution: &str) -> [f64; 10] {
    let set: Vec<Override> = vec![
        format!("{workload}.distribution={distribution}")
            .parse()
            .unwrap(),
    ];
    let catalog = &*CATALOG;
    let cases = cases(
        &catalog.workloads(workload).unwrap(),
        "paper",
        &[1],
        2,
        &set,
    )
    .unwrap();
    let sizes = Sizes::parse(&cases[0].job_parameters().unwrap()["classes"]);
    let (mut random, mut counts) = (SplitMix::new(2022, 0), [0u32; 10]);
    for _ in 0..DRAWS {
        let size = sizes.draw(&mut random);
        assert!(size.is_multiple_of(50), "{size}");
        counts[size as usize / 50 - 1] += 1;
    }
    counts.map(|count| f64::from(count) / f64::from(DRAWS))
}

#[test]
fn fisher_and_uniform_sizes_are_drawn_with_their_probabilities() {
    let fisher = [
        0.1360, 0.3500, 0.2391, 0.1279, 0.0669, 0.0361, 0.0203, 0.0119, 0.0072, 0.0046,
    ];
    for workload in ["churn", "speed-malloc"] {
        for (distribution, expected) in [("fisher", fisher), ("uniform", [0.1; 10])] {
            for (class, (share, expected)) in shares(workload, distribution)
                .iter()
                .zip(expected)
                .enumerate()
            {
                assert!(
                    (share - expected).abs() < 0.005,
                    "{workload}, {distribution}, class {class}: {share}"
                );
            }
        }
    }
}

#[test]
fn the_mean_size_is_the_expected_one() {
    let mean: f64 = shares("churn", "fisher")
        .iter()
        .enumerate()
        .map(|(i, share)| share * (i + 1) as f64 * 50.0)
        .sum();
    assert!((mean - 148.2).abs() < 0.5, "{mean}");
}
