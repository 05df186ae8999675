//! Rows by values: what enters a number, and what leaves a row without one.

use super::*;
use crate::analyse::fake_run::crash;
use crate::execute::Outcome;
use crate::observe::mean_heap::MeanHeap;
use crate::store::Purpose;

#[test]
fn numbers_come_from_warm_iterations_only() {
    let analysis = run(&FakeRun::new(&["glibc"], &["larson"], 7).fill(|_, _, _| 20.0));
    let numbers = numbers(&analysis, "glibc");
    assert!(close(numbers.time().spread.median, 20.0));
    assert!(close(numbers.rate().median, 100.0));
    assert!(close(numbers.median("cpu_ns_per_op").unwrap(), 12.5));
    assert_eq!(numbers.samples, 7);
    assert_eq!(
        (
            numbers.median("purge_share"),
            numbers.median("ns_per_op_without_purge")
        ),
        (None, None)
    );
}

#[test]
fn a_ratio_below_one_is_faster() {
    let analysis =
        run(&FakeRun::new(&["glibc", "rpmalloc"], &["larson"], 12).fill(against_glibc(10.0)));
    let ratio = numbers(&analysis, "rpmalloc").time().ratio.unwrap();
    let (low, high) = ratio.interval.unwrap();
    assert!(
        0.49 < low && low < ratio.ratio && ratio.ratio < high && high < 0.51,
        "{ratio:?}"
    );
    assert_eq!(ratio.pairs, 12);
    let baseline = numbers(&analysis, "glibc").time().ratio.unwrap();
    assert_eq!((baseline.ratio, baseline.interval), (1.0, None));
}

#[test]
fn ratios_pair_blocks_and_do_not_see_drift() {
    let drifting = |_: &str, allocator: &str, block: u32| {
        f64::from(block + 1) * if allocator == "glibc" { 10.0 } else { 11.0 }
    };
    let analysis = run(&FakeRun::new(&["glibc", "hoard"], &["larson"], 10).fill(drifting));
    let ratio = numbers(&analysis, "hoard").time().ratio.unwrap();
    assert!(
        close(ratio.ratio, 1.1) && close(ratio.interval.unwrap().1, 1.1),
        "{ratio:?}"
    );
}

#[test]
fn one_crash_hides_all_numbers_of_the_row() {
    let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 10).fill(against_glibc(10.0));
    let analysis = run(&lab.fail("larson@2/b03/hoard", crash()));
    let failed = row(&analysis, "hoard").failed.as_ref().unwrap();
    assert_eq!(failed.summary(), "crash 1 of 11: SIGSEGV in phase run");
    assert!(row(&analysis, "glibc").has_run());
    assert_eq!(analysis.failures[0].cells, ["larson@2/b03/hoard"]);
    assert_eq!(
        analysis.left_out,
        [LeftOut {
            allocator: "hoard".into(),
            failed: 1,
            missing: 0,
            of: 1
        }]
    );
    assert!(
        matches!(&analysis.conclusion, Conclusion::OnlyOne { allocator } if allocator == "glibc")
    );
}

#[test]
fn a_failed_check_hides_the_samples() {
    let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 10).fill(against_glibc(10.0));
    let analysis = run(&lab.fail(
        "larson@2/check/hoard",
        Outcome::WrongResult {
            what: "overlap".into(),
        },
    ));
    assert!(!row(&analysis, "hoard").has_run());
}

#[test]
fn a_failed_baseline_takes_the_ratios_with_it() {
    let lab = FakeRun::new(&["glibc", "a", "b"], &["larson"], 12)
        .fill(|_, name, block| noise(name, block) * if name == "a" { 10.0 } else { 15.0 });
    let analysis = run(&lab.fail("larson@2/b00/glibc", crash()));
    assert!(numbers(&analysis, "a").time().ratio.is_none());
    let Conclusion::Fastest(ranking) = &analysis.conclusion else {
        panic!("{:?}", analysis.conclusion)
    };
    assert_eq!(ranking.leader, "a");
    assert!(ranking.against_baseline().is_none() && ranking.memory.is_none());
}

#[test]
fn different_failures_are_all_counted() {
    let lab = FakeRun::new(&["glibc"], &["larson"], 4).fill(|_, _, _| 20.0);
    let hang = Outcome::Hang {
        after_s: 5.0,
        phase: "run".into(),
        threads: Vec::new(),
    };
    let lab = lab
        .fail("larson@2/b00/glibc", crash())
        .fail("larson@2/b01/glibc", hang);
    let analysis = run(&lab.fail("larson@2/b02/glibc", crash()));
    let failed = row(&analysis, "glibc").failed.as_ref().unwrap();
    assert_eq!(
        failed.summary(),
        "crash 2, hang 1 of 5: SIGSEGV in phase run"
    );
    assert!(matches!(analysis.conclusion, Conclusion::NothingOk));
    let cells: usize = analysis
        .failures
        .iter()
        .map(|failure| failure.cells.len())
        .sum();
    assert_eq!((analysis.failures.len(), cells), (2, 3));
}

