//! Fake allocators, each broken in its own way, in one run with good ones: each must end in its own typed outcome, none
//! may get a number, and none may disturb the others.

use crate::support::{Place, glibc_again, head, of_purpose, samples, source, word, words};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Name, outcome, phase where the outcome has one, and words that its record must say.
const FAKES: [(&str, &str, &str, &str); 24] = [
    ("missing", "not-loaded", "", "there is no such file"),
    ("text", "not-loaded", "", "not an ELF file"),
    ("cut", "not-loaded", "", "cut off or damaged"),
    ("bits32", "not-loaded", "", "made for I386 (32 bit)"),
    ("foreign", "not-loaded", "", "made for PowerPc (64 bit)"),
    ("nothing", "not-loaded", "", "exports no malloc"),
    ("ignored", "not-loaded", "", "was not loaded"),
    ("orphan", "not-loaded", "", "libghost.so: cannot open"),
    ("no_free", "unsupported", "", "exports no free"),
    ("leaver", "exit", "load", ""),
    ("late_leaver", "exit", "run", ""),
    ("closer", "exit", "load", ""),
    (
        "unresolved",
        "exit",
        "",
        "undefined symbol: heapmark_nowhere",
    ),
    ("crasher", "crash", "run", ""),
    ("hanger", "hang", "run", ""),
    ("overlapper", "wrong-result", "", "overlaps a live block"),
    (
        "misaligner",
        "wrong-result",
        "",
        "is not aligned to 16 bytes\"",
    ),
    (
        "dlmalloc_of_8",
        "wrong-result",
        "",
        "takes -DMALLOC_ALIGNMENT=16",
    ),
    (
        "humble",
        "unsupported",
        "",
        "SCHED_OTHER at nice 7 instead of",
    ),
    ("scribbler", "wrong-result", "", "of a live block"),
    (
        "parricide",
        "crash",
        "load",
        "SIGKILL to its parent process",
    ),
    ("killed", "crash", "run", "SIGKILL"),
    ("starver", "oom", "", "malloc returned NULL"),
    ("slow", "ok", "", ""),
];

const BLOCKS: usize = 3;

/// The library of a fake.
fn library(place: &Place, name: &str) -> PathBuf {
    let patched = |byte: usize, value: u8| {
        let (honest, file) = (place.fake("honest"), place.at(&format!("lib{name}.so")));
        let mut bytes = fs::read(honest).unwrap();
        bytes[byte] = value;
        fs::write(&file, bytes).unwrap();
        file
    };
    match name {
        "missing" => place.at("libmissing.so"),
        "text" => {
            fs::write(place.at("libtext.so"), "GROUP ( libother.so )\n").unwrap();
            place.at("libtext.so")
        }
        "bits32" => {
            fs::write(place.at("libbits32.so"), elf32_header()).unwrap();
            place.at("libbits32.so")
        }
        // EI_OSABI: the dynamic linker says so on stderr, ignores the library, and libc serves.
        "ignored" => patched(7, 97),
        // The low byte of e_machine: PowerPC.
        "foreign" => patched(18, 20),
        "cut" => {
            let bytes = fs::read(place.fake("honest")).unwrap();
            fs::write(place.at("libcut.so"), &bytes[..bytes.len() / 2]).unwrap();
            place.at("libcut.so")
        }
        // Where functions are looked up as they are called, whatever this compiler would do by itself.
        "unresolved" => place.compile(name, &[source("own"), "-Wl,-z,lazy".into()]),
        "nothing" | "no_free" => place.compile(name, &[]),
        "orphan" => {
            let ghost = place.compile("ghost", &[]);
            let orphan = place.compile(name, &[source("own"), ghost.clone()]);
            fs::remove_file(ghost).unwrap();
            orphan
        }
        _ => place.fake(name),
    }
}

/// A shared library for the 80386 that has nothing but its header.
fn elf32_header() -> Vec<u8> {
    let mut header = b"\x7fELF\x01\x01\x01".to_vec();
    header.resize(16, 0);
    // e_type: ET_DYN; e_machine: EM_386; e_version.
    header.extend([3, 0, 3, 0, 1, 0, 0, 0]);
    // No entry, no tables, no flags; then e_ehsize.
    header.resize(40, 0);
    header.extend([52, 0]);
    header.resize(52, 0);
    header
}

/// Whether this word stands in a number's place.
fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

