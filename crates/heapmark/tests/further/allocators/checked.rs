//! The checked processes through the built binary: what they find, how much they do, and when an earlier one stands for them.

use crate::support::{End, Place, of_purpose, samples, word};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// One process each, of the rows that are asked for and no others.
const ONCE: [&str; 5] = ["--blocks", "1", "--no-aa-copy", "--no-floor", "--no-repeat"];

/// heapmark with a cache that no other test writes to.
fn heapmark(place: &Place, args: &[&str]) -> End {
    place.run_with_own_cache(&[args, &ONCE].concat())
}

/// A library that stands for an allocator, and glibc.
fn beside_glibc(name: &str, library: &Path) -> String {
    format!("{name}={},glibc", library.display())
}

/// The check of an allocator.
fn check<'a>(records: &'a [Value], allocator: &str) -> &'a Value {
    let found = of_purpose(records, "check")
        .into_iter()
        .find(|record| record["allocator"] == allocator);
    found.unwrap_or_else(|| panic!("no check of {allocator}"))
}

/// A trace in which each block grows once.
fn growing(place: &Place) {
    use heapmark_trace::{Event, Head, Token, Writer};
    let mut file = fs::File::create(place.at("a.trace")).unwrap();
    let mut writer = Writer::new(&mut file, &Head::default()).unwrap();
    for index in 0..200 {
        let event = Event::Malloc {
            size: 100 + index % 300,
            operator: false,
        };
        writer.write(0, &event).unwrap();
        let token = Token {
            thread: 0,
            index: 2 * index,
        };
        writer
            .write(0, &Event::Realloc { token, size: 3000 })
            .unwrap();
    }
    writer.finish().unwrap();
}

#[test]
fn a_realloc_that_loses_what_the_block_held_is_a_wrong_result_in_kernels_and_in_replays() {
    let place = Place::new();
    growing(&place);
    let allocators = beside_glibc("forgetter", &place.fake("forgetter"));
    let workloads = "speed-realloc,speed-malloc-realloc,speed-calloc-realloc-free,trace:a.trace";
    let end = heapmark(
        &place,
        &[
            "run",
            "-w",
            workloads,
            "-t",
            "1",
            "-a",
            &allocators,
            "--target-ms",
            "2",
            "-o",
            "run",
        ],
    );
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let checks = of_purpose(&records, "check");
    assert_eq!(
        checks.len(),
        10,
        "the first round of a trace is a case of its own"
    );
    for record in checks {
        let lost = record["outcome"]
            .to_string()
            .contains("lost what the block held");
        let kind = word(&record["outcome"], "kind");
        let expected = if record["allocator"] == "glibc" {
            ("ok", false)
        } else {
            ("wrong-result", true)
        };
        assert_eq!((kind, lost), expected, "{record}");
    }
    let timed = of_purpose(&records, "sample");
    assert!(
        timed.iter().all(|record| record["allocator"] == "glibc"),
        "a row without numbers is not timed"
    );
}

#[test]
fn a_block_that_is_handed_out_twice_only_late_is_found() {
    let place = Place::new();
    let allocators = beside_glibc("repeater", &place.fake("repeater"));
    let job = [
        "run",
        "-w",
        "churn-private",
        "-t",
        "1",
        "--set",
        "churn-private.objects=5000",
        "--target-ms",
        "300",
    ];
    let end = heapmark(
        &place,
        &[&job[..], &["-a", &allocators, "-o", "run"]].concat(),
    );
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let outcome = &check(&records, "repeater")["outcome"];
    assert!(
        outcome.to_string().contains("overlaps a live block"),
        "{outcome}"
    );
}

#[test]
fn a_check_makes_at_least_as_many_calls_as_a_timed_process() {
    let place = Place::new();
    growing(&place);
    let job = [
        "run",
        "-w",
        "churn-private,trace:a.trace",
        "-t",
        "1",
        "-a",
        "glibc",
        "--target-ms",
        "20",
        "-o",
        "run",
    ];
    let end = heapmark(&place, &job);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    let calls = |purpose: &str, workload: &str| -> u64 {
        let record = of_purpose(&records, purpose)
            .into_iter()
            .find(|record| record["workload"] == workload)
            .unwrap();
        let calls = record["measurement"]["calls"].as_object().unwrap();
        calls.values().map(|calls| calls.as_u64().unwrap()).sum()
    };
    for workload in ["churn-private", "trace:a"] {
        let (checked, timed) = (calls("check", workload), calls("sample", workload));
        assert!(
            timed > 0 && checked >= timed,
            "{workload}: {checked} checked, {timed} timed"
        );
    }
}

/// Runs a job whose work is fixed, and says which of two allocators were checked in this run.
fn checked(place: &Place, name: &str, library: &Path, flags: &[&str]) -> [bool; 2] {
    let allocators = beside_glibc("mine", library);
    let job = [
        "run",
        "-w",
        "speed-malloc-free",
        "-t",
        "1",
        "-a",
        &allocators,
        "-o",
        name,
    ];
    let end = heapmark(place, &[&job[..], flags].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at(name));
    let ran = ["mine", "glibc"].map(|allocator| {
        let check = check(&records, allocator);
        assert_eq!(check["outcome"]["kind"], "ok");
        assert!(
            check.get("measurement").is_some(),
            "what the check said is there in any case"
        );
        assert_ne!(
            check.get("usage").is_some(),
            check.get("passed").is_some(),
            "{check}"
        );
        check.get("usage").is_some()
    });
    let taken = ran.iter().filter(|ran| !**ran).count();
    let told = format!("{taken} of 2 checks were passed in earlier runs");
    assert_eq!(end.stderr.contains(&told), taken > 0, "{}", end.stderr);
    ran
}

