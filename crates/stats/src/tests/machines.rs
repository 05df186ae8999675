//! How often the interval for the next machine contains it, and how often machines that agree are
//! said to differ.

use super::noise::{normal, share};
use crate::{Finding, Transfer, judge_family, machines};
use rand::SeedableRng;
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

#[test]
fn machines_that_agree_are_hardly_ever_said_to_differ_and_a_planted_split_is_found() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let mut word = |effects: [f64; 6]| {
        let families: Vec<Vec<f64>> = effects
            .iter()
            .map(|effect| {
                (0..15)
                    .map(|_| effect + 0.02 * normal(&mut random))
                    .collect()
            })
            .collect();
        let judged = judge_family(&families, 0.05);
        let judged: Vec<_> = judged.into_iter().flatten().collect();
        let findings: Vec<Finding> = judged.iter().map(|it| it.finding).collect();
        let estimates: Vec<f64> = judged.iter().map(|it| it.shift.estimate).collect();
        machines(&estimates).unwrap().transfer(&findings)
    };
    let differs = share(1000, || word([0.0; 6]) == Transfer::DiffersByMachine);
    assert!(differs <= 0.05, "{differs}");
    let split = [0.1, -0.1, 0.1, -0.1, 0.1, -0.1];
    assert_eq!(
        share(100, || word(split) == Transfer::DiffersByMachine),
        1.0
    );
    assert_eq!(share(100, || word([-0.2; 6]) == Transfer::Lower), 1.0);
    assert_eq!(share(100, || word([0.2; 6]) == Transfer::Higher), 1.0);
}

#[test]
fn words_follow_from_both_intervals() {
    use Finding::{Higher, Lower, Unclear};
    for (estimates, findings, expected) in [
        (&[-0.1, -0.1][..], &[Lower; 2][..], Transfer::TooFewMachines),
        (&[-0.1, -0.11, -0.09], &[Lower; 3], Transfer::Lower),
        (&[0.1, 0.11, 0.09], &[Higher; 3], Transfer::Higher),
        // An average that hides machines on which it is the other way round.
        (
            &[-0.3, -0.3, -0.3, -0.3, 0.05],
            &[Lower, Lower, Lower, Lower, Higher],
            Transfer::DiffersByMachine,
        ),
        (
            &[-0.1, -0.2, -0.05, -0.3, -0.15],
            &[Lower; 5],
            Transfer::LowerOnAverage,
        ),
        (
            &[0.1, 0.2, 0.05, 0.3, 0.15],
            &[Higher; 5],
            Transfer::HigherOnAverage,
        ),
        (&[0.001, -0.001, 0.0005], &[Unclear; 3], Transfer::Same),
        (&[0.02, -0.03, 0.01], &[Unclear; 3], Transfer::Unclear),
    ] {
        let said = machines(estimates).unwrap().transfer(findings);
        assert_eq!(said, expected, "{estimates:?}");
    }
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
    assert_eq!(close.blocks, across.next.half_width());
    assert!(across.if_doubled(&[]).is_none());
}
