//! Tails by values: what is merged, what is reported, and what is not.

use super::super::fake_run::{FakeRun, crash};
use super::super::{Called, analyse};
use crate::plan::Mode;
use crate::store::Purpose;
use proptest::prelude::*;

fn lab(blocks: u32, times: impl Fn(&str) -> Vec<(u64, u64)>) -> FakeRun {
    FakeRun::new(&["glibc", "hoard"], &["larson"], blocks)
        .fill(|_, _, _| 20.0)
        .timing_calls(1, times)
}

fn malloc(lab: &FakeRun, row: usize) -> Option<Called> {
    let analysis = analyse(&lab.run, &lab.records);
    analysis.latency[0].rows[row].functions.first().cloned()
}

#[test]
fn processes_are_merged_and_their_times_are_not_averaged() {
    let mut lab = lab(2, |_| vec![(30, 100)]);
    let slow = lab
        .cell("larson@2/b01/glibc")
        .measurement
        .as_mut()
        .unwrap()
        .latency
        .as_mut()
        .unwrap();
    slow.functions[0].buckets[0] = crate::execute::latency::Bucket {
        from_ns: 90,
        to_ns: 90,
        count: 100,
    };
    slow.functions[0].longest.ns = 91;
    let malloc = malloc(&lab, 0).unwrap();
    assert_eq!(
        (malloc.count, malloc.p50_ns, malloc.p90_ns),
        (200, Some(30), Some(90))
    );
    assert_eq!(
        (malloc.longest.ns, &*malloc.longest_cell),
        (91, "larson@2/b01/glibc")
    );
}

#[test]
fn a_percentile_is_told_only_where_ten_calls_lie_beyond() {
    let told = |count| {
        let called = malloc(&lab(1, |_| vec![(30, count)]), 0).unwrap();
        let Called {
            p50_ns,
            p90_ns,
            p99_ns,
            p99_9_ns,
            p99_99_ns,
            ..
        } = called;
        [p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns]
            .iter()
            .flatten()
            .count()
    };
    let counts = [19, 20, 99, 100, 999, 1000, 9999, 10_000, 99_999, 100_000];
    assert_eq!(counts.map(told), [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]);
}

#[test]
fn one_process_that_is_not_ok_leaves_the_row_without_a_tail() {
    let lab = lab(3, |_| vec![(30, 1000)]).fail("larson@2/b02/hoard", crash());
    assert!(malloc(&lab, 0).is_some());
    assert!(malloc(&lab, 1).is_none());
    let analysis = analyse(&lab.run, &lab.records);
    let failed = analysis.latency[0].rows[1].failed.as_ref();
    assert_eq!(failed.unwrap().of, 4);
    assert_eq!(analysis.failures.len(), 1);
}

#[test]
fn calls_of_a_disturbed_attempt_are_not_counted_where_a_quiet_one_is_there() {
    let mut lab = lab(1, |_| vec![(30, 1000)]);
    let mut again: Vec<_> = lab
        .records
        .iter()
        .filter(|record| record.purpose == Purpose::Latency)
        .cloned()
        .collect();
    for record in &mut again {
        (record.attempt, record.cell) = (1, record.cell.replace("b00", "b00~1").into());
        let latency = record
            .measurement
            .as_mut()
            .unwrap()
            .latency
            .as_mut()
            .unwrap();
        (
            latency.functions[0].buckets[0].count,
            latency.functions[0].count,
        ) = (900, 900);
    }
    lab.cell("larson@2/b00/hoard").interference =
        serde_json::from_str(r#"{"wall_ns": 1, "foreign_cpu_share": 0.9}"#).unwrap();
    lab.records.extend(again);
    assert_eq!(
        (
            malloc(&lab, 0).unwrap().count,
            malloc(&lab, 1).unwrap().count
        ),
        (900, 900)
    );
    assert_eq!(analyse(&lab.run, &lab.records).interference.repeated, 1);
}

#[test]
fn times_of_one_purpose_never_enter_the_results_of_the_other() {
    // A throughput run with stray records of this kind: their times, ten times as long, appear
    // nowhere.
    let mut mixed = lab(10, |_| vec![(30, 1000)]);
    mixed.run.plan.mode = Mode::Time;
    assert!(
        analyse(&mixed.run, &mixed.records).cases[0]
            .rows
            .iter()
            .all(|row| row.numbers().is_none())
    );
    // And the opposite.
    let mut samples = lab(10, |_| vec![(30, 1000)]);
    samples
        .records
        .iter_mut()
        .for_each(|record| record.purpose = Purpose::Sample);
    assert!(malloc(&samples, 0).is_none());
}

proptest! {
    #[test]
    fn a_percentile_is_never_below_the_exact_one_nor_far_above(
        times in prop::collection::vec((0..3u64, 0..6_000_000_000u64, 1..400u64), 1..60),
    ) {
        // Short times as well as long ones.
        let times: Vec<(u64, u64)> = times.into_iter().map(|(kind, ns, count)| (ns >> (kind * 12), count)).collect();
        let Some(called) = malloc(&lab(1, |_| times.clone()), 0) else { return Ok(()) };
        let mut all: Vec<u64> = times.iter().flat_map(|(ns, count)| vec![*ns; *count as usize]).collect();
        all.sort_unstable();
        for (share, told) in [(0.5, called.p50_ns), (0.9, called.p90_ns), (0.99, called.p99_ns)] {
            let Some(told) = told else { continue };
            let exact = all[((all.len() as f64 * share - 1e-6).ceil() as usize).max(1) - 1];
            prop_assert!(told >= exact && told <= exact + exact / 64 + 1, "{} for {} of {}", told, exact, share);
        }
        prop_assert_eq!(called.count, all.len() as u64);
    }
}
