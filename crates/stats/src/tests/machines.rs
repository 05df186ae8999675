//! How often the interval for the next machine contains it, and how often machines that agree are
//! said to differ.

use super::noise::{normal, share};
use crate::{
    ALPHA, BETWEEN_RUNS, Finding, LEAST_TO_TRANSFER, Machines, Rule, Transfer, judge_tested,
    machines, paired,
};
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const CAMPAIGNS: usize = 20_000;
/// Standard deviations of a machine's own estimate: its blocks scatter.
const ERRORS: [f64; 2] = [0.0035, 0.0105];

#[test]
fn the_next_machine_lies_within_its_interval_as_often_as_promised() {
    covers_the_next(&[3, 5, 20], &[0.0, 0.01, 0.1]);
}

#[test]
#[ignore = "make test-all"]
fn so_it_does_for_all_numbers_of_machines() {
    covers_the_next(&[3, 4, 5, 8, 10, 20], &[0.0, 0.005, 0.01, 0.02, 0.1]);
}

fn covers_the_next(counts: &[usize], deviations: &[f64]) {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    for &count in counts {
        for &between in deviations {
            let mut turn = 0;
            let covered = share(CAMPAIGNS, || {
                // Machines are not equally steady.
                let estimates: Vec<f64> = (0..count)
                    .map(|machine| {
                        let error = ERRORS[(machine + turn) % 2];
                        between * normal(&mut random) + error * normal(&mut random)
                    })
                    .collect();
                turn += 1;
                let truth = between * normal(&mut random);
                let next = machines(&estimates).unwrap().next;
                (next.low..=next.high).contains(&truth)
            });
            assert!(covered >= 0.945, "{count} machines, {between}: {covered}");
        }
    }
}

/// How the log ratios of machines, or the means of types, scatter.
#[derive(Clone, Copy, Debug)]
enum Scatter {
    Normal,
    /// Student's with three degrees of freedom: long tails.
    T3,
    /// Two kinds, 0.3 apart; the share of the second.
    Kinds(f64),
}

const SCATTERS: [Scatter; 4] = [
    Scatter::Normal,
    Scatter::T3,
    Scatter::Kinds(0.5),
    Scatter::Kinds(0.2),
];
/// Standard deviation within a kind, and of the estimate of a machine.
const WITHIN: f64 = 0.02;

impl Scatter {
    fn one(self, random: &mut impl Rng) -> f64 {
        match self {
            Scatter::Normal => 0.1 * normal(random),
            Scatter::T3 => {
                let squares: f64 = (0..3).map(|_| normal(random).powi(2)).sum();
                0.1 * normal(random) / (squares / 3.0).sqrt()
            }
            Scatter::Kinds(second) => {
                let is_second = random.random::<f64>() < second;
                0.3 * f64::from(is_second) + WITHIN * normal(random)
            }
        }
    }

    fn mean(self) -> f64 {
        match self {
            Scatter::Kinds(second) => 0.3 * second,
            _ => 0.0,
        }
    }

    /// The share of campaigns of so many machines, or types of one to three machines each, in which
    /// this is true of what they say together.
    fn share_of(
        self,
        count: usize,
        of_types: bool,
        mut is_true: impl FnMut(&Machines, f64) -> bool,
    ) -> f64 {
        let mut random = ChaCha8Rng::seed_from_u64(13);
        share(CAMPAIGNS / 2, || {
            let estimates: Vec<f64> = (0..count)
                .map(|unit| {
                    let machines = if of_types { 1 + unit % 3 } else { 1 };
                    let error = WITHIN / (machines as f64).sqrt();
                    self.one(&mut random) + error * normal(&mut random)
                })
                .collect();
            let next = self.one(&mut random);
            is_true(&machines(&estimates).unwrap(), next)
        })
    }
}

#[test]
fn of_any_scatter_the_next_machine_or_type_lies_in_its_interval_or_there_are_too_few() {
    for count in 2..LEAST_TO_TRANSFER {
        let alike = machines(&vec![-0.5; count]).unwrap();
        let said = alike.transfer(&vec![Finding::Lower; count], 1);
        assert_eq!(said, Transfer::TooFew, "{count}");
    }
    for of_types in [false, true] {
        for scatter in SCATTERS {
            for count in [LEAST_TO_TRANSFER, 8, 20] {
                let covered = scatter.share_of(count, of_types, |it, next| {
                    (it.next.low..=it.next.high).contains(&next)
                });
                assert!(
                    covered >= 0.93,
                    "{scatter:?}, {count}, types {of_types}: {covered}"
                );
            }
        }
    }
}

