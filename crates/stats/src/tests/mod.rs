//! Compares with vectors from SciPy (`scripts/scipy_vectors.py`), and tests properties that hold
//! for any numbers.

mod bootstrap;
mod false_alarms;
mod finding;
mod floor;
mod machines;
mod modes;
mod nested;
mod noise;
mod runs;
mod stopping;

use super::bootstrap::tail;
use super::normal::{EXACT_UP_TO, upper_point, upper_tail};
use super::{
    Shift, holm, mean_shift, median, rank_sum, shift, shift_between, signed_rank, student, welch,
};
use proptest::prelude::*;
use serde_json::Value;
use std::collections::BTreeMap;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors.json")).unwrap()
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .unwrap()
        .iter()
        .map(|x| x.as_f64().unwrap())
        .collect()
}

#[track_caller]
fn close(ours: f64, theirs: &Value, what: &str) {
    let theirs = theirs.as_f64().unwrap();
    assert!(
        (ours - theirs).abs() <= 1e-12 * theirs.abs().max(1e-3),
        "{what}: {ours} is not {theirs}"
    );
}

/// A vector without the `interval` key does not test it; null means that there is none.
#[track_caller]
fn same_shift(shift: &Shift, vector: &Value, name: &str) {
    close(shift.estimate, &vector["estimate"], name);
    match vector.get("interval") {
        None => {}
        Some(Value::Null) => assert_eq!(shift.interval, None, "{name}"),
        Some(bounds) => {
            close(shift.interval.unwrap().low, &bounds[0], name);
            close(shift.interval.unwrap().high, &bounds[1], name);
        }
    }
}

#[test]
fn agrees_with_scipy() {
    for vector in vectors()["vectors"].as_array().unwrap() {
        let name = vector["name"].as_str().unwrap();
        let differences = numbers(&vector["differences"]);
        close(median(&differences).unwrap(), &vector["median"], name);
        close(signed_rank(&differences).unwrap(), &vector["p"], name);
        if let Some(p) = vector.get("student_p") {
            close(student(&differences).unwrap(), p, name);
        }
        same_shift(&shift(&differences).unwrap(), vector, name);
    }
}

#[test]
fn unpaired_samples_agree_with_scipy() {
    let vectors = vectors();
    let unpaired = vectors["unpaired"].as_array().unwrap();
    assert_eq!(unpaired.len(), 11);
    for vector in unpaired {
        let name = vector["name"].as_str().unwrap();
        let (a, b) = (numbers(&vector["a"]), numbers(&vector["b"]));
        close(rank_sum(&a, &b).unwrap(), &vector["p"], name);
        same_shift(&shift_between(&a, &b).unwrap(), vector, name);
        match vector.get("welch_p") {
            Some(p) => close(welch(&a, &b).unwrap(), p, name),
            None => assert_eq!(welch(&a, &b), None, "{name}"),
        }
    }
    assert_eq!(welch(&[1.0, 1.0], &[1.0, 1.0]), Some(1.0));
    assert_eq!(student(&[1.0; 6]), Some(0.0));
    assert_eq!(student(&[1.0]), None);
    assert_eq!(
        (rank_sum(&[], &[1.0]), rank_sum(&[f64::NAN], &[1.0])),
        (None, None)
    );
    assert_eq!(rank_sum(&[1.0, 1.0], &[1.0]), Some(1.0));
    let many = [1.0; EXACT_UP_TO + 1];
    assert_eq!(shift_between(&many, &[1.0]).unwrap().interval, None);
}

#[test]
fn normal_tail_agrees_with_scipy() {
    for point in vectors()["normal_tails"].as_array().unwrap() {
        let (ours, theirs) = (
            upper_tail(point["z"].as_f64().unwrap()),
            point["p"].as_f64().unwrap(),
        );
        assert!(
            (ours - theirs).abs() <= 1e-12 * theirs,
            "{ours} is not {theirs}"
        );
    }
}

#[test]
fn normal_point_agrees_with_scipy() {
    for point in vectors()["normal_points"].as_array().unwrap() {
        close(
            upper_point(point["p"].as_f64().unwrap()),
            &point["z"],
            "point",
        );
    }
}

#[test]
fn holm_agrees_with_the_closed_test() {
    for family in vectors()["families"].as_array().unwrap() {
        let adjusted = holm(&numbers(&family["p"])).unwrap();
        assert_eq!(adjusted.len(), family["adjusted"].as_array().unwrap().len());
        for (ours, theirs) in adjusted
            .into_iter()
            .zip(family["adjusted"].as_array().unwrap())
        {
            close(ours, theirs, "adjusted p");
        }
    }
}

