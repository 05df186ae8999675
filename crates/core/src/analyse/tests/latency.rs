//! Tails by values: what is merged, what is reported, and what is not.

use super::super::fake_run::{FakeRun, crash};
use super::super::{TableRow, analyse};
use crate::plan::Mode;
use crate::store::Purpose;
use proptest::prelude::*;

fn lab(blocks: u32, times: impl Fn(&str) -> Vec<(u64, u64)>) -> FakeRun {
    FakeRun::new(&["glibc", "hoard"], &["larson"], blocks)
        .fill(|_, _, _| 20.0)
        .timing_calls(1, times)
}

fn row(lab: &FakeRun, row: usize) -> TableRow {
    analyse(&lab.run, &lab.records).latency[0].rows[row].clone()
}

fn malloc_ns(row: &TableRow, key: &str) -> Option<u64> {
    row.call_ns("malloc", key)
}

/// How many calls were timed, if any was.
fn count(lab: &FakeRun, place: usize) -> Option<u64> {
    let row = row(lab, place);
    row.of_function("malloc", "max_ns").map(|cell| cell.n)
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
    let row = row(&lab, 0);
    assert_eq!(count(&lab, 0), Some(200));
    assert_eq!(
        ["p50_ns", "p90_ns", "max_ns"].map(|key| malloc_ns(&row, key)),
        [Some(30), Some(90), Some(91)]
    );
    let longest = &row.calls.as_ref().unwrap().longest[0];
    assert_eq!(
        (longest.call.ns, &*longest.cell),
        (91, "larson@2/b01/glibc")
    );
}

#[test]
fn a_percentile_is_told_only_where_ten_calls_lie_beyond() {
    let told = |count| {
        // All metrics but the longest call, which is always known.
        row(&lab(1, |_| vec![(30, count)]), 0).cells.len() - 1
    };
    let counts = [19, 20, 99, 100, 999, 1000, 9999, 10_000, 99_999, 100_000];
    assert_eq!(counts.map(told), [0, 1, 1, 2, 2, 3, 3, 4, 4, 5]);
}

#[test]
fn one_process_that_is_not_ok_leaves_the_row_without_a_tail() {
    let lab = lab(3, |_| vec![(30, 1000)]).fail("larson@2/b02/hoard", crash());
    assert!(count(&lab, 0).is_some());
    assert!(row(&lab, 1).cells.is_empty());
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
        serde_json::from_str(r#"{"wall_ns": 10000000000, "foreign_cpu_share": 0.9}"#).unwrap();
    lab.records.extend(again);
    assert_eq!((count(&lab, 0), count(&lab, 1)), (Some(900), Some(900)));
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
            .all(|row| !row.has_run())
    );
    // And the opposite.
    let mut samples = lab(10, |_| vec![(30, 1000)]);
    samples
        .records
        .iter_mut()
        .for_each(|record| record.purpose = Purpose::Sample);
    assert!(row(&samples, 0).cells.is_empty());
}

proptest! {
    #[test]
    fn a_percentile_is_never_below_the_exact_one_nor_far_above(
        times in prop::collection::vec((0..3u64, 0..6_000_000_000u64, 1..400u64), 1..60),
    ) {
        // Short times as well as long ones.
        let times: Vec<(u64, u64)> = times.into_iter().map(|(kind, ns, count)| (ns >> (kind * 12), count)).collect();
        let lab = lab(1, |_| times.clone());
        let row = row(&lab, 0);
        let Some(count) = count(&lab, 0) else { return Ok(()) };
        let mut all: Vec<u64> = times.iter().flat_map(|(ns, count)| vec![*ns; *count as usize]).collect();
        all.sort_unstable();
        for (share, key) in [(0.5, "p50_ns"), (0.9, "p90_ns"), (0.99, "p99_ns")] {
            let Some(told) = malloc_ns(&row, key) else { continue };
            let exact = all[((all.len() as f64 * share - 1e-6).ceil() as usize).max(1) - 1];
            prop_assert!(told >= exact && told <= exact + exact / 64 + 1, "{} for {} of {}", told, exact, share);
        }
        prop_assert_eq!(count, all.len() as u64);
    }
}
