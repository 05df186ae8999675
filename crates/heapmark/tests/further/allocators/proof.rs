//! Libraries that are not what they seem: who owns `malloc` is proved in each process, who serves behind it in the checked one.
//! Each must end in its own outcome, and none may falsify a number or end the run.

use crate::support::{Place, of_purpose, samples, source, word};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Name, outcome, and words that its records must say.
const HOSTILE: [(&str, &str, &str); 12] = [
    (
        "forward_all",
        "not-loaded",
        "libc served 100 % of the bytes",
    ),
    (
        "forward_large",
        "not-loaded",
        "libc served 100 % of the bytes",
    ),
    (
        "forward_later",
        "not-loaded",
        "libc served 100 % of the bytes",
    ),
    (
        "second_libc",
        "not-loaded",
        "libc served 100 % of the bytes",
    ),
    ("lazy", "not-loaded", "libc served 100 % of the bytes"),
    ("indirect", "not-loaded", "malloc is served by /"),
    ("borrower", "not-loaded", "liblender.so"),
    (
        "versioned",
        "not-loaded",
        "libc.so.6, and so is all else that the library exports",
    ),
    ("recursive", "ok", ""),
    ("tuner", "ok", ""),
    ("holder", "ok", ""),
    ("honest", "ok", ""),
];

fn library(place: &Place, name: &str) -> PathBuf {
    match name {
        "forward_all" => place.compile(name, &[source("forward")]),
        "lazy" => place.compile(name, &[]),
        "borrower" => place.compile(name, &[place.fake("lender")]),
        "versioned" => place.compile(
            name,
            &[source("own"), source("versioned").with_extension("ld")],
        ),
        _ => place.fake(name),
    }
}

fn words(place: &Place, names: &[&str]) -> String {
    let words: Vec<String> = names
        .iter()
        .map(|name| format!("{name}={}", library(place, name).display()))
        .collect();
    words.join(",")
}

/// All that is stored of an allocator in a case; rare calls are looked at in no case.
fn records_of(run: &Path, allocator: &str) -> Vec<Value> {
    let of_case =
        |record: &Value| record["allocator"] == allocator && record["purpose"] != "corners";
    samples(run).into_iter().filter(of_case).collect()
}

#[test]
fn a_library_whose_blocks_another_one_serves_is_not_loaded_and_says_who_does() {
    let place = Place::new();
    let names = HOSTILE.map(|(name, ..)| name);
    let end = place.run_small("run", &["-a", &words(&place, &names), "--blocks", "1"]);
    assert_eq!(end.code, Some(4), "{}\n{}", end.stdout, end.stderr);
    for (name, kind, says) in HOSTILE {
        let records = records_of(&place.at("run"), name);
        assert!(!records.is_empty(), "{name} left no record");
        for record in &records {
            let outcome = &record["outcome"];
            assert_eq!(word(outcome, "kind"), kind, "{name}: {outcome}");
            assert!(outcome.to_string().contains(says), "{name}: {outcome}");
            assert_eq!(
                record.get("measurement").is_some(),
                kind == "ok",
                "{name}: {record}"
            );
        }
        assert_eq!(
            of_purpose(&records, "sample").len(),
            usize::from(kind == "ok"),
            "{name}"
        );
    }
    let baseline = records_of(&place.at("run"), "glibc");
    assert!(
        baseline
            .iter()
            .all(|record| record["outcome"]["kind"] == "ok"),
        "{baseline:?}"
    );
}

