//! Cases in which both rows bear the same floor: what a verdict, a bound and a mean over cases are
//! worth there.

use super::super::{ALPHA, Finding, above_floor, judge_family, mean, median, shift};
use super::noise::{CPU, normal};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

const BLOCKS: usize = 12;

/// A candidate, the baseline and the floor alone: their times in each block.
struct Case {
    candidate: Vec<f64>,
    baseline: Vec<f64>,
    floor: f64,
}

impl Case {
    /// Of rows that take these times of their own above this floor.
    fn new(candidate: f64, baseline: f64, floor: f64, random: &mut ChaCha8Rng) -> Case {
        let noise = CPU.sequence(3 * BLOCKS, random);
        let of = |place: usize, time: f64| {
            let logs = noise.iter().skip(place).step_by(3);
            logs.map(|log| time * log.exp()).collect::<Vec<f64>>()
        };
        Case {
            candidate: of(0, candidate + floor),
            baseline: of(1, baseline + floor),
            floor: median(&of(2, floor)).unwrap(),
        }
    }

    fn is_floored(&self) -> bool {
        let of = |times: &[f64]| median(times).unwrap();
        self.floor > 0.5 * of(&self.candidate).min(of(&self.baseline))
    }

    fn logs(&self, time: impl Fn(f64) -> f64) -> Vec<f64> {
        let pairs = self.candidate.iter().zip(&self.baseline);
        pairs.map(|(a, b)| (time(*a) / time(*b)).ln()).collect()
    }

    fn log_ratio(&self, time: impl Fn(f64) -> f64) -> f64 {
        shift(&self.logs(time)).unwrap().estimate
    }
}

#[test]
fn with_a_floor_of_three_fifths_every_clear_verdict_has_the_right_sign_and_the_ratio_is_a_bound() {
    let random = &mut ChaCha8Rng::seed_from_u64(21);
    let mut clear = 0;
    for place in 0..2400 {
        // The faster row's own time is 4 of 10, the floor 6; the slower one's 6 to 12.
        let slower = 6.0 + (place % 7) as f64;
        let (ours, theirs) = if place % 2 == 0 {
            (4.0, slower)
        } else {
            (slower, 4.0)
        };
        let case = Case::new(ours, theirs, 6.0, random);
        let logs = case.logs(|time| time);
        let finding = judge_family(&[&logs], ALPHA)[0].unwrap().finding;
        let is_less = match finding {
            Finding::Lower => true,
            Finding::Higher => false,
            _ => continue,
        };
        clear += 1;
        assert_eq!(is_less, ours < theirs);
        let (seen, own) = (case.log_ratio(|time| time), (ours / theirs).ln());
        assert!(seen.abs() < own.abs(), "{seen} is no bound of {own}");
    }
    assert!(clear >= 2000, "{clear} of 2400 are clear");
}

#[test]
fn over_cases_a_mean_without_the_floor_is_unbiased_and_no_other_is() {
    let random = &mut ChaCha8Rng::seed_from_u64(22);
    let (mut all, mut left_out) = (Vec::new(), Vec::new());
    let (mut taken_out, mut everywhere) = (Vec::new(), Vec::new());
    for _ in 0..1000 {
        let (mut truth, mut kept, mut raw) = (vec![], vec![], vec![]);
        let (mut some, mut net) = (vec![], vec![]);
        for _ in 0..6 {
            let mut about = |middle: f64, sd: f64| middle * (sd * normal(random)).exp();
            let (baseline, ratio, floor) = (about(20.0, 0.8), about(0.6, 0.4), about(6.0, 0.6));
            let case = Case::new(ratio * baseline, baseline, floor, random);
            let measured = case.log_ratio(|time| time);
            let without = case.log_ratio(|time| above_floor(time, case.floor));
            truth.push(ratio.ln());
            raw.push(measured);
            net.push(without);
            if case.is_floored() {
                some.push(without);
            } else {
                kept.push(measured);
                some.push(measured);
            }
        }
        let truth = mean(&truth).unwrap();
        all.push(mean(&raw).unwrap() - truth);
        left_out.extend(mean(&kept).map(|mean| mean - truth));
        taken_out.push(mean(&some).unwrap() - truth);
        everywhere.push(mean(&net).unwrap() - truth);
    }
    let bias = |errors: &[f64]| mean(errors).unwrap();
    let (all, left_out) = (bias(&all), bias(&left_out));
    let (taken_out, everywhere) = (bias(&taken_out), bias(&everywhere));
    println!(
        "bias of ln ratio: {all:.3} as measured, {left_out:.3} without cases of a high floor, \
         {taken_out:.3} with the floor taken out of those, {everywhere:.3} out of all"
    );
    let least = [all, left_out, taken_out]
        .map(f64::abs)
        .into_iter()
        .min_by(f64::total_cmp);
    assert!(
        everywhere.abs() < 0.5 * least.unwrap(),
        "taken out of all {everywhere}, the others {least:?}"
    );
}
