//! What the kernels of operations find, through the built binary: what was planted in a library is in its numbers.

use crate::support::{Place, of_purpose, samples, word};
use serde_json::Value;
use std::collections::BTreeSet;

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

#[test]
fn steps_that_move_a_block_are_told_from_those_that_do_not() {
    let place = Place::new();
    // `own` moves each block, `stayer` none.
    let allocators = format!(
        "glibc,own={},stayer={}",
        place.compile("own", &[]).display(),
        place.fake("stayer").display()
    );
    let flags = [
        "--set",
        "grow*.limit=65536",
        "--set",
        "grow*.ladders=3",
        "--set",
        "grow-threads.teams=2",
        "--no-repeat",
    ];
    let end = place.run_block("run", "grow-double,grow-threads", &allocators, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    // From 16 bytes to 64 KiB are 12 steps; a move copies 16 ... 32,768 bytes.
    // From 4 KiB to 64 KiB by four are 2 steps; a move copies 4 or 16 KiB.
    let copied = [
        (
            "grow-double",
            f64::from((0..12).map(|step| 16u32 << step).sum::<u32>()) / 12.0,
        ),
        ("grow-threads", f64::from(4096 * (1 + 4)) / 2.0),
    ];
    for (workload, copied) in copied {
        for (allocator, moved) in [("own", 1.0), ("stayer", 0.0)] {
            let measured = measured(&records, workload, allocator);
            assert!(!measured.is_empty(), "{workload} {allocator}");
            for one in measured {
                let figure = |name: &str| one["figures"][name].as_f64().unwrap();
                assert_eq!(figure("moved_share"), moved, "{workload} {allocator}");
                assert_eq!(figure("moved_back_share"), moved, "{workload} {allocator}");
                let expected = moved * copied;
                assert_eq!(
                    figure("copied_bytes_per_step"),
                    expected,
                    "{workload} {allocator}"
                );
            }
        }
    }
}

#[test]
fn a_library_that_knows_no_sizes_is_unsupported_and_one_that_is_slower_with_them_is_told() {
    let place = Place::new();
    let allocators = format!(
        "own={},slow={}",
        place.compile("own", &[]).display(),
        place.fake("slow_sized").display()
    );
    let flags = ["-t", "1", "--set", "sized.replacements=2000", "--no-repeat"];
    let end = place.run_block("run", "sized", &allocators, &flags);
    assert!(
        matches!(end.code, Some(0 | 4)),
        "{}{}",
        end.stdout,
        end.stderr
    );
    let records = samples(&place.at("run"));
    let own = records.iter().filter(|record| record["allocator"] == "own");
    let kinds: BTreeSet<&str> = own.map(|record| word(&record["outcome"], "kind")).collect();
    assert_eq!(kinds, BTreeSet::from(["unsupported"]), "{}", end.stdout);
    let slow = measured(&records, "sized", "slow");
    assert!(!slow.is_empty(), "{}", end.stdout);
    for one in slow {
        // Four laps of each kind.
        assert_eq!(one["calls"]["malloc"], 8 * (1000 + 2000), "{one}");
        let ratio = one["figures"]["sized_ratio"].as_f64().unwrap();
        assert!(ratio > 2.0, "{ratio}");
    }
}

#[test]
fn half_an_alignment_is_a_wrong_result() {
    let place = Place::new();
    let allocators = format!("glibc,half={}", place.fake("half_aligned").display());
    let flags = ["--set", "aligned*.replacements=100", "--no-repeat"];
    let end = place.run_block("run", "aligned,aligned-16", &allocators, &flags);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    for (workload, kind) in [("aligned", "wrong-result"), ("aligned-16", "ok")] {
        let of = records
            .iter()
            .filter(|record| record["workload"] == workload && record["allocator"] == "half");
        let kinds: BTreeSet<&str> = of.map(|record| word(&record["outcome"], "kind")).collect();
        assert_eq!(kinds, BTreeSet::from([kind]), "{workload}: {}", end.stdout);
    }
}

#[test]
fn each_batch_has_a_time_of_its_own() {
    let place = Place::new();
    let flags = ["--set", "batch-order*.pairs=100", "--no-repeat"];
    let end = place.run_block("run", "batch-order", "glibc,null", &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    for one in measured(&records, "batch-order", "glibc") {
        for batch in [25, 100, 400, 1600, 4096, 65_536] {
            let name = format!("pair_ns_of_batch_{batch}");
            assert!(one["figures"][&name].as_f64() > Some(0.0), "{name}");
        }
    }
}
