//! What the kernels of operations find, through the built binary: what was planted in a library is in its numbers.

use crate::support::{Place, of_purpose, samples};
use serde_json::Value;

/// What the timed processes of a workload under an allocator measured.
fn measured<'a>(records: &'a [Value], workload: &str, allocator: &str) -> Vec<&'a Value> {
    let timed = of_purpose(records, "sample").into_iter();
    timed
        .filter(|record| record["workload"] == workload && record["allocator"] == allocator)
        .map(|record| &record["measurement"])
        .collect()
}

/// Page faults of an operation in each round of these.
fn faults_per_op(measured: Vec<&Value>) -> Vec<f64> {
    let rounds = measured
        .iter()
        .flat_map(|one| one["iterations"].as_array().unwrap());
    let number = |round: &Value, key: &str| round[key].as_f64().unwrap();
    rounds
        .map(|round| number(round, "minor_faults") / number(round, "ops"))
        .collect()
}

#[test]
fn a_pair_faults_on_each_page_if_the_block_comes_from_the_kernel_each_time() {
    let place = Place::new();
    let allocators = format!(
        "glibc,own={},returner={}",
        place.compile("own", &[]).display(),
        place.fake("returner").display()
    );
    let flags = ["--thp", "never", "--no-repeat"];
    let end = place.run_block("run", "pair-edge,pair-edge-32m", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    // glibc's own head of a block moves its last byte into one more page. The faults of a thread that
    // does nothing are few in hundreds of pairs.
    let pages = [
        ("pair-edge", "own", 0.0),
        ("pair-edge", "returner", 200.0),
        ("pair-edge-32m", "own", 0.0),
        ("pair-edge-32m", "returner", 8192.0),
        ("pair-edge-32m", "glibc", 8193.0),
    ];
    for (workload, allocator, expected) in pages {
        let rounds = faults_per_op(measured(&records, workload, allocator));
        assert!(!rounds.is_empty(), "{workload} {allocator}");
        for faults in rounds {
            let few = faults - expected;
            assert!(
                (0.0..0.5).contains(&few),
                "{workload} {allocator}: {faults}"
            );
        }
    }
}

#[test]
fn a_block_that_changes_while_it_is_live_is_a_wrong_result() {
    let place = Place::new();
    let allocators = format!("glibc,scribbler={}", place.fake("scribbler").display());
    let flags = ["--set", "pair-edge*.pairs=40", "--no-repeat"];
    let end = place.run_block("run", "pair-edge-kept", &allocators, &flags);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    assert!(end.stdout.contains("wrong"), "{}", end.stdout);
}