#[test]
fn missing_blocks_shorten_the_pairs_only() {
    let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 10).fill(against_glibc(10.0));
    let lab = lab.without(|record| {
        record.purpose == Purpose::Sample && record.allocator == "hoard" && record.block == 9
    });
    let analysis = run(&lab);
    assert_eq!(numbers(&analysis, "glibc").samples, 10);
    assert_eq!(numbers(&analysis, "hoard").samples, 9);
    assert_eq!(numbers(&analysis, "hoard").time().ratio.unwrap().pairs, 9);
}

#[test]
fn a_row_without_samples_is_missing_and_left_out() {
    let lab =
        FakeRun::new(&["glibc", "hoard"], &["larson", "xmalloc"], 10).fill(against_glibc(10.0));
    let lab = lab.without(|record| record.allocator == "hoard" && record.workload == "larson");
    let analysis = run(&lab);
    let hoard = row(&analysis, "hoard");
    assert!(hoard.failed.is_none() && !hoard.has_run());
    assert_eq!(hoard.unusable, 0);
    assert_eq!(
        analysis.left_out,
        [LeftOut {
            allocator: "hoard".into(),
            failed: 0,
            missing: 1,
            of: 2
        }]
    );
}

#[test]
fn nothing_to_divide_is_missing() {
    let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
    lab.cell("larson@2/b00/glibc")
        .measurement
        .as_mut()
        .unwrap()
        .iterations
        .truncate(1);
    lab.cell("larson@2/b01/glibc").measurement = None;
    for block in 0..3 {
        let sample = lab
            .cell(&format!("larson@2/b{block:02}/hoard"))
            .measurement
            .as_mut()
            .unwrap();
        sample
            .iterations
            .iter_mut()
            .for_each(|iteration| iteration.ops = 0);
    }
    let analysis = run(&lab);
    assert_eq!(
        (
            numbers(&analysis, "glibc").samples,
            numbers(&analysis, "glibc").unusable
        ),
        (1, 2)
    );
    let hoard = row(&analysis, "hoard");
    assert!(hoard.failed.is_none() && !hoard.has_run());
    assert_eq!(hoard.unusable, 3);
}

#[test]
fn no_cpu_time_means_no_cpu_numbers() {
    let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 6).fill(|_, _, _| 20.0);
    for record in lab
        .records
        .iter_mut()
        .filter(|record| record.allocator == "hoard")
    {
        for iteration in record
            .measurement
            .iter_mut()
            .flat_map(|m| &mut m.iterations)
        {
            (iteration.user_ns, iteration.sys_ns) = (0, 0);
        }
    }
    let analysis = run(&lab);
    assert!(numbers(&analysis, "hoard").cell("cpu_ns_per_op").is_none());
    assert!(numbers(&analysis, "hoard").ratio("cpu_ns_per_op").is_none());
    assert!(numbers(&analysis, "hoard").time().ratio.is_some());
}

#[test]
fn overhead_is_growth_over_requested_from_a_mebibyte_on() {
    let mut lab = FakeRun::new(&["glibc", "small"], &["larson"], 3).fill(|_, _, _| 20.0);
    for record in lab
        .records
        .iter_mut()
        .filter(|record| record.allocator == "small")
    {
        record
            .measurement
            .iter_mut()
            .for_each(|m| m.requested_peak_bytes = (1 << 20) - 1);
    }
    let analysis = run(&lab);
    assert!(close(
        numbers(&analysis, "glibc")
            .memory()
            .unwrap()
            .overhead
            .unwrap(),
        1.2
    ));
    let small = numbers(&analysis, "small").memory().unwrap();
    assert_eq!(
        (small.overhead, small.peak_rss_bytes),
        (None, f64::from(14 << 20))
    );
}