#[test]
fn libc_is_asked_while_the_blocks_of_the_workload_are_live() {
    let place = Place::new();
    let allocators = words(&place, &["forward_workers"]);
    let flags = ["--no-aa-copy", "--no-floor", "--no-repeat", "--blocks", "1"];
    let end = place.run(
        &[
            &[
                "run",
                "-o",
                "run",
                "-w",
                "speed-malloc-free",
                "-t",
                "1",
                "-a",
                &allocators,
            ],
            &flags[..],
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(4), "{}\n{}", end.stdout, end.stderr);
    let records = records_of(&place.at("run"), "forward_workers");
    assert!(
        word(&records[0]["outcome"], "why").starts_with("libc served 100 % of the bytes"),
        "{records:?}"
    );
}

#[test]
fn a_wrapper_that_is_named_as_one_is_measured_and_its_row_says_who_serves() {
    let place = Place::new();
    let names = ["forward_all", "lazy", "honest"];
    let allocators = words(&place, &names);
    let end = place.run_small(
        "run",
        &["-a", &allocators, "--blocks", "2", "--allow-forwarding"],
    );
    assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);
    let markdown = place.run(&["export", "run", "--to", "md"]).stdout;
    for (text, name) in [&end.stdout, &markdown]
        .into_iter()
        .flat_map(|text| names.map(|name| (text, name)))
    {
        let name_of = |line: &str| line.trim_start_matches(['|', ' ']).replace('\\', "");
        let mut rows = text.lines().filter(|line| {
            name_of(line).starts_with(&format!("{name} "))
                || name_of(line).starts_with(&format!("{name}:"))
        });
        assert_eq!(
            rows.any(|row| row.contains("libc serves 100 %")),
            name != "honest",
            "{name} in\n{text}"
        );
    }
    let all = place.full("run");
    assert!(all.contains("wrapper around libc."), "{all}");

    let folder = place.at("config/heapmark/allocators");
    fs::create_dir_all(&folder).unwrap();
    let entry = format!(
        "name = \"mine\"\nfamily = \"mine\"\nabout = \"mine\"\ntier = \"user\"\nwrapper = true\n\
         source = {{ kind = \"path\", files = [\"{}\"] }}\n",
        place.at("liblazy.so").display()
    );
    fs::write(folder.join("mine.toml"), entry).unwrap();
    let end = place.run_small("entry", &["-a", "mine", "--blocks", "1", "--check-again"]);
    assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);
    let check = of_purpose(&records_of(&place.at("entry"), "mine"), "check")[0].clone();
    assert_eq!(check["measurement"]["notes"]["served"], "libc serves 100 %");
}

#[test]
fn no_library_stands_between_a_number_and_the_kernel() {
    let place = Place::new();
    let end = place.run_small(
        "run",
        &["-a", &words(&place, &["clockstopper"]), "--blocks", "2"],
    );
    assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);
    let records = records_of(&place.at("run"), "clockstopper");
    for record in of_purpose(&records, "sample") {
        let measurement = &record["measurement"];
        let number = |value: &Value| value.as_u64().unwrap();
        for iteration in measurement["iterations"].as_array().unwrap() {
            assert!(number(&iteration["wall_ns"]) > 0, "{iteration}");
        }
        let used = |iteration: &Value| number(&iteration["user_ns"]) + number(&iteration["sys_ns"]);
        assert!(
            measurement["iterations"]
                .as_array()
                .unwrap()
                .iter()
                .any(|iteration| used(iteration) > 0),
            "{measurement}"
        );
        assert!(
            number(&measurement["threads"][0]["wall_ns"]) > 0,
            "{measurement}"
        );
        assert!(
            number(&measurement["peak_rss_bytes"]) > number(&measurement["requested_peak_bytes"]),
            "{measurement}"
        );
    }
}

#[test]
fn a_library_that_slows_the_clock_or_pins_threads_has_no_number() {
    let place = Place::new();
    let names = ["slow_clock", "pinner"];
    let end = place.run_small("run", &["-a", &words(&place, &names), "--blocks", "1"]);
    assert_eq!(end.code, Some(4), "{}\n{}", end.stdout, end.stderr);
    let cpus = std::thread::available_parallelism().unwrap().get();
    for (name, kind, says) in [
        (
            "slow_clock",
            "wrong-result",
            "its clocks contradict each other: the kernel's call says",
        ),
        ("pinner", "unsupported", "on other CPUs, 1 instead of"),
    ] {
        for record in &records_of(&place.at("run"), name) {
            let outcome = &record["outcome"];
            // The kernel may not let its code be written to, and one CPU is all that a pin can leave.
            let is_prevented = outcome["code"] == 77 || name == "pinner" && cpus == 1;
            if !is_prevented {
                assert_eq!(word(outcome, "kind"), kind, "{name}: {outcome}");
                assert!(outcome.to_string().contains(says), "{name}: {outcome}");
                assert!(record.get("measurement").is_none(), "{name}: {record}");
            }
        }
    }
}

