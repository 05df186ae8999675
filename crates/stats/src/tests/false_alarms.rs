//! How often equals are called different, and how often differences are found, on a simulated noisy
//! machine. The habits that this crate replaces are tested with the same noise, so that the limits
//! are ones that some method breaks.

use super::super::stopping::{Next, Stopping};
use super::super::{Finding, Rule, THRESHOLD, judge_family, mean, paired, shift, signed_rank};
use super::noise::{CPU, Noise, WALL, normal, share};
use super::stopping::usual;
use crate::{ALPHA, ALPHA_UNTIL_PRECISE};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const COMPARISONS: usize = 2000;
const FAMILIES: usize = 1000;

fn alarm(finding: Finding) -> bool {
    matches!(finding, Finding::Lower | Finding::Higher | Finding::Small)
}

/// Whether a comparison with these differences, judged alone, claims a difference.
fn alarms_alone(differences: &[f64]) -> bool {
    alarm(judge_family(&[differences], ALPHA)[0].unwrap().finding)
}

#[test]
fn equals_are_rarely_called_different() {
    let random = &mut ChaCha8Rng::seed_from_u64(1);
    for blocks in [15, 6] {
        for (name, noise) in [("wall", WALL), ("CPU", CPU)] {
            let rate = share(COMPARISONS, || {
                alarms_alone(&noise.comparisons(1, blocks, random)[0])
            });
            println!(
                "{name}: {:.1} % of single comparisons of {blocks} blocks",
                100.0 * rate
            );
            assert!(rate <= 0.05, "{name}, {blocks} blocks: {rate}");
        }
    }
}

#[test]
fn a_family_of_equals_rarely_has_any_called_different() {
    let random = &mut ChaCha8Rng::seed_from_u64(2);
    for (name, noise) in [("wall", WALL), ("CPU", CPU)] {
        let mut uncorrected = 0;
        let rate = share(FAMILIES, || {
            let family = noise.comparisons(8, 15, random);
            uncorrected += usize::from(family.iter().any(|d| signed_rank(d).unwrap() < 0.05));
            judge_family(&family, ALPHA)
                .iter()
                .any(|judgement| alarm(judgement.unwrap().finding))
        });
        let uncorrected = uncorrected as f64 / FAMILIES as f64;
        println!(
            "{name}: {:.1} % of families of 8, uncorrected {:.1} %",
            100.0 * rate,
            100.0 * uncorrected
        );
        assert!(rate <= 0.05, "{name}: {rate}");
        assert!(
            uncorrected > 0.2,
            "{name}: without Holm {uncorrected}, so the correction had nothing to do"
        );
    }
}

/// Too few for ranks, so Student's t decides: of values with two modes, with long tails or with sharp ends.
#[test]
fn families_of_few_blocks_rarely_have_any_called_different() {
    let random = &mut ChaCha8Rng::seed_from_u64(8);
    type Draw = fn(&mut ChaCha8Rng) -> f64;
    let kinds: [(&str, Draw); 4] = [
        ("normal", |random| normal(random)),
        ("long tail", |random| normal(random).exp()),
        ("two modes", |random| {
            f64::from(random.random::<bool>()) + 0.02 * normal(random)
        }),
        ("uniform", |random| random.random()),
    ];
    for (name, draw) in kinds {
        let rate = share(FAMILIES, || {
            let mut block = || draw(random) - draw(random);
            let family: [[f64; 6]; 13] =
                std::array::from_fn(|_| std::array::from_fn(|_| 0.05 * block()));
            let judged = judge_family(&family, ALPHA);
            judged
                .iter()
                .any(|judgement| alarm(judgement.unwrap().finding))
        });
        println!(
            "{name}: {:.1} % of families of 13 with 6 blocks",
            100.0 * rate
        );
        assert!(rate <= 0.06, "{name}: {rate}");
    }
}

#[test]
fn two_percent_of_cpu_time_are_found_in_thirty_blocks() {
    let random = &mut ChaCha8Rng::seed_from_u64(3);
    let found = share(COMPARISONS, || {
        let slower: Vec<f64> = CPU.comparisons(1, 30, random)[0]
            .iter()
            .map(|d| d + 1.02f64.ln())
            .collect();
        judge_family(&[slower], ALPHA)[0].unwrap().finding == Finding::Higher
    });
    println!("+2 % found in {:.1} %", 100.0 * found);
    assert!((found - 0.91).abs() <= 0.05, "{found}");
}

