//! Rows that are whole processes: their figures, and what their checks add.

use super::*;
use crate::analyse::fake_run::crash;

/// glibc, and a runtime that takes twice as long.
fn lab() -> FakeRun {
    let lab = FakeRun::new(&["glibc"], &["trees"], 10).whole(&["Go"]);
    lab.fill(|_, name, _| if name == "Go" { 40.0 } else { 20.0 })
}

fn median(lab: &FakeRun, row: &str, key: &str) -> Option<f64> {
    numbers(&run(lab), row).median(key)
}

#[test]
fn times_are_those_of_the_samples_and_the_cpu_time_of_all_threads_stands_beside() {
    let mut lab = lab();
    for record in lab
        .records
        .iter_mut()
        .filter(|record| record.allocator == "Go")
    {
        let figures = record
            .measurement
            .iter_mut()
            .map(|measurement| &mut measurement.figures);
        figures.for_each(|figures| _ = figures.insert("startup_ns".into(), 3e6));
    }
    // Two measured iterations of 20 ns x 1,000,000 / 2 threads, and a cold one that does not count.
    let both = |key| [median(&lab, "glibc", key), median(&lab, "Go", key)];
    assert_eq!(both("wall_ns"), [Some(2e7), Some(4e7)]);
    assert_eq!(both("cpu_ns")[0], Some(2.5e7));
    assert_eq!(both("startup_ns"), [None, Some(3e6)]);
    let analysis = run(&lab);
    assert_eq!(row(&analysis, "Go").role, Role::Program);
    assert!(close(
        numbers(&analysis, "Go").time().ratio.unwrap().ratio,
        2.0
    ));
    assert!(
        matches!(&analysis.conclusion, Conclusion::OnlyOne { allocator } if allocator == "glibc")
    );
}

#[test]
fn the_longest_pause_is_a_collectors_or_a_releases_and_none_is_not_nothing() {
    let pause = |figures: &[(&str, f64)]| {
        let lab = lab().told("trees@2/check/Go", figures);
        let median = |key| median(&lab, "Go", key);
        (median("pauses"), median("longest_pause_ns"))
    };
    assert_eq!(pause(&[]), (None, None));
    assert_eq!(pause(&[("pauses", 0.0)]), (Some(0.0), None));
    assert_eq!(
        pause(&[
            ("pauses", 3.0),
            ("pause_max_ns", 7e6),
            ("pause_total_ns", 9e6)
        ]),
        (Some(3.0), Some(7e6))
    );
    assert_eq!(
        pause(&[("release_max_ns", 8e6), ("release_mean_ns", 1e3)]),
        (None, Some(8e6))
    );
    let both = [
        ("pauses", 1.0),
        ("pause_max_ns", 5e6),
        ("release_max_ns", 6e6),
    ];
    assert_eq!(pause(&both), (Some(1.0), Some(6e6)));
}

#[test]
fn the_longest_step_is_that_of_any_depth() {
    let figures = [
        ("depth_4_longest_build_ns", 9e3),
        ("depth_6_longest_build_ns", 4e3),
        ("longest_ns", 1e9),
    ];
    let longest = |lab: &FakeRun| median(lab, "Go", "longest_step_ns");
    assert_eq!(
        longest(&lab().told("trees@2/check/Go", &figures)),
        Some(9e3)
    );
    assert_eq!(longest(&lab()), None);
}

#[test]
fn a_row_responds_to_malloc_from_one_call_in_a_hundred_operations_on() {
    let responds = |calls| {
        let lab = lab().told("trees@2/check/Go", &[("malloc_calls_per_operation", calls)]);
        numbers(&run(&lab), "Go").responds_to_malloc()
    };
    assert_eq!(
        (responds(1.0), responds(0.01), responds(0.0099)),
        (Some(true), Some(true), Some(false))
    );
    assert_eq!(
        (
            responds(-0.002),
            numbers(&run(&lab()), "Go").responds_to_malloc()
        ),
        (Some(false), None)
    );
}

#[test]
fn only_rows_with_numbers_in_a_case_of_whole_processes_have_it() {
    let kernel = FakeRun::new(&["glibc"], &["larson"], 3).fill(|_, _, _| 20.0);
    assert_eq!(median(&kernel, "glibc", "wall_ns"), None);
    // Figures from a check do not count either once a process has failed.
    let told = lab().told(
        "trees@2/check/Go",
        &[("pauses", 3.0), ("pause_max_ns", 7e6)],
    );
    assert!(!row(&run(&told.fail("trees@2/b03/Go", crash())), "Go").has_run());
}

#[test]
fn a_parameter_that_has_another_value_in_a_row_is_told_and_one_of_its_own_is_not() {
    let mut lab = lab();
    let parameters = [("n", "12"), ("mode", "collect")]
        .map(|(name, value)| (name.to_string(), value.to_string()));
    lab.run.plan.cases[0].rows[0].parameters = parameters.into();
    let analysis = run(&lab);
    assert_eq!(
        row(&analysis, "Go").parameters,
        BTreeMap::from([("n".into(), "12".into())])
    );
    assert!(row(&analysis, "glibc").parameters.is_empty());
}
