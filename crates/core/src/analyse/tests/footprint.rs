//! Memory tables by values: the ratios, and the figures that stay missing.

use super::super::fake_run::{FakeRun, crash};
use super::super::{TableRow, analyse};
use crate::analyse::held;
use crate::store::Record;

fn lab(course: impl Fn(&str) -> Option<(u64, u64)>) -> FakeRun {
    FakeRun::new(&["glibc", "hoard"], &["larson"], 3)
        .fill(|_, _, _| 20.0)
        .following_memory(course)
}

fn rows(lab: &FakeRun) -> Vec<TableRow> {
    let analysis = analyse(&lab.run, &lab.records);
    assert!(analysis.cases.is_empty(), "nothing of such a run is a time");
    analysis.footprints[0].rows.clone()
}

fn median(row: &TableRow, metric: &str) -> f64 {
    row.cell(metric).unwrap().spread.median
}

#[test]
fn each_overhead_is_resident_over_live_at_its_moment() {
    let rows = rows(&lab(|name| {
        Some(if name == "hoard" { (8, 12) } else { (8, 16) })
    }));
    assert_eq!(rows[0].allocator, "hoard", "the least first");
    let median = |metric: &str| median(&rows[0], metric);
    let peak = rows[0].cell("peak_demand_bytes").unwrap();
    assert_eq!((peak.n, peak.spread.median), (3, f64::from(8 << 20)));
    assert_eq!(
        (
            median("overhead_at_peak_demand"),
            median("overhead_at_peak_footprint")
        ),
        (1.5, 3.0)
    );
    assert_eq!(
        (median("peak_over_peak"), median("mean_overhead")),
        (3.0, 3.0)
    );
    assert_eq!((median("page_occupancy"), median("huge_share")), (0.5, 0.5));
    let kept: Vec<(&str, f64)> = rows[0]
        .cells
        .iter()
        .filter(|cell| cell.metric.key.starts_with("retained_bytes_"))
        .map(|cell| (cell.metric.key, cell.spread.median))
        .collect();
    assert_eq!(
        kept,
        [("retained_bytes_100_ms", f64::from(3 << 20))],
        "the harness's tables taken out"
    );
}

#[test]
fn below_a_mebibyte_pages_decide_and_no_overhead_is_told() {
    let rows = rows(&lab(|_| Some((0, 1))));
    for overhead in ["overhead_at_peak_demand", "mean_overhead", "peak_over_peak"] {
        assert!(rows[0].cell(overhead).is_none(), "{overhead}");
    }
}

#[test]
fn what_was_over_too_soon_or_failed_has_a_reason_and_no_figure() {
    let lab = lab(|name| (name == "glibc").then_some((8, 16)));
    let row = rows(&lab)
        .into_iter()
        .find(|row| row.allocator == "hoard")
        .unwrap();
    assert!(row.cell("peak_demand_bytes").is_none());
    assert_eq!(row.sampling.unwrap().unseen, 3);
    let lab = lab.fail("larson@2/b01/glibc", crash());
    let row = rows(&lab)
        .into_iter()
        .find(|row| row.allocator == "glibc")
        .unwrap();
    assert!(row.cells.is_empty() && row.failed.is_some());
}

/// hoard holds 48 MiB with two threads, and the MiB that `alone` returns with one.
fn with_one_thread(live: u64, alone: impl Fn(u32) -> u64) -> FakeRun {
    let mut lab = FakeRun::new(&["glibc", "hoard"], &["trace:a"], 3);
    lab.run
        .plan
        .cases
        .push(lab.run.plan.cases[0].played_by_one());
    let mut lab = lab
        .fill(|_, _, _| 20.0)
        .following_memory(|_| Some((live, 24)));
    for record in lab.records.iter_mut().filter(|record| record.threads == 1) {
        if let Some(course) = &mut record.memory {
            course.peak_footprint.heap_bytes = 1;
            course.most_heap_bytes = alone(record.block) << 20;
        }
    }
    lab
}

#[test]
fn blow_up_is_the_footprint_of_several_threads_over_that_of_one_in_the_same_block() {
    let lab = with_one_thread(8, |block| [12, 24, 96][block as usize]);
    let footprints = analyse(&lab.run, &lab.records).footprints;
    let blow_up = |case: usize| {
        footprints[case].rows[0]
            .cell("blow_up")
            .map(|cell| cell.spread)
    };
    let found = blow_up(0).unwrap();
    assert_eq!((found.min, found.median, found.max), (0.5, 2.0, 4.0));
    assert_eq!(
        (footprints[1].threads, blow_up(1)),
        (1, None),
        "one thread has none"
    );
    let cases = held::with_peaks(&footprints);
    assert!(cases.iter().all(|table| table.threads > 1), "{cases:?}");
    let small = with_one_thread(0, |_| 24);
    assert!(
        rows(&small)[0].cell("blow_up").is_none(),
        "below a mebibyte"
    );
    let mut unseen = with_one_thread(8, |_| 24);
    let is_last = |record: &&mut Record| (record.threads, record.block) == (1, 2);
    for record in unseen.records.iter_mut().filter(is_last) {
        record.memory = None;
    }
    assert_eq!(
        rows(&unseen)[0].cell("blow_up").unwrap().n,
        2,
        "only blocks that have both"
    );
    let failed = lab.fail("trace:a@1/b01/hoard", crash());
    let rows = rows(&failed);
    let of = |name: &str| {
        let row = rows.iter().find(|row| row.allocator == name).unwrap();
        assert!(row.cell("peak_demand_bytes").is_some());
        row.cell("blow_up")
    };
    assert!(
        of("hoard").is_none() && of("glibc").is_some(),
        "a row that failed is no measure"
    );
}

#[test]
fn an_allocator_has_huge_pages_or_none() {
    let mut lab = lab(|_| Some((8, 16)));
    for record in lab.records.iter_mut().filter(|it| it.allocator == "glibc") {
        if let Some(memory) = &mut record.memory {
            memory.most_anon_huge_bytes = 0;
        }
    }
    let analysis = analyse(&lab.run, &lab.records);
    let shares: Vec<(&str, f64)> = (analysis.huge_shares.iter())
        .map(|(name, share)| (name.as_str(), *share))
        .collect();
    assert_eq!(shares, [("glibc", 0.0), ("hoard", 0.5)]);
}
