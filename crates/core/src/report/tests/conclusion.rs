//! The verdict in words.

use super::*;
use crate::analyse::fake_run::noise;

#[test]
fn a_winner_is_named_with_what_it_won_by() {
    let lab = FakeRun::new(
        &["glibc", "mimalloc3", "rpmalloc"],
        &["larson", "xmalloc"],
        12,
    )
    .fill(|_, name, _| match name {
        "mimalloc3" => 10.0,
        "rpmalloc" => 10.5,
        _ => 15.0,
    });
    assert_eq!(
        sentence(&lab),
        "mimalloc3 is the fastest here, over 2 cases: 0.67 of glibc's time [0.67, 0.67]; its memory overhead is \
         1.00x glibc's."
    );
}

#[test]
fn a_verdict_names_the_releases_it_holds_for() {
    let times = |mimalloc3: f64, rpmalloc: f64| {
        let names = ["glibc", "mimalloc3", "rpmalloc"];
        let mut lab = FakeRun::new(&names, &["larson"], 12).fill(|_, name, block| match name {
            "mimalloc3" => mimalloc3 * noise("a", block),
            "rpmalloc" => rpmalloc * noise("b", block),
            _ => 15.0,
        });
        lab.allocator("glibc").release = "glibc 2.36, 2022".into();
        lab.allocator("mimalloc3").release = "mimalloc 3.6.0, 2026-10".into();
        lab.allocator("rpmalloc").release = "rpmalloc 1.4.3, 2021".into();
        sentence(&lab)
    };
    let said = times(10.0, 12.0);
    assert!(
        said.starts_with("mimalloc3 (mimalloc 3.6.0, 2026-10) is the fastest here, over 1 case"),
        "{said}"
    );
    assert!(said.contains(": 0.667 of glibc's time [0.6"), "{said}");
    let said = times(10.0, 10.0);
    let both = "mimalloc3 (mimalloc 3.6.0, 2026-10) and rpmalloc (1.4.3, 2021)";
    let other = "rpmalloc (1.4.3, 2021) and mimalloc3 (mimalloc 3.6.0, 2026-10)";
    assert!(
        said.starts_with(&format!("Unclear: {both} are not told apart by"))
            || said.starts_with(&format!("Unclear: {other} are not told apart by")),
        "{said}"
    );
    let said = times(20.0, 20.0);
    assert!(
        said.starts_with("glibc (2.36, 2022), the baseline, is the fastest here"),
        "{said}"
    );
}

#[test]
fn a_leading_baseline_is_called_so() {
    let lab = FakeRun::new(&["glibc", "hoard"], &["larson"], 10)
        .fill(|_, name, _| if name == "glibc" { 10.0 } else { 20.0 });
    assert_eq!(
        sentence(&lab),
        "glibc, the baseline, is the fastest here, over 1 case: the next, hoard, takes 2.000 times glibc's time \
         [2.000, 2.000]."
    );
}

#[test]
fn too_few_blocks_tell_what_to_do() {
    let lab = FakeRun::new(&["glibc", "a", "b"], &["larson"], 5)
        .fill(|_, name, _| if name == "glibc" { 20.0 } else { 10.0 });
    assert_eq!(
        sentence(&lab),
        "Unclear: 5 blocks are too few for a verdict (6 needed): run again with --blocks 6. So far a is ahead, then b."
    );
}

#[test]
fn an_interrupted_run_is_to_be_resumed() {
    let mut lab = FakeRun::new(&["glibc", "a"], &["larson"], 10)
        .fill(|_, _, _| 20.0)
        .without(|record| record.block > 4);
    let advises = |lab: &FakeRun, advice: &str| {
        let said = sentence(lab);
        let wanted = format!("too few for a verdict (6 needed): {advice}.");
        assert!(said.contains(&wanted), "{said}");
    };
    advises(&lab, "resume the run");
    assert!(on(WIDE, &lab).contains("5 of 10 blocks"));
    // The budget of a suite ends no run that early.
    lab.run.plan.budget_s = Some(0.0);
    advises(&lab, "raise the --budget");
    // What heapmark does between processes takes of the budget, too.
    lab.run.plan.budget_s = Some(1e9);
    advises(&lab, "raise the --budget");
    lab.run.plan.budget_of_suite = true;
    advises(&lab, "resume the run");
    lab.run.plan.budget_of_suite = false;
    let torn = lab.without(|record| record.block == 4 && record.allocator == "a");
    assert!(sentence(&torn).contains("resume the run"));
}