#[test]
fn a_second_run_takes_over_what_was_passed_and_a_changed_library_or_parameter_is_checked_again() {
    let place = Place::new();
    let core = place.fake("lender");
    let library = place.needing("honest", &core);
    assert_eq!(checked(&place, "first", &library, &[]), [true, true]);
    assert_eq!(checked(&place, "second", &library, &[]), [false, false]);
    let (first, second) = (samples(&place.at("first")), samples(&place.at("second")));
    for allocator in ["mine", "glibc"] {
        let (ran, taken) = (
            check(&first, allocator),
            &check(&second, allocator)["passed"],
        );
        assert_eq!(
            word(taken, "at"),
            word(ran, "started"),
            "the run says when it was passed"
        );
        assert_eq!(taken["iterations"], 1);
    }
    assert_eq!(
        checked(&place, "again", &library, &["--check-again"]),
        [true, true]
    );

    assert_eq!(
        checked(
            &place,
            "more",
            &library,
            &["--set", "speed-malloc-free.objects=5001"]
        ),
        [true, true]
    );
    for (name, file) in [("changed", &library), ("changed-below", &core)] {
        // One byte behind all that is loaded.
        let mut bytes = fs::read(file).unwrap();
        bytes.push(0);
        fs::write(file, bytes).unwrap();
        assert_eq!(checked(&place, name, &library, &[]), [true, false]);
    }
}

#[test]
fn a_library_that_is_wrong_in_rare_calls_only_has_numbers_and_its_row_says_what_is_wrong() {
    let place = Place::new();
    let fakes = ["careless", "forgetter", "brittle", "aborting"];
    let words: Vec<String> = fakes
        .iter()
        .map(|name| format!("{name}={}", place.fake(name).display()))
        .collect();
    let allocators = format!("{},glibc", words.join(","));
    let job = [
        "run",
        "-w",
        "speed-malloc-free",
        "-t",
        "1",
        "-a",
        &allocators,
    ];
    let look = |name: &str| {
        let end = heapmark(&place, &[&job[..], &["-o", name]].concat());
        assert_eq!(
            end.code,
            Some(0),
            "it is no failure: {}{}",
            end.stdout,
            end.stderr
        );
        place.full(name)
    };
    let told = look("run");
    let rows = place.rows("run");
    let findings = |allocator: &str| {
        let row = rows
            .iter()
            .find(|row| row["allocator"] == allocator)
            .unwrap();
        assert!(row["ns_per_op"].parse::<f64>().is_ok(), "{row:?}");
        row["findings"].clone()
    };
    let careless = findings("careless");
    for finding in [
        "memalign(32, 32) returned a block that is not aligned to that",
        "calloc(9223372036854775808, 2) returned memory",
        "malloc_usable_size says 8 of a block of 24 bytes",
    ] {
        assert!(careless.contains(finding), "{careless}");
    }
    assert_eq!(
        findings("forgetter"),
        "realloc to 3000 bytes lost what the block held"
    );
    assert!(
        findings("brittle").starts_with("aligned_alloc: crash, SIG"),
        "{}",
        findings("brittle")
    );
    // Ordinary calls of the same functions do not crash.
    let aborting = findings("aborting");
    for finding in [
        "malloc of more than any memory: crash, SIGABRT",
        "realloc to more than any memory: crash, SIGABRT",
        "calloc of a product that overflows: crash, SIGABRT",
    ] {
        assert!(aborting.contains(finding), "{aborting}");
    }
    assert_eq!(findings("glibc"), "");

    let page = place.run(&["report", "run", "-o", "-"]).stdout;
    let markdown = place.run(&["export", "run", "--to", "md"]).stdout;
    for text in [&told, &page, &markdown] {
        for name in fakes {
            assert!(
                text.contains(&format!("flawed: {name}: ")),
                "{name}: {text}"
            );
        }
        assert!(!text.contains("flawed: glibc"), "{text}");
    }
    // Looked at once: the next run takes it over.
    look("second");
    assert_eq!(
        place
            .rows("second")
            .iter()
            .filter(|row| row["findings"].is_empty())
            .count(),
        1
    );
    let second = samples(&place.at("second"));
    assert!(
        of_purpose(&second, "corners")
            .iter()
            .all(|record| record.get("passed").is_some())
    );
}

#[test]
fn a_check_that_fails_is_run_again_in_each_run() {
    let place = Place::new();
    let allocators = beside_glibc("forgetter", &place.fake("forgetter"));
    for name in ["first", "second"] {
        let end = heapmark(
            &place,
            &[
                "run",
                "-w",
                "speed-realloc",
                "-t",
                "1",
                "-a",
                &allocators,
                "-o",
                name,
            ],
        );
        assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
        let records = samples(&place.at(name));
        let own = check(&records, "forgetter");
        assert_eq!(
            (word(&own["outcome"], "kind"), own.get("passed")),
            ("wrong-result", None)
        );
    }
}

#[test]
fn a_cache_that_cannot_be_read_is_no_reason_to_believe_it() {
    let place = Place::new();
    let library = place.fake("honest");
    assert_eq!(checked(&place, "first", &library, &[]), [true, true]);
    for entry in fs::read_dir(place.at("cache/checks")).unwrap() {
        fs::write(entry.unwrap().path(), "{\"iterations\": 1").unwrap();
    }
    assert_eq!(checked(&place, "second", &library, &[]), [true, true]);
    assert_eq!(checked(&place, "third", &library, &[]), [false, false]);
}
