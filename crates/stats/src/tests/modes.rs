//! Two modes are found, and one mode is not taken for two: over samples of 10 to 60 values, of many
//! shapes with one mode.

use super::super::modes;
use super::noise::{CPU, WALL, exponential, normal, share};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const SIZES: [usize; 5] = [10, 15, 20, 30, 60];

/// Samples with one mode, in units so wide that the 25 % condition never decides.
fn one_mode(n: usize, shape: &str, random: &mut ChaCha8Rng) -> Vec<f64> {
    let scattered = |log: fn(&mut ChaCha8Rng) -> f64, random: &mut ChaCha8Rng| {
        (0..n).map(|_| log(random)).collect()
    };
    match shape {
        "normal" => scattered(normal, random),
        "uniform" => scattered(|random| 3.0 * random.random::<f64>(), random),
        "skewed" => scattered(exponential, random),
        "skewed twice" => scattered(|random| exponential(random) + exponential(random), random),
        "long tails" => scattered(
            |random| normal(random) / (exponential(random) + exponential(random)).sqrt(),
            random,
        ),
        "longest tails" => scattered(|random| normal(random) / normal(random), random),
        "stragglers" => scattered(
            |random| normal(random) * if random.random_bool(0.1) { 5.0 } else { 1.0 },
            random,
        ),
        "wall time" => WALL
            .sequence(n, random)
            .iter()
            .map(|log| 3.0 * log)
            .collect(),
        "CPU time" => CPU
            .sequence(n, random)
            .iter()
            .map(|log| 20.0 * log)
            .collect(),
        "random walk" => {
            let mut place = 0.0;
            let mut step = || {
                place += normal(random);
                place
            };
            (0..n).map(|_| step()).collect()
        }
        "rise" => (0..n)
            .map(|i| 5.0 * i as f64 / n as f64 + normal(random))
            .collect(),
        other => panic!("no shape {other}"),
    }
}

#[test]
fn one_mode_is_rarely_taken_for_two() {
    let random = &mut ChaCha8Rng::seed_from_u64(8);
    for shape in [
        "normal",
        "uniform",
        "skewed",
        "skewed twice",
        "long tails",
        "longest tails",
        "stragglers",
        "wall time",
        "CPU time",
        "random walk",
        "rise",
    ] {
        let rates = SIZES.map(|n| share(1000, || modes(&one_mode(n, shape, random)).is_some()));
        println!("{shape}: {rates:?}");
        assert!(rates.iter().all(|rate| *rate <= 0.02), "{shape}: {rates:?}");
    }
}

/// Twice as long in one mode, 5 % of scatter, either mode with 20 to 80 % of the values, in any
/// order.
#[test]
fn two_modes_are_found() {
    let random = &mut ChaCha8Rng::seed_from_u64(9);
    for n in SIZES {
        for high in [n / 5, n / 3, n / 2, n - n / 3, n - n / 5] {
            let found = share(500, || {
                let logs: Vec<f64> = (0..n)
                    .map(|i| if i < high { 2f64.ln() } else { 0.0 } + 0.05 * normal(random))
                    .collect();
                modes(&logs).is_some_and(|modes| modes.high.count == high)
            });
            assert!(found >= 0.95, "{high} of {n}: {found}");
        }
    }
}

#[test]
fn modes_come_with_their_medians_and_counts() {
    let logs = [5.0, 1.0, 1.1, 0.9, 5.2, 1.0, 1.2, 5.1, 0.8, 1.0];
    let found = modes(&logs).unwrap();
    assert_eq!((found.low.median, found.low.count), (1.0, 7));
    assert_eq!((found.high.median, found.high.count), (5.1, 3));
}

#[test]
fn what_is_no_mode() {
    let mut straggler = vec![0.0; 19];
    straggler.push(9.0);
    let clock: Vec<f64> = (0..20)
        .map(|i| if i % 2 == 0 { 0.0 } else { 0.2 })
        .collect();
    for logs in [
        &straggler[..],
        &clock,
        &[0.0; 20],
        &[0.0, 0.0, 0.0, 9.0, 9.0, 9.0],
        &[f64::NAN; 20],
        &[],
    ] {
        assert_eq!(modes(logs), None, "{logs:?}");
    }
    let apart: Vec<f64> = clock.iter().map(|log| 2.0 * log).collect();
    assert!(
        modes(&apart).is_some(),
        "two values without scatter, far enough apart"
    );
}

#[test]
fn a_factor_does_not_matter() {
    let random = &mut ChaCha8Rng::seed_from_u64(10);
    for _ in 0..100 {
        let by = f64::from(random.next_u32() % 1000);
        let logs: Vec<f64> = (0..20)
            .map(|i| f64::from(i % 3 / 2) + 0.125 * (normal(random) * 64.0).round() / 64.0)
            .collect();
        let moved: Vec<f64> = logs.iter().map(|log| log + by).collect();
        assert_eq!(
            modes(&logs).map(|m| m.low.count),
            modes(&moved).map(|m| m.low.count)
        );
    }
}