/// All processes of one, then all of the other, and a difference of two percent counts.
#[test]
fn one_after_the_other_calls_equals_different() {
    let random = &mut ChaCha8Rng::seed_from_u64(4);
    let mut rate = |noise: &Noise, runs: usize| {
        share(COMPARISONS, || {
            let sequence = noise.sequence(2 * runs, random);
            let (first, second) = sequence.split_at(runs);
            (mean(first).unwrap() - mean(second).unwrap()).abs() > 1.02f64.ln()
        })
    };
    for (name, noise) in [("wall", WALL), ("CPU", CPU)] {
        let (one, ten) = (rate(&noise, 1), rate(&noise, 10));
        println!(
            "{name}: one after the other {:.1} % with 1 run, {:.1} % with 10",
            100.0 * one,
            100.0 * ten
        );
        assert!(one > 0.3 && ten > 0.3, "{name}: {one}, {ten}");
    }
}

/// A look after each block from the sixth to the fortieth, ending at the first p below 5 %:
/// measured, 23 to 25 %.
#[test]
fn stopping_on_significance_calls_equals_different() {
    let random = &mut ChaCha8Rng::seed_from_u64(5);
    let rate = share(COMPARISONS / 4, || {
        let differences = CPU.comparisons(1, 40, random).remove(0);
        (6..=40).any(|blocks| signed_rank(&differences[..blocks]).unwrap() < 0.05)
    });
    println!("stopping on significance: {:.1} %", 100.0 * rate);
    assert!(rate > 0.15, "{rate}");
}

/// The differences of a comparison of equals that ends as soon as it is precise.
fn until_precise(
    precision: f64,
    least: usize,
    mut most: impl FnMut(usize) -> Vec<f64>,
) -> Vec<f64> {
    let stopping = Stopping {
        precision,
        ..usual(least)
    };
    let mut differences = most(stopping.most);
    let ends = |blocks: &usize| {
        stopping.after(*blocks, &[shift(&differences[..*blocks])], false) != Next::GoOn
    };
    let blocks = (stopping.least..=stopping.most).find(ends).unwrap();
    differences.truncate(blocks);
    differences
}

/// An interval that is narrow by chance ends the run, and such intervals miss the truth more often:
/// p falls below 5 % in 6 to 7 % of these runs.
#[test]
fn stopping_on_precision_does_not() {
    let random = &mut ChaCha8Rng::seed_from_u64(6);
    let mut rates = |name: &str,
                     runs: usize,
                     comparison: &mut dyn FnMut(&mut ChaCha8Rng) -> Vec<f64>| {
        let (mut at_alpha, mut blocks) = (0, 0);
        let rate = share(runs, || {
            let differences = comparison(random);
            blocks += differences.len();
            let alarm_at = |alpha| alarm(judge_family(&[&differences], alpha)[0].unwrap().finding);
            at_alpha += usize::from(alarm_at(ALPHA));
            alarm_at(ALPHA_UNTIL_PRECISE)
        });
        let (at_alpha, blocks) = (at_alpha as f64 / runs as f64, blocks as f64 / runs as f64);
        println!(
            "{name}: {:.1} % after {blocks:.1} blocks, {:.1} % at 5 %",
            100.0 * rate,
            100.0 * at_alpha
        );
        assert!(rate <= 0.05, "{name}: {rate}");
        at_alpha
    };
    for (precision, least) in [(0.01, 10), (0.02, 10), (0.05, 6)] {
        rates(
            &format!("CPU, {precision}"),
            COMPARISONS / 4,
            &mut |random| {
                until_precise(precision, least, |most| {
                    CPU.comparisons(1, most, random).remove(0)
                })
            },
        );
    }
    let at_alpha = rates("normal, 0.01", COMPARISONS / 2, &mut |random| {
        until_precise(0.01, 10, |most| {
            (0..most).map(|_| 0.026 * normal(random)).collect()
        })
    });
    assert!(
        at_alpha > 0.055,
        "{at_alpha}: a level of its own had nothing to do"
    );
}

/// 24 rows whose distance from the baseline is just too large to be the same.
#[test]
fn rows_at_the_threshold_are_rarely_called_the_same() {
    let random = &mut ChaCha8Rng::seed_from_u64(7);
    let mut uncorrected = 0;
    let rate = share(FAMILIES / 2, || {
        let family: Vec<Vec<f64>> = (0..24)
            .map(|_| {
                (0..15)
                    .map(|_| THRESHOLD + 0.004 * normal(random))
                    .collect()
            })
            .collect();
        uncorrected +=
            usize::from(family.iter().any(|differences| {
                paired(differences, &Rule::new(1, ALPHA)).unwrap().same_p < ALPHA
            }));
        judge_family(&family, ALPHA)
            .iter()
            .any(|judgement| judgement.unwrap().finding == Finding::Same)
    });
    let uncorrected = uncorrected as f64 / (FAMILIES / 2) as f64;
    println!(
        "same at the threshold: {:.1} % of families of 24, uncorrected {:.1} %",
        100.0 * rate,
        100.0 * uncorrected
    );
    assert!(rate <= 0.05, "{rate}");
    assert!(
        uncorrected > 0.2,
        "without Holm {uncorrected}, so the correction had nothing to do"
    );
}