#[test]
fn every_fake_ends_in_its_own_outcome_and_disturbs_no_other() {
    let place = Place::new();
    let mut good = vec!["mimalloc3", "rpmalloc", "glibc"];
    place.ready(&good);
    let broken: Vec<&str> = FAKES
        .iter()
        .map(|fake| fake.0)
        .filter(|name| *name != "slow")
        .collect();
    let words: Vec<String> = FAKES
        .iter()
        .map(|(name, ..)| format!("{name}={}", library(&place, name).display()))
        .collect();
    let allocators = format!("{},{}", good.join(","), words.join(","));
    let end = place.run_small(
        "run",
        &[
            "-a",
            &allocators,
            "--blocks",
            "3",
            "--timeout",
            "10",
            "--seed",
            "1",
        ],
    );
    assert_eq!(end.code, Some(4), "{}\n{}", end.stdout, end.stderr);
    let run = place.at("run");
    good.push("slow");
    outcomes_are_typed(&run);
    stdout_has_no_number_of(&broken, &end.stdout);
    rows_are_complete(&place, &good, &broken);
    markdown_has_no_row_of(&place, &good, &broken);
    json_has_no_measurement_of(&place, &good, &broken);
}

fn outcomes_are_typed(run: &Path) {
    let records = samples(run);
    for (name, kind, phase, says) in FAKES {
        let own = records
            .iter()
            .filter(|record| record["allocator"] == name && record["purpose"] != "corners");
        let mine: Vec<&Value> = own.collect();
        assert!(!mine.is_empty(), "{name} left no record");
        for record in &mine {
            let outcome = &record["outcome"];
            assert_eq!(word(outcome, "kind"), kind, "{name}: {outcome}");
            assert!(
                phase.is_empty() || word(outcome, "phase") == phase,
                "{name}: {outcome}"
            );
            assert!(outcome.to_string().contains(says), "{name}: {outcome}");
            assert_eq!(
                record.get("measurement").is_some(),
                kind == "ok",
                "{name}: {record}"
            );
        }
        let checks = mine
            .iter()
            .filter(|record| record["purpose"] == "check")
            .count();
        assert_eq!(checks, 1, "{name}");
    }
    let outcome_of = |name: &str| {
        &records
            .iter()
            .find(|record| record["allocator"] == name)
            .unwrap()["outcome"]
    };
    assert_eq!(outcome_of("crasher")["signal"], "SIGSEGV");
    assert_eq!(outcome_of("leaver")["code"], 0);
    assert_eq!(outcome_of("late_leaver")["code"], 0);
    // A check may take longer than a timed process, on a machine where the baseline's took long.
    assert!(outcome_of("hanger")["after_s"].as_f64().unwrap() >= 10.0);
    let ignored = records
        .iter()
        .find(|record| record["allocator"] == "ignored")
        .unwrap();
    assert!(
        word(ignored, "stderr").contains("cannot be preloaded"),
        "{ignored}"
    );
    let closer = records
        .iter()
        .find(|record| record["allocator"] == "closer")
        .unwrap();
    assert!(
        word(closer, "stderr").contains("closes descriptors that are not its own"),
        "{closer}"
    );
    assert!(
        !outcome_of("hanger")["threads"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

fn stdout_has_no_number_of(broken: &[&str], stdout: &str) {
    for name in broken {
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_string)
                .take(2)
                .collect::<Vec<_>>()
        };
        // A table's row goes on with a number, a line of failures has a colon after the name.
        let is_row = |line: &&str| matches!(words(line).as_slice(), [first, next] if first == name && is_number(next));
        assert_eq!(stdout.lines().find(is_row), None, "{name} has a row");
        let failed = format!("{name}:");
        assert!(
            stdout
                .lines()
                .any(|line| words(line).first() == Some(&failed)),
            "{name} is not told in\n{stdout}"
        );
    }
    let slow = stdout
        .lines()
        .find(|line| line.trim_start().starts_with("slow "));
    assert!(
        slow.is_some_and(|line| line.split_whitespace().nth(1).is_some_and(is_number)),
        "{stdout}"
    );
}

fn rows_are_complete(place: &Place, good: &[&str], broken: &[&str]) {
    let rows = place.rows("run");
    assert_eq!(rows.len(), good.len() + broken.len());
    let row = |name: &str| rows.iter().find(|row| row["allocator"] == name).unwrap();
    for name in good {
        let row = row(name);
        assert_eq!(
            (row["outcome"].as_str(), row["blocks"].as_str()),
            ("ok", "3"),
            "{row:?}"
        );
        assert_eq!(row["ratio_pairs"], BLOCKS.to_string(), "{row:?}");
        assert!(
            is_number(&row["ns_per_op"]) && is_number(&row["peak_rss_bytes"]),
            "{row:?}"
        );
    }
    let kinds: BTreeMap<&str, &str> = FAKES.iter().map(|fake| (fake.0, fake.1)).collect();
    for name in broken {
        let row = row(name);
        assert_eq!(row["outcome"], kinds[name]);
        let mut numbers: Vec<&str> = row
            .iter()
            .filter(|(_, text)| is_number(text))
            .map(|(column, _)| column.as_str())
            .collect();
        // What was planned, not what was measured.
        numbers.retain(|column| !["threads", "planned_blocks"].contains(column));
        assert_eq!(numbers, Vec::<&str>::new(), "{name}: {row:?}");
    }
}

fn markdown_has_no_row_of(place: &Place, good: &[&str], broken: &[&str]) {
    let text = place.run(&["export", "run", "--to", "md"]).stdout;
    let cell = |line: &str| {
        line.strip_prefix('|')
            .and_then(|rest| Some(rest.split_once('|')?.0.trim().to_string()))
    };
    let rows: Vec<String> = text
        .lines()
        .filter_map(cell)
        .map(|name| name.replace('\\', ""))
        .collect();
    for name in good {
        assert!(
            rows.iter().any(|row| row == name),
            "{name} has no row in\n{text}"
        );
    }
    let numbered = |name: &str| {
        let mine = |line: &&str| cell(line).is_some_and(|first| first.replace('\\', "") == name);
        text.lines()
            .filter(mine)
            .any(|line| line.split('|').skip(2).any(|cell| is_number(cell.trim())))
    };
    assert!(numbered("slow"), "{text}");
    for name in broken {
        assert!(!numbered(name), "{name} has numbers in\n{text}");
        assert!(
            text.replace('\\', "").contains(name),
            "{name} is not told in\n{text}"
        );
    }
}

fn json_has_no_measurement_of(place: &Place, good: &[&str], broken: &[&str]) {
    let document: Value =
        serde_json::from_str(&place.run(&["export", "run", "--to", "json"]).stdout).unwrap();
    let rows = document["analysis"]["cases"][0]["rows"].as_array().unwrap();
    let state = |name: &str| &rows.iter().find(|row| row["allocator"] == name).unwrap()["state"];
    for name in good {
        assert_eq!(word(state(name), "kind"), "measured", "{name}");
        assert!(state(name).get("time").is_some(), "{name}");
    }
    for name in broken {
        assert_eq!(word(state(name), "kind"), "failed", "{name}");
        assert!(state(name).get("time").is_none(), "{name}");
    }
    let records = document["records"].as_array().unwrap().iter();
    for record in records.filter(|record| record["purpose"] != "corners") {
        let is_broken = broken.contains(&word(record, "allocator"));
        assert_eq!(
            record.get("measurement").is_none_or(Value::is_null),
            is_broken,
            "{record}"
        );
    }
}

#[test]
#[should_panic(expected = "not-loaded")]
fn a_good_neighbour_that_is_glibc_under_another_name_is_noticed() {
    let place = Place::new();
    let honest = place.fake("honest").display().to_string();
    let all = format!("{},honest={honest}", glibc_again());
    place.run_small("run", &["-a", &all, "--blocks", "3"]);
    rows_are_complete(&place, &["glibc", "honest", "another"], &[]);
}

#[test]
fn a_failing_allocator_is_run_no_more_after_its_check() {
    let place = Place::new();
    let crasher = format!("crasher={}", place.fake("crasher").display());
    let honest = format!("honest={}", place.fake("honest").display());
    for (run, names, samples_of_others) in [
        ("run", [crasher.as_str(), "glibc"], 0),
        ("three", [crasher.as_str(), &honest], 2 * 5),
    ] {
        let end = place.run_small(run, &["-a", &names.join(","), "--blocks", "5"]);
        assert_eq!(end.code, Some(4), "{}", end.stderr);
        let records = samples(&place.at(run));
        let own = records
            .iter()
            .filter(|record| record["allocator"] == "crasher");
        assert_eq!(own.count(), 1);
        let others = of_purpose(&records, "sample").len();
        assert_eq!(others, samples_of_others, "{run}: {}", end.stderr);
        assert_eq!(head(&place.at(run))["plan"]["baseline"], "glibc");
        let said = words(&end.stderr);
        let stops = "nothing is left to compare: crasher: crash: SIGSEGV in phase run. The same process once more: heapmark run --resume \
             run --cell churn@1/check/crasher";
        assert_eq!(said.contains(stops), samples_of_others == 0, "{said}");
    }
}
