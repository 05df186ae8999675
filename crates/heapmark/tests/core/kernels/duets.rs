//! Duets: an allocator and the baseline take turns on one CPU.

use crate::support::live::{guests, start, wait_for};
use crate::support::{End, Place, of_purpose, samples, word};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const WORK: [&str; 9] = [
    "run",
    "-w",
    "churn",
    "-t",
    "1",
    "--target-ms",
    "10",
    "--no-aa-copy",
    "--no-floor",
];

/// Of two libraries, the first one the baseline.
fn run(place: &Place, name: &str, libraries: [&str; 2], flags: &[&str]) -> End {
    let word = |it: &&str| format!("{it}={}", place.fake(it).display());
    let both = libraries.each_ref().map(word).join(",");
    let choice = [
        "-a",
        &both,
        "--baseline",
        libraries[0],
        "--blocks",
        "2",
        "-o",
        name,
    ];
    place.run(&[&WORK[..], &choice, flags].concat())
}

/// Whether this kernel's scheduler gives turns of a length that is asked for; heapmark must then say so.
fn gives_slices(end: &End) -> bool {
    let refused = end.code == Some(2);
    if refused {
        end.is_one_line(2);
        assert!(end.stderr.contains("take --turns stop"), "{}", end.stderr);
    }
    !refused
}

fn turns(sample: &Value) -> &Value {
    &sample["measurement"]["turns"]
}

#[test]
fn both_sides_of_a_duet_take_turns_on_one_cpu_whoever_gives_them() {
    let place = Place::new();
    for by in ["slices", "stop"] {
        let end = run(&place, by, ["honest", "sluggish"], &["--turns", by]);
        if by == "slices" && !gives_slices(&end) {
            continue;
        }
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        let records = samples(&place.at(by));
        let mut duets: BTreeMap<(String, String), Vec<&Value>> = BTreeMap::new();
        for sample in of_purpose(&records, "sample") {
            let key = [&sample["block"], &sample["part"]].map(Value::to_string);
            duets.entry(key.into()).or_default().push(sample);
        }
        assert_eq!(duets.len(), 2, "a duet in each block: {records:?}");
        for sides in duets.values() {
            let [one, other] = sides[..] else {
                panic!("two sides: {sides:?}");
            };
            assert_eq!(turns(one)["cpu"], turns(other)["cpu"]);
            for side in [one, other] {
                assert_eq!(word(turns(side), "by"), by);
                assert!(turns(side)["turn_ns"].as_u64() > Some(0), "{side}");
                let runs = turns(side)["runs"].as_u64().unwrap();
                let iterations = side["measurement"]["iterations"].as_array().unwrap().len();
                assert!(iterations as u64 >= runs && runs > 0, "{side}");
            }
            // The slower one is ten times slower: beside each of its processes ran several of the other.
            let runs = |name: &str| {
                let side = sides.iter().find(|side| word(side, "allocator") == name);
                turns(side.unwrap())["runs"].as_u64().unwrap()
            };
            assert!(runs("honest") > runs("sluggish"), "{sides:?}");
        }
        let trial = of_purpose(&records, "trial");
        assert_eq!(trial.len(), 1);
        assert_eq!(word(&trial[0]["outcome"], "kind"), "ok", "{trial:?}");
        let rows = place.run(&["export", by, "--to", "json"]).stdout;
        let rows: Value = serde_json::from_str(&rows).unwrap();
        let rows = &rows["analysis"]["cases"][0];
        assert_eq!(rows["took_turns"], true);
        let ratio = |row: &Value| row["state"]["time"]["ratio"]["ratio"].as_f64();
        let slow = rows["rows"].as_array().unwrap().iter();
        let slow = slow
            .filter(|row| row["allocator"] == "sluggish")
            .find_map(ratio);
        assert!(slow > Some(1.5), "{rows}");
    }
}

#[test]
fn a_library_that_leaves_its_cpu_cannot_hide_in_a_duet() {
    let place = Place::new();
    let end = run(&place, "run", ["honest", "unpinner"], &["--turns", "stop"]);
    let records = samples(&place.at("run"));
    let outcomes: BTreeSet<&str> = of_purpose(&records, "sample")
        .into_iter()
        .filter(|sample| word(sample, "allocator") == "unpinner")
        .map(|sample| word(&sample["outcome"], "kind"))
        .collect();
    assert_eq!(outcomes, BTreeSet::from(["unsupported"]), "{}", end.stdout);
}

#[test]
fn a_command_that_cannot_take_turns_is_measured_alone_and_the_table_says_why() {
    let place = Place::new();
    let busy = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    for (line, why) in [
        (format!("{busy}; echo x > out"), "would both write out"),
        (format!("({busy}) & ({busy}) & wait"), "work at once"),
        ("true".into(), "too short for turns"),
    ] {
        let run = [
            "try",
            "-o",
            "run",
            "-a",
            "glibc",
            "--blocks",
            "1",
            "--no-aa-copy",
        ];
        let command = ["--turns", "stop", "--", "sh", "-c", &line];
        let end = place.run(&[&run[..], &command].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        let said = format!("{} {}", end.stdout, end.stderr);
        assert!(end.stdout.contains("Measured alone"), "{said}");
        assert!(end.stderr.contains(why), "{why}: {said}");
        let records = samples(&place.at("run"));
        for sample in of_purpose(&records, "sample") {
            assert!(turns(sample).is_null(), "{sample}");
        }
        std::fs::remove_dir_all(place.at("run")).unwrap();
    }
}

#[test]
fn runs_by_different_clocks_are_not_compared() {
    let place = Place::new();
    for (name, flags) in [("alone", &[][..]), ("turns", &["--turns", "stop"])] {
        let end = run(&place, name, ["honest", "sluggish"], flags);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
    }
    let end = place.run(&["compare", "alone", "turns"]);
    let said = format!("{}{}", end.stdout, end.stderr);
    assert!(
        said.contains("one run measured it in turns and by CPU time, the other alone"),
        "{said}"
    );
    let refused = place.run(&[
        "run", "-w", "larson", "-t", "2", "-a", "glibc", "--turns", "stop",
    ]);
    refused.is_one_line(2);
    assert!(
        refused.stderr.contains("nothing here can take turns"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_killed_heapmark_leaves_no_stopped_process() {
    let place = Place::new();
    let both = format!("glibc,sluggish={}", place.fake("sluggish").display());
    let choice = [
        "-a", &both, "--blocks", "50", "-o", "run", "--turns", "stop",
    ];
    let mut child = start(&place, &[&WORK[..], &choice].concat());
    wait_for("a duet", || guests(&place) >= 4);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("the end of all", || guests(&place) == 0);
}
