//! `--age`: a heap that litter has aged, beside a fresh one, through the built binary.

use crate::support::{Place, SMALL, of_purpose, samples, word};
use serde_json::Value;

/// Page faults in the measured phases of a workload's samples of an allocator.
fn faults(records: &[Value], workload: &str, allocator: &str) -> u64 {
    let of = |record: &&&Value| {
        [word(record, "workload"), word(record, "allocator")] == [workload, allocator]
    };
    let timed = of_purpose(records, "sample");
    let own: Vec<_> = timed.iter().filter(of).collect();
    assert_eq!(own.len(), 2, "{workload} {allocator}");
    let iterations = own.iter().flat_map(|record| {
        let iterations = record["measurement"]["iterations"].as_array();
        iterations.unwrap().iter()
    });
    iterations
        .map(|iteration| iteration["minor_faults"].as_u64().unwrap())
        .sum()
}

#[test]
fn each_allocator_is_compared_with_itself_and_one_whose_calls_take_longer_with_age_shows() {
    let place = Place::new();
    let walker = format!("glibc,walker={}", place.fake("list_walker").display());
    let flags = [
        "run", "--age", "50", "-a", &walker, "--blocks", "2", "-o", "aged",
    ];
    let end = place.run(&[&flags, &SMALL[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let all = place.run(&["show", "--full", "aged"]).stdout;
    for words in [
        "churn-aged, 1 thread, heap aged to 50 %",
        "aged / fresh [95",
        "MiB live, and holds: glibc ",
        "freed to 50 % of its blocks",
    ] {
        assert!(all.contains(words), "{words}: {all}");
    }

    let records = samples(&place.at("aged"));
    let [fresh, aged] = ["churn", "churn-aged"].map(|name| faults(&records, name, "walker"));
    assert!(aged > 4 * fresh, "{aged} faults with age, {fresh} without");
    // The litter is as large as the least, and of the workload's own sizes.
    let checks = of_purpose(&records, "check");
    let sizes = |record: &&&Value| record["measurement"]["notes"].get("sizes").is_some();
    let counted: Vec<_> = checks.iter().filter(sizes).collect();
    assert_eq!(counted.len(), 1, "the baseline's, with a fresh heap");
    assert_eq!(word(counted[0], "cell"), "churn@1/check/glibc");
    for record in of_purpose(&records, "sample") {
        let live = record["measurement"]["figures"]["litter_live_bytes"].as_f64();
        match word(record, "workload") {
            "churn" => assert_eq!(live, None),
            _ => assert!((15e6..18e6).contains(&live.unwrap()), "{live:?}"),
        }
    }

    let csv = place.run(&["export", "aged", "--to", "csv"]).stdout;
    let of_age: Vec<&str> = csv
        .lines()
        .filter(|line| line.contains(",aged_ratio,"))
        .collect();
    assert_eq!(of_age.len(), 2, "{csv}");
    assert!(of_age.iter().all(|line| line.starts_with("churn-aged,1,")));
    let json = place.run(&["export", "aged", "--to", "json"]).stdout;
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = &json["analysis"]["cases"][1]["rows"];
    assert!(
        rows[0]["state"]["factor"]["ratio"]["ratio"].is_f64(),
        "{rows}"
    );
}

#[test]
fn memory_beyond_what_was_requested_is_told_of_fresh_heaps_alone() {
    let place = Place::new();
    let flags = [
        "--age",
        "50",
        "-t",
        "1",
        "--no-aa-copy",
        "--no-floor",
        "--no-repeat",
        "--set",
        "cross-vector.volume=1000000",
        "--set",
        "scatter-1.blocks=1000",
        "--set",
        "scatter-1.loops=5",
        "--set",
        "aligned.replacements=1000",
    ];
    let workloads = "cross-vector,scatter-1,aligned";
    let end = place.run_block("run", workloads, "glibc", &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    for (workload, figure) in [
        ("cross-vector", "overhead_ratio"),
        ("scatter-1", "peak_overhead_percent"),
        ("aligned", "aligned_overhead"),
    ] {
        let is_told = |name: &str| -> Vec<bool> {
            let timed = of_purpose(&records, "sample").into_iter();
            let own = timed.filter(|record| word(record, "workload") == name);
            own.map(|record| record["measurement"]["figures"][figure].is_number())
                .collect()
        };
        assert_eq!(is_told(workload), [true], "{workload}");
        assert_eq!(is_told(&format!("{workload}-aged")), [false], "{workload}");
    }
}

#[test]
fn ages_that_mean_nothing_are_refused_and_runs_of_two_ages_are_not_compared() {
    let place = Place::new();
    for (flags, words) in [
        (&["--age", "0"][..], "0 % is a fresh heap"),
        (&["--age", "100"], "expected 1 to 99"),
        (&["memory-shapes", "--age", "50"], "--age compares times"),
        (
            &["--age", "50", "-w", "traverse"],
            "--age: not for traverse (defined by the state of its own heap)",
        ),
    ] {
        let end = place.run(&[&["run", "-a", "glibc"], flags].concat());
        assert_eq!(end.code, Some(2), "{flags:?}: {}", end.stderr);
        assert!(end.stderr.contains(words), "{flags:?}: {}", end.stderr);
    }

    for (name, age) in [("fresh", &[][..]), ("aged", &["--age", "25"])] {
        let flags = ["run", "-a", "glibc", "--blocks", "1", "-o", name];
        let end = place.run(&[&flags, age, &SMALL[..]].concat());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    }
    let end = place.run(&["compare", "fresh", "aged"]);
    assert_eq!(end.code, Some(2), "{}", end.stdout);
    assert!(
        end.stderr.contains("heaps of different ages"),
        "{}",
        end.stderr
    );
}