#[test]
fn purge_is_shown_where_the_case_counts_it() {
    let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
    lab.run.plan.cases[0].counts_purge = true;
    lab.allocator("hoard").purge = "none".into();
    for iteration in lab
        .records
        .iter_mut()
        .filter_map(|r| r.measurement.as_mut())
        .flat_map(|m| &mut m.iterations)
    {
        iteration.purge_ns = iteration.wall_ns / 4;
    }
    let analysis = run(&lab);
    assert!(close(
        numbers(&analysis, "glibc").median("purge_share").unwrap(),
        0.25
    ));
    assert!(close(
        numbers(&analysis, "glibc")
            .median("ns_per_op_without_purge")
            .unwrap(),
        15.0
    ));
    assert_eq!(
        (row(&analysis, "glibc").purge, row(&analysis, "hoard").purge),
        (Purge::Called, Purge::None)
    );
}

#[test]
fn the_floor_never_ranks() {
    let mut lab = FakeRun::new(&["glibc", "hoard", "null"], &["larson"], 12)
        .fill(|_, name, block| noise(name, block) * if name == "null" { 2.0 } else { 10.0 });
    lab.allocator("null").tier = "floor".into();
    let analysis = run(&lab);
    assert_eq!(row(&analysis, "null").role, Role::Floor);
    assert!(
        numbers(&analysis, "null").time().ratio.is_none()
            && numbers(&analysis, "null").floor_share.is_none()
    );
    assert!((numbers(&analysis, "hoard").floor_share.unwrap() - 0.2).abs() < 0.01);
    let Conclusion::Unclear(ranking) = &analysis.conclusion else {
        panic!("{:?}", analysis.conclusion)
    };
    assert!(ranking.leader != "null" && ranking.tests.iter().all(|test| test.against != "null"));
}

#[test]
fn figures_are_kept() {
    let mut lab = FakeRun::new(&["glibc"], &["larson"], 3).fill(|_, _, _| 20.0);
    for (n, measurement) in lab
        .records
        .iter_mut()
        .filter_map(|record| record.measurement.as_mut())
        .enumerate()
    {
        measurement.figures.insert("incarnations".into(), n as f64);
    }
    assert_eq!(numbers(&run(&lab), "glibc").figures["incarnations"], 1.0);
}

#[test]
fn strays_are_counted_and_enter_nothing() {
    let mut lab = FakeRun::new(&["glibc"], &["larson"], 3).fill(|_, _, _| 20.0);
    let mut stray = lab.cell("larson@2/b00/glibc").clone();
    (stray.cell, stray.threads) = ("larson@4/b00/glibc".into(), 4);
    lab.records.push(stray);
    let analysis = run(&lab);
    assert_eq!(
        (analysis.unplanned, numbers(&analysis, "glibc").samples),
        (1, 3)
    );
}

#[test]
fn the_mean_footprint_is_that_of_the_samples_that_were_looked_at() {
    let mut lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 3).fill(|_, _, _| 20.0);
    for (block, gib) in [(0, 4), (2, 2)] {
        let seen = MeanHeap {
            looks: 20,
            span_ns: 1,
            bytes: gib << 30,
            iteration_ns: 500_000_000,
        };
        lab.cell(&format!("larson@2/b{block:02}/hoard")).mean_heap = Some(Box::new(seen));
    }
    let analysis = run(&lab);
    let hoard = numbers(&analysis, "hoard");
    let gib_seconds = hoard.cell("gib_seconds").unwrap().spread;
    assert_eq!(
        (hoard.median("mean_footprint_bytes"), gib_seconds.median),
        (Some(3.0 * f64::from(1 << 30)), 1.5)
    );
    assert_eq!((gib_seconds.min, gib_seconds.max), (1.0, 2.0));
    assert!(
        numbers(&analysis, "glibc")
            .cell("mean_footprint_bytes")
            .is_none(),
        "memory was not sampled"
    );
}

#[test]
fn a_release_is_told_without_the_name_that_the_row_has_anyway() {
    let mut lab = FakeRun::new(&["glibc", "hoard", "g", "mine", "rpmalloc"], &["larson"], 1)
        .fill(|_, _, _| 20.0);
    lab.allocator("glibc").release = "glibc 2.36, 2022".into();
    lab.allocator("hoard").release = "Hoard, 2017".into();
    lab.allocator("g").release = "gperftools 2.10, 2022".into();
    // Of a run of before: the version is that of the crate, not of the allocator.
    lab.allocator("rpmalloc").version = "in rpmalloc-sys 0.2.3+b097fd0".into();
    lab.allocator("rpmalloc").sources = "2021".into();
    let analysis = run(&lab);
    for (name, told) in [
        ("glibc", "glibc (2.36, 2022)"),
        ("hoard", "hoard (2017)"),
        ("g", "g (gperftools 2.10, 2022)"),
        ("mine", "mine"),
        ("rpmalloc", "rpmalloc (2021)"),
        ("not here", "not here"),
    ] {
        assert_eq!(analysis.named(name), told);
    }
}