#[test]
fn what_the_leader_leaves_out_is_said() {
    let mut lab = FakeRun::new(&["glibc", "a"], &["larson"], 10)
        .fill(|_, name, _| if name == "a" { 10.0 } else { 20.0 });
    lab.run.plan.cases[0].counts_purge = true;
    lab.allocator("a").purge = "none".into();
    lab.allocator("a").left_to_libc = vec!["calloc".into()];
    assert!(
        sentence(&lab)
            .ends_with(" But a is partial and gives no memory back in 1 case that time it.")
    );
}

#[test]
fn the_overall_table_has_the_cases_that_have_no_verdict() {
    let mut lab = FakeRun::new(
        &["glibc", "a", "copy"],
        &["larson", "churn", "xmalloc", "speed"],
        15,
    )
    .fill(|case, name, block| {
        let copy = match case {
            "churn" => 2.0,
            "speed" => 0.5,
            _ => 1.0,
        };
        10.0 * noise(&format!("{case}{name}"), block) * if name == "copy" { copy } else { 1.0 }
    });
    lab.allocator("copy").tier = "aa-copy".into();
    lab.run.plan.allocators.pop();
    lab.run.plan.aa_copy = Some("copy".into());
    let screen = Screen {
        width: 200,
        colour: false,
    };
    let heading = "Overall: time / glibc, geometric mean over 4 cases\n";
    assert!(on(screen, &lab).contains(heading), "{}", on(WIDE, &lab));
    assert_eq!(
        on(screen, &lab)
            .matches("only larger differences are claimed")
            .count(),
        2
    );
}

#[test]
fn equal_numbers_name_no_winner() {
    let lab = FakeRun::new(&["glibc", "a", "b"], &["larson"], 12)
        .fill(|_, name, block| noise("", block) * if name == "glibc" { 20.0 } else { 10.0 });
    assert_eq!(
        sentence(&lab),
        "Unclear: a and b are not told apart by 12 blocks: a is ahead, but by 1 % or less. Choose by memory. a takes 0.500 of glibc's \
         time [0.500, 0.500]; its memory overhead is 1.00x glibc's."
    );
    let twins =
        FakeRun::new(&["glibc", "a"], &["larson"], 12).fill(|_, _, block| 10.0 * noise("", block));
    assert!(
        on(WIDE, &twins).contains("  same  "),
        "{}",
        on(WIDE, &twins)
    );
    let apart = FakeRun::new(&["glibc", "a"], &["larson"], 12)
        .fill(|_, name, block| 10.0 * noise(name, block).powi(5));
    assert!(
        !on(WIDE, &apart).contains("  same  "),
        "the interval reaches beyond 1 %: {}",
        on(WIDE, &apart)
    );
}

#[test]
fn the_best_case_and_the_worst_stand_below_the_mean_that_hides_them() {
    let ns = |case: &str, name: &str| match (name, case) {
        ("hoard", "larson") => 10.0,
        ("hoard", "xmalloc") => 40.0,
        _ => 20.0,
    };
    let lab = FakeRun::new(&["glibc", "hoard"], &["larson", "xmalloc", "churn"], 10)
        .fill(|case, name, _| ns(case, name));
    let text = exported(Format::Markdown, &lab);
    let start = text.find("## Best and worst of 3 cases").unwrap();
    let row = text[start..]
        .lines()
        .find(|line| line.starts_with("| hoard"));
    let cells: Vec<&str> = row.unwrap().split(" | ").collect();
    assert_eq!(cells[1..3], ["1", "1"], "faster, slower");
    assert!(
        cells[3].starts_with("larson@") && cells[4].starts_with("0.50"),
        "{cells:?}"
    );
    assert!(
        cells[5].starts_with("xmalloc@") && cells[6].starts_with("2.0"),
        "{cells:?}"
    );
    let lab =
        FakeRun::new(&["glibc", "hoard"], &["larson"], 10).fill(|case, name, _| ns(case, name));
    assert!(
        !exported(Format::Markdown, &lab).contains("Best and worst"),
        "one case has its table"
    );
}