/// What the documents say of it, and why "on average" is about the machines that were measured.
#[test]
fn the_interval_of_the_mean_is_right_for_normal_scatter_and_too_narrow_for_a_rare_kind() {
    let covered = |scatter: Scatter, count| {
        scatter.share_of(count, false, |it, _| {
            (it.mean.low..=it.mean.high).contains(&scatter.mean())
        })
    };
    assert!(covered(Scatter::Normal, LEAST_TO_TRANSFER) >= 0.94);
    for count in [3, 4, LEAST_TO_TRANSFER, 8] {
        let of_a_rare_kind = covered(Scatter::Kinds(0.2), count);
        assert!(
            (0.6..0.9).contains(&of_a_rare_kind),
            "{count}: {of_a_rare_kind}"
        );
    }
}

#[test]
fn machines_that_agree_are_hardly_ever_said_to_differ_and_a_planted_split_is_found() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let rule = Rule::new(6, ALPHA);
    let mut word = |effects: [f64; 6]| {
        let tested = effects.map(|effect| {
            // One run on each machine.
            let effect = effect + BETWEEN_RUNS * normal(&mut random);
            let logs = (0..15).map(|_| effect + 0.02 * normal(&mut random));
            let tested = paired(&logs.collect::<Vec<f64>>(), &rule)?;
            Some(tested.with_scatter(BETWEEN_RUNS, &rule))
        });
        let judged = judge_tested(&tested, &rule);
        let judged: Vec<_> = judged.into_iter().flatten().collect();
        let findings: Vec<Finding> = judged.iter().map(|it| it.finding).collect();
        let estimates: Vec<f64> = judged.iter().map(|it| it.shift.estimate).collect();
        machines(&estimates).unwrap().transfer(&findings, 1)
    };
    let differs = share(1000, || word([0.0; 6]) == Transfer::DiffersByMachine);
    assert!(differs <= 0.05, "{differs}");
    let split = [0.2, -0.2, 0.2, -0.2, 0.2, -0.2];
    assert_eq!(
        share(100, || word(split) == Transfer::DiffersByMachine),
        1.0
    );
    assert_eq!(share(100, || word([-0.4; 6]) == Transfer::Lower), 1.0);
    assert_eq!(share(100, || word([0.4; 6]) == Transfer::Higher), 1.0);
}

#[test]
fn words_follow_from_both_intervals() {
    use Finding::{Higher, Lower, Unclear};
    for (estimates, findings, expected) in [
        (
            &[-0.1, -0.11, -0.09, -0.1][..],
            &[Lower; 4][..],
            Transfer::TooFew,
        ),
        (
            &[-0.1, -0.11, -0.09, -0.1, -0.1, -0.1],
            &[Lower; 6],
            Transfer::Lower,
        ),
        (
            &[0.1, 0.11, 0.09, 0.1, 0.1, 0.1],
            &[Higher; 6],
            Transfer::Higher,
        ),
        // An average that hides machines on which it is the other way round.
        (
            &[-0.3, -0.3, -0.3, -0.3, 0.05],
            &[Lower, Lower, Lower, Lower, Higher],
            Transfer::DiffersByMachine,
        ),
        (
            &[-0.1, -0.2, -0.05, -0.3, -0.15, -0.1],
            &[Lower; 6],
            Transfer::LowerOnAverage,
        ),
        (
            &[0.1, 0.2, 0.05, 0.3, 0.15, 0.1],
            &[Higher; 6],
            Transfer::HigherOnAverage,
        ),
        (
            &[0.001, -0.001, 0.0005, 0.0, 0.001, -0.001],
            &[Unclear; 6],
            Transfer::Same,
        ),
        (
            &[0.02, -0.03, 0.01, 0.02, -0.03, 0.01],
            &[Unclear; 6],
            Transfer::Unclear,
        ),
    ] {
        let said = machines(estimates).unwrap().transfer(findings, 1);
        assert_eq!(said, expected, "{estimates:?}");
    }
    // Among many rows some mean lies that far out by chance.
    let steady = machines(&[-0.1, -0.2, -0.05, -0.3, -0.15, -0.1]).unwrap();
    assert_eq!(steady.transfer(&[Lower; 6], 60), Transfer::Unclear);
    assert!(machines(&[0.1]).is_none());
    assert!(machines(&[0.1, f64::NAN, 0.1]).is_none());
}

#[test]
fn more_of_what_scatters_most_helps_most() {
    let across = machines(&[0.00, 0.02, 0.04, 0.06]).unwrap();
    // Nearly all of it lies between machines, or within each.
    let between = across.if_doubled(&[0.001; 4]).unwrap();
    assert!(between.machines < between.blocks);
    let within = across.if_doubled(&[across.spread; 4]).unwrap();
    assert!(within.blocks < across.next.half_width());
    // More blocks never make it wider, even if machines lie closer together than their errors.
    let close = across.if_doubled(&[3.0 * across.spread; 4]).unwrap();
    assert!((close.blocks / across.next.half_width() - 1.0).abs() < 1e-9);
    assert!(across.if_doubled(&[]).is_none());
}
