//! `heapmark compare` through the built binary: within a run, between two, and the exit code for a CI job.

use crate::support::{End, Place};
use serde_json::Value;
use std::fs;

/// A run in which `mine` is this library.
fn measured(place: &Place, run: &str, library: &str) {
    let word = format!("mine={},glibc", place.fake(library).display());
    let end = place.run_small(run, &["-a", &word, "--blocks", "10", "--seed", "1"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
}

fn compare(place: &Place, args: &[&str]) -> End {
    place.run(&[&["compare"], args].concat())
}

/// Nothing is slower if nothing runs.
#[test]
fn what_has_no_numbers_or_no_counterpart_fails_the_job() {
    let place = Place::new();
    let library = |name: &str, library: &str| format!("{name}={}", place.fake(library).display());
    let [one, crashed] = [library("one", "honest"), library("crashed", "crasher")];
    let word = format!("{one},{crashed},glibc");
    let end = place.run_small("run", &["-a", &word, "--blocks", "6", "--seed", "1"]);
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let gate = compare(
        &place,
        &["run", "--threshold", "50%", "--fail-on", "slower"],
    );
    assert_eq!(gate.code, Some(3), "{}{}", gate.stdout, gate.stderr);
    let why = "--fail-on: churn@1/crashed: it has no numbers beside the baseline's";
    assert!(gate.stderr.contains(why), "{}", gate.stderr);
    let other = format!("{},glibc", library("other", "honest"));
    let end = place.run_small("later", &["-a", &other, "--blocks", "6", "--seed", "1"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let said = compare(&place, &["run", "later"]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert!(
        said.says("churn@1/one: the new run does not have it"),
        "{}",
        said.stdout
    );
    for (on, code, why) in [
        (
            "slower",
            1,
            "nothing can be compared: churn@1/other: the old run",
        ),
        (
            "unclear",
            3,
            "--fail-on: churn@1/one: the new run does not have it",
        ),
    ] {
        let gate = compare(&place, &["run", "later", "--fail-on", on]);
        assert_eq!(gate.code, Some(code), "{}{}", gate.stdout, gate.stderr);
        assert!(gate.stderr.contains(why), "{}", gate.stderr);
    }
    // The table is written if all has crashed, too.
    let word = format!("{crashed},glibc");
    place.run_small("alone", &["-a", &word, "--blocks", "6", "--seed", "1"]);
    let gate = compare(&place, &["alone", "--fail-on", "slower"]);
    assert_eq!(gate.code, Some(3), "{}{}", gate.stdout, gate.stderr);
    assert!(gate.says("churn@1/crashed"), "{}", gate.stdout);
}

#[test]
fn a_slower_library_fails_the_job_within_a_run_and_between_two() {
    let place = Place::new();
    measured(&place, "old", "honest");
    measured(&place, "new", "sluggish");
    // By CPU time: beside other programs a process of 2 ms waits for a CPU up to a hundred times as long.
    let by_cpu = |args: &[&str]| compare(&place, &[&["--by", "cpu"], args].concat());
    let within = by_cpu(&["new", "--fail-on", "slower"]);
    assert_eq!(within.code, Some(3), "{}{}", within.stdout, within.stderr);
    assert!(
        within.stderr.contains("--fail-on: churn@1/mine is slower"),
        "{}",
        within.stderr
    );
    assert_eq!(
        compare(&place, &["new"]).code,
        Some(0),
        "only who asks gets the exit code"
    );

    let between = by_cpu(&["old", "new", "--fail-on", "slower,unclear"]);
    assert_eq!(
        between.code,
        Some(3),
        "{}{}",
        between.stdout,
        between.stderr
    );
    let told = between.stdout.replace("\n  ", " ");
    for told_of in [
        "beside glibc",
        "not interleaved",
        "heapmark run -a old=",
        "libhonest.so,new=",
        "the runs themselves",
    ] {
        assert!(told.contains(told_of), "no `{told_of}` in {told}");
    }
    // The other way round it got faster, however much the machine wandered in between.
    let back = by_cpu(&["new", "old", "--fail-on", "slower", "--to", "json"]);
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    let told: Value = serde_json::from_str(&back.stdout).unwrap();
    let mine = told["rows"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["allocator"] == "mine")
        .unwrap();
    assert_eq!(
        (&mine["verdict"]["word"], &told["anchor"]),
        (&"faster".into(), &"glibc".into()),
        "{told}"
    );
    let page = compare(&place, &["old", "new", "--to", "md"]).stdout;
    assert!(
        page.starts_with("## ") && page.contains("| workload | allocator |"),
        "{page}"
    );
    // mimalloc-bench's results: none of a test that has the role of churn.
    let file = place.at("benchres.csv").display().to_string();
    for (content, flags, code, told) in [
        (
            "cfrac sys 0:04.00 3412 3.99 0 0 1\n",
            &[][..],
            1,
            "nothing of the file has the role of a case of this run, under its allocators: cfrac (bc-digits)",
        ),
        (
            "cfrac sys\n",
            &[],
            2,
            "benchres.csv: line 1: expected `benchmark allocator elapsed",
        ),
        ("", &["--fail-on", "slower"], 2, "have no intervals"),
    ] {
        fs::write(&file, content).unwrap();
        let end = compare(&place, &[&["new", &file], flags].concat());
        assert_eq!(
            (end.code, end.stderr.lines().count()),
            (Some(code), 1),
            "{}",
            end.stderr
        );
        assert!(end.stderr.contains(told), "{told}: {}", end.stderr);
    }
}

#[test]
fn what_cannot_be_compared_is_one_clear_line() {
    let place = Place::new();
    let end = place.run_small("one", &["-a", "glibc", "--blocks", "2"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let alone = compare(&place, &["one"]);
    alone.is_one_line(1);
    assert!(
        alone.stderr.contains("the run has only the baseline"),
        "{}",
        alone.stderr
    );
    let short = ["-t", "1", "--target-ms", "10", "--no-floor"];
    let other = place.run_block("other", "larson", "glibc", &short);
    assert_eq!(other.code, Some(0), "{}", other.stderr);
    let apart = compare(&place, &["one", "other"]);
    apart.is_one_line(2);
    let says = "one and other have no workload in common: ";
    assert!(apart.stderr.contains(says), "{}", apart.stderr);
    let nowhere = compare(&place, &["one", "nowhere"]);
    assert_eq!(nowhere.code, Some(2), "{}", nowhere.stderr);
    assert!(
        nowhere.stderr.contains("no run in nowhere"),
        "{}",
        nowhere.stderr
    );
    let unknown = compare(&place, &["one", "--by", "luck"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.stdout);
    assert!(
        unknown
            .stderr
            .contains("expected one of wall, cpu, user, memory"),
        "{}",
        unknown.stderr
    );
    let word = compare(&place, &["one", "--fail-on", "slow"]);
    assert_eq!(word.code, Some(2), "{}", word.stderr);
}