#[test]
fn what_an_allocator_takes_before_its_first_block_is_its_memory() {
    const TAKEN: u64 = 9 * (8 << 20);
    let place = Place::new();
    let allocators = words(&place, &["prefilled", "honest"]);
    let run = |name: &str, allocators: &str, flags: &[&str]| {
        let one_thread = ["-t", "1", "--no-aa-copy", "--no-floor", "--no-repeat"];
        let flags = [&one_thread[..], flags].concat();
        let end = place.run_block(name, "same-thread", allocators, &flags);
        assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);
        end
    };
    let end = run("run", &allocators, &[]);
    assert!(end.says("before its first block"), "{}", end.stdout);
    let overhead = |name: &str| -> f64 {
        let rows = place.rows("run");
        let row = rows.iter().find(|row| row["allocator"] == name).unwrap();
        row["overhead"].parse().unwrap()
    };
    let records = records_of(&place.at("run"), "prefilled");
    let measurement = &of_purpose(&records, "sample")[0]["measurement"];
    let number = |key: &str| measurement[key].as_u64().unwrap();
    assert!(number("held_before_bytes") >= TAKEN, "{measurement}");
    assert!(
        overhead("prefilled") > TAKEN as f64 / number("requested_peak_bytes") as f64,
        "{measurement}"
    );
    assert!(overhead("prefilled") > overhead("honest"));

    // The same of memory that is sampled: all of it stays.
    run("kept", &words(&place, &["prefilled"]), &["--retained"]);
    let csv = place.run(&["export", "kept", "--to", "csv"]).stdout;
    let is_kept = |line: &&str| line.contains("prefilled,retained_bytes_0_ms");
    let row = csv.lines().find(is_kept).unwrap_or_else(|| panic!("{csv}"));
    let median: f64 = row.split(',').nth(6).unwrap().parse().unwrap();
    assert!(median >= TAKEN as f64, "{row}");
}

#[test]
fn a_library_that_truncates_what_it_inherits_ends_no_run() {
    let place = Place::new();
    let end = place.run_small(
        "run",
        &["-a", &words(&place, &["truncater"]), "--blocks", "2"],
    );
    assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);
    for row in place.rows("run") {
        assert_eq!(
            (row["outcome"].as_str(), row["samples"].as_str()),
            ("ok", "2"),
            "{row:?}"
        );
    }
}

#[test]
fn a_library_that_is_replaced_on_disk_is_not_measured_under_its_name() {
    let place = Place::new();
    let other = place.fake("honest");
    let replaced = place.fake("replaced");
    let above = place.needing("tuner", &replaced);
    // A process that has loaded what it needs goes on with that; the next one would load the other.
    for (run, library, not_yet) in [("itself", &replaced, 0), ("below", &above, 1)] {
        place.fake("replaced");
        fs::copy(&other, place.at("libreplaced.so.new")).unwrap();
        let allocators = format!("glibc,replaced={}", library.display());
        let end = place.run_small(run, &["-a", &allocators, "--blocks", "2"]);
        assert_eq!(end.code, Some(4), "{}\n{}", end.stdout, end.stderr);
        assert!(!place.at("libreplaced.so.new").exists(), "it was loaded");
        let records = records_of(&place.at(run), "replaced");
        assert!(records.len() > not_yet, "{records:?}");
        for record in &records[not_yet..] {
            assert_eq!(record["outcome"]["kind"], "not-loaded", "{record}");
            let why = word(&record["outcome"], "why");
            assert!(why.contains("libreplaced.so was replaced"), "{record}");
        }
    }
}
