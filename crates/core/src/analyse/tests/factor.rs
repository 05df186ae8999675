//! Rows under a factor over the same rows without.

use super::calls::with_tier;
use super::*;
use crate::analyse::Verdict;
use crate::execute::user_command::{SLOWER_CALLS, SLOWER_WALL};
use crate::plan::{Factor, HugePages};

/// Times in a fresh and in an aged heap.
fn lab(blocks: u32, aged: fn(&str) -> f64) -> FakeRun {
    let mut lab = FakeRun::new(&["glibc", "a", "b"], &["churn", "larson"], blocks);
    let age = lab.run.plan.cases[0].under(Factor::Age(50));
    lab.run.plan.cases.insert(1, age);
    lab.fill(move |workload, name, block| {
        let age = if workload.ends_with("-aged") {
            aged(name)
        } else {
            1.0
        };
        let faster = if name == "b" { 0.5 } else { 1.0 };
        20.0 * age * faster * noise(&format!("{workload}{name}"), block)
    })
}

#[test]
fn an_allocator_that_is_slower_with_age_is_named_and_one_that_is_not_is_the_same() {
    let analysis = run(&lab(30, |name| if name == "a" { 1.2 } else { 1.0 }));
    let over = |row: &TableRow| row.factor.unwrap();
    let rows = &analysis.cases[1].rows;
    let verdicts: Vec<&str> = rows
        .iter()
        .map(|row| over(row).verdict.unwrap().word())
        .collect();
    assert_eq!(verdicts, ["same", "slower", "same"]);
    assert!((over(&rows[1]).ratio.ratio / 1.2 - 1.0).abs() < 0.01);
    assert!(
        over(&rows[1])
            .ratio
            .interval
            .is_some_and(|(low, _)| low > 1.15)
    );
    assert!(numbers(&analysis, "a").factor.is_none(), "a fresh row");
    assert_eq!(
        (analysis.cases[0].factor, analysis.cases[1].factor),
        (None, Some(Factor::Age(50)))
    );
}

#[test]
fn what_is_said_over_all_cases_is_said_of_fresh_heaps() {
    let analysis = run(&lab(12, |name| if name == "b" { 9.0 } else { 1.0 }));
    let Conclusion::Fastest(ranking) = &analysis.conclusion else {
        panic!("{:?}", analysis.conclusion)
    };
    assert_eq!((ranking.leader.as_str(), ranking.cases), ("b", 2));
    assert!(analysis.overall.iter().all(|one| one.cases == 2));
}

#[test]
fn few_blocks_decide_nothing_and_a_copy_that_differs_withholds_what_is_no_larger() {
    let few = run(&lab(4, |_| 1.5));
    let verdict = |analysis: &Analysis| {
        let row = &analysis.cases[1].rows[1];
        row.factor.unwrap().verdict.unwrap()
    };
    assert_eq!(verdict(&few).word(), "too few blocks");

    let of_aged = |aged: f64| {
        let mut lab = FakeRun::new(&["glibc", "a", "copy"], &["churn"], 20);
        lab = with_tier(lab, "copy", "aa-copy");
        let age = lab.run.plan.cases[0].under(Factor::Age(50));
        lab.run.plan.cases.push(age);
        let lab = lab.fill(|workload, name, block| {
            let drift = if name == "copy" { 1.3 } else { 1.0 };
            let age = if workload.ends_with("-aged") {
                aged
            } else {
                1.0
            };
            drift * age * noise(&format!("{workload}{name}"), block)
        });
        verdict(&run(&lab))
    };
    assert_eq!(of_aged(1.0), Verdict::AaCopyDiffers);
    // Each of the two cases may be off by 1.3.
    assert_eq!(of_aged(1.6), Verdict::AaCopyDiffers);
    assert_eq!(of_aged(1.8), Verdict::Slower);
}

#[test]
fn what_runs_for_a_fixed_time_is_not_compared_with_itself() {
    let figures = [(SLOWER_CALLS, 0.1), (SLOWER_WALL, 1.0)];
    let lab = lab(12, |_| 1.5).told("churn@2/check/glibc", &figures);
    let analysis = run(&lab);
    let aged = &analysis.cases[1];
    assert_eq!(aged.workload, "churn-aged");
    assert!(aged.rows.iter().all(|row| row.factor.is_none()));
}

#[test]
fn parts_of_a_block_are_one_pair_of_the_baseline() {
    let lab = lab(2, |_| 1.5).in_three_parts("glibc");
    let over = run(&lab).cases[1].rows[0].factor.unwrap();
    assert_eq!((over.ratio.pairs, over.cpu_ratio.unwrap().pairs), (2, 2));
    assert_eq!(over.verdict.unwrap().word(), "too few blocks");
}

#[test]
fn a_row_that_fails_with_age_has_no_ratio() {
    let mut lab = lab(12, |_| 1.0);
    let of_a = |record: &&mut Record| {
        record.workload == "churn-aged"
            && record.allocator == "a"
            && record.purpose == Purpose::Sample
    };
    let record = lab.records.iter_mut().find(of_a).unwrap();
    (record.outcome, record.measurement) = (crash(), None);
    let analysis = run(&lab);
    let rows = &analysis.cases[1].rows;
    assert!(!rows[1].has_run());
    assert!(rows[2].factor.is_some());
}

#[test]
fn each_factor_has_a_metric_of_its_own() {
    for (factor, key) in [
        (Factor::Age(50), "aged_ratio"),
        (Factor::HugePages(HugePages::Machine), "huge_pages_ratio"),
        (Factor::CpusSeen(64), "cpus_seen_ratio"),
    ] {
        let mut lab = FakeRun::new(&["glibc", "a"], &["churn"], 12);
        let under = lab.run.plan.cases[0].under(factor);
        lab.run.plan.cases.push(under);
        let lab = lab.fill(|workload, name, block| {
            let factor = if workload == "churn" { 1.0 } else { 0.8 };
            20.0 * factor * noise(&format!("{workload}{name}"), block)
        });
        let tables = crate::analyse::tables(&lab.run, &lab.records);
        let cell = tables[1].rows[1].cell(key).unwrap();
        assert!((cell.spread.median / 0.8 - 1.0).abs() < 0.05, "{cell:?}");
        assert!(tables[0].rows[1].cell(key).is_none());
    }
}
