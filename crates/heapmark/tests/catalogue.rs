//! Everything in the data folders is fit for use: it is read, and every workload runs to a verified end at its quick size.

mod support;

use support::{Place, of_purpose, samples, word};

#[test]
fn every_workload_ends_ok_on_glibc_and_on_the_null_allocator() {
    let place = Place::new();
    let end = place.run(&[
        "run",
        "-w",
        "*",
        "-a",
        "glibc,null",
        "-t",
        "1,3",
        "--blocks",
        "1",
        "--target-ms",
        "5",
        "-o",
        "run",
    ]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let listed = place.run(&["list", "workloads", "--json"]);
    let workloads: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert!(workloads.len() >= 11);
    for workload in &workloads {
        let name = word(workload, "name");
        let ran = of_purpose(&records, "sample").iter().filter(|record| word(record, "workload") == name).count();
        assert!(ran >= 2, "{name} ran {ran} times");
    }
}

#[test]
fn every_suite_has_a_plan() {
    let place = Place::new();
    let listed = place.run(&["list", "suites", "--json"]);
    let suites: Vec<serde_json::Value> = serde_json::from_str(&listed.stdout).unwrap();
    assert!(suites.iter().any(|suite| word(suite, "name") == "quick"));
    for suite in &suites {
        let end = place.run(&["run", word(suite, "name"), "--dry-run", "--seed", "1"]);
        assert_eq!(end.code, Some(0), "{}: {}", word(suite, "name"), end.stderr);
        assert!(end.stdout.contains("/b00/glibc"), "{}", end.stdout);
    }
}