/// Bounds from different resamples: as near as their Monte Carlo errors allow, ours and that of
/// SciPy's 50,000 resamples.
#[test]
fn bootstrap_agrees_with_scipy() {
    for tails in vectors()["bootstrap_tails"].as_array().unwrap() {
        close(
            tail(tails["blocks"].as_u64().unwrap() as usize),
            &tails["tail"],
            "tail",
        );
    }
    for vector in vectors()["mean_shifts"].as_array().unwrap() {
        let name = vector["name"].as_str().unwrap();
        let cells: Vec<BTreeMap<u32, f64>> =
            serde_json::from_value(vector["cells"].clone()).unwrap();
        let ours = mean_shift(&cells, 1).unwrap();
        close(ours.estimate, &vector["estimate"], name);
        let interval = ours.interval.unwrap();
        let (theirs, errors) = (numbers(&vector["interval"]), numbers(&vector["error"]));
        for (ours, (theirs, error)) in [interval.low, interval.high]
            .into_iter()
            .zip(theirs.into_iter().zip(errors))
        {
            assert!(
                (ours - theirs).abs() <= 3.0 * error * 1.2f64.sqrt(),
                "{name}: {ours} is not {theirs} +- {error}"
            );
        }
    }
}

#[test]
fn too_few_differences_have_no_interval() {
    assert!(
        shift(&[0.1, 0.2, 0.3, 0.4, 0.5])
            .unwrap()
            .interval
            .is_none()
    );
    assert!(
        shift(&[0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
            .unwrap()
            .interval
            .is_some()
    );
}

#[test]
fn odd_data_is_missing_not_a_number() {
    for odd in [
        &[][..],
        &[1.0, f64::NAN],
        &[f64::INFINITY, 1.0],
        &[f64::NEG_INFINITY, f64::INFINITY],
    ] {
        assert_eq!(median(odd), None);
        assert_eq!(shift(odd), None);
        assert_eq!(signed_rank(odd), None);
    }
}

#[test]
fn nothing_but_zeros_is_no_evidence() {
    assert_eq!(signed_rank(&[0.0; 20]), Some(1.0));
    assert_eq!(shift(&[0.0; 20]).unwrap().estimate, 0.0);
}

proptest! {
    #[test]
    fn interval_contains_estimate(d in prop::collection::vec(-1.0..1.0f64, 1..70)) {
        let shift = shift(&d).unwrap();
        prop_assert_eq!(shift.interval.is_some(), d.len() >= 6);
        if let Some(interval) = shift.interval {
            prop_assert!(interval.low <= shift.estimate && shift.estimate <= interval.high);
        }
    }

    #[test]
    fn swapping_the_sides_mirrors_everything(d in prop::collection::vec(-1.0..1.0f64, 1..70)) {
        let swapped: Vec<f64> = d.iter().map(|x| -x).collect();
        let (there, back) = (shift(&d).unwrap(), shift(&swapped).unwrap());
        prop_assert_eq!(there.estimate, -back.estimate);
        prop_assert_eq!(there.interval.map(|i| (i.low, i.high)), back.interval.map(|i| (-i.high, -i.low)));
        prop_assert_eq!(signed_rank(&d).unwrap(), signed_rank(&swapped).unwrap());
    }

    // Whole numbers: floating point adds them exactly, so equality can be tested, and they include
    // ties and zeros.
    #[test]
    fn a_constant_moves_estimate_and_interval_with_it(d in prop::collection::vec(-50..50i32, 1..70), by in -50..50i32) {
        let plain: Vec<f64> = d.iter().map(|x| f64::from(*x)).collect();
        let moved: Vec<f64> = d.iter().map(|x| f64::from(x + by)).collect();
        let (plain, moved, by) = (shift(&plain).unwrap(), shift(&moved).unwrap(), f64::from(by));
        prop_assert_eq!(moved.estimate, plain.estimate + by);
        prop_assert_eq!(
            moved.interval.map(|i| (i.low, i.high)),
            plain.interval.map(|i| (i.low + by, i.high + by))
        );
    }

    #[test]
    fn p_is_a_probability(d in prop::collection::vec(-5..5i32, 1..70)) {
        let d: Vec<f64> = d.iter().map(|x| f64::from(*x)).collect();
        let p = signed_rank(&d).unwrap();
        prop_assert!(p > 0.0 && p <= 1.0);
    }
}
