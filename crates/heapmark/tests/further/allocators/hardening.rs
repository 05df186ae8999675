//! The hardening half of `heapmark check` through the built binary: libraries that answer every misuse in one way
//! (`tests/fakes/answers.c`) are told apart, one that dies of everything scores nothing, and printed programs show the same.

use crate::support::stored::copy;
use crate::support::{Place, repository, word};
use heapmark::check::definition;
use serde_json::Value;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::LazyLock;

/// The cells of each check, made of this library.
fn made(place: &Place, answer: &str, flags: &[&str], code: i32) -> Vec<(String, String, Value)> {
    let own = format!("{answer}={}", place.answering(answer).display());
    let output = format!("of-{answer}");
    let words = ["check", "-a", &own, "--format", "json", "--output", &output];
    let end = place.run(&[&words[..], flags].concat());
    assert_eq!(end.code, Some(code), "{answer}: {}", end.stderr);
    let read: Value = serde_json::from_str(&end.stdout).unwrap();
    let mut cells = Vec::new();
    for result in read["allocators"][0]["hardening"].as_array().unwrap() {
        for cell in result["cells"].as_array().unwrap() {
            cells.push((
                word(result, "check").to_owned(),
                word(result, "group").to_owned(),
                cell.clone(),
            ));
        }
    }
    cells
}

/// Wrong calls, each of which such a library notices at once.
const CALLS: [&str; 5] = [
    "double free",
    "bad free",
    "bad realloc",
    "bad usable size",
    "mismatch",
];
/// Its old owner frees the block of a new one: that is what no such library can notice.
const UNNOTICED: &str = "double-free-reused";
/// Frees of what such a library has not made.
const FORGED: [&str; 4] = [
    "fake-chunk",
    "fake-chunk-stack",
    "fake-chunk-global",
    "fake-chunk-interior",
];
/// Writes behind a block, noticed when it is freed.
const BEHIND: [&str; 4] = [
    "over-1-request",
    "over-1-usable",
    "over-8-usable",
    "tail-forge",
];
/// Writes before it.
const BEFORE: [&str; 3] = ["under-8", "size-forge", "size-forge-16"];
/// Writes into a freed block, noticed when it is handed out.
const AFTER: [&str; 3] = ["uaf-write", "uaf-remote", "safe-link"];
/// What only a page without rights notices.
const PAGES: [&str; 4] = [
    "next-page",
    "prev-page",
    "zero-size-touch",
    "large-unmapped",
];

/// What a check has to say of such a library.
fn expected(answer: &str, check: &str, group: &str) -> Option<&'static str> {
    let own = match answer {
        "stops" | "exits" => "stopped",
        "stops_late" => "stopped-late",
        "crashes" => "crashed",
        "corrupts" => "corrupted",
        "hangs" => "hang",
        _ => "absorbed",
    };
    if check == UNNOTICED {
        Some("corrupted")
    } else if CALLS.contains(&group) || FORGED.contains(&check) {
        Some(own)
    } else if BEHIND.contains(&check) || BEFORE.contains(&check) {
        Some(match answer {
            "traps" if BEHIND.contains(&check) => "trapped",
            "spills" => "spilled",
            _ => own,
        })
    } else if PAGES.contains(&check) {
        Some(match answer {
            // Before a block that traps is slack; before others lies their neighbour.
            "traps" if check != "prev-page" => "trapped",
            "traps" => "absorbed",
            _ if check == "prev-page" => "spilled",
            _ => "absorbed",
        })
    } else if AFTER.contains(&check) {
        Some(match answer {
            "traps" => "trapped",
            "stops" => "stopped-late",
            _ => own,
        })
    } else {
        None
    }
}

#[test]
fn each_misuse_names_the_planted_answer() {
    each_misuse_names(&["stops", "corrupts"]);
}

#[test]
#[ignore = "make test-all"]
fn each_misuse_names_the_other_answers() {
    each_misuse_names(&["traps", "absorbs", "stops_late", "crashes", "spills"]);
}

fn each_misuse_names(answers: &[&str]) {
    let place = Place::new();
    let only = [&CALLS[..], &FORGED, &BEHIND, &BEFORE, &AFTER, &PAGES];
    let only = only.concat().join(",");
    for answer in answers {
        let flags = ["--only", &only, "--timeout", "20s"];
        let cells = made(&place, answer, &flags, 0);
        assert!(cells.len() > 50, "{answer}: {}", cells.len());
        for (check, group, cell) in cells {
            // Small blocks of a library that traps have slack before the guard, and what an informed attacker copies may be right.
            let is_large = cell["size_bytes"].as_u64() > Some(4096) || check == "zero-size-touch";
            let is_call = CALLS.contains(&group.as_str());
            let is_certain = is_large && (cell["form"] == "naive" || group == "forged");
            if cell["outcome"] == "observed" || !(is_call || is_certain) {
                continue;
            }
            let expected = expected(answer, &check, &group);
            let found = word(&cell, "outcome");
            assert_eq!(Some(found), expected, "{answer} {check}: {cell}");
            let impact = if found == "corrupted" {
                "overlap"
            } else {
                "none"
            };
            assert_eq!(word(&cell, "impact"), impact, "{answer} {check}: {cell}");
            let distance = cell["distance"].as_u64();
            assert_eq!(
                found == "stopped-late",
                distance > Some(0),
                "{check}: {cell}"
            );
        }
    }
}

/// The only two impacts that no answer above has.
#[test]
fn a_block_and_a_write_where_the_attacker_wants_them_are_named() {
    let place = Place::new();
    for (answer, checks, impact) in [
        ("hands_out", &FORGED[..3], "chosen-block"),
        (
            "unlinks",
            &["uaf-write", "uaf-remote", "over-into-free"],
            "chosen-write",
        ),
    ] {
        let cells = made(&place, answer, &["--only", &checks.join(",")], 0);
        let informed = cells.iter().filter(|it| it.2["form"] == "informed");
        for (check, _, cell) in informed.clone() {
            assert_eq!(word(cell, "outcome"), "corrupted", "{check}: {cell}");
            assert_eq!(word(cell, "impact"), impact, "{check}: {cell}");
        }
        assert_eq!(informed.count(), 6, "{answer}");
    }
}

#[test]
fn what_stops_late_does_so_after_as_many_calls_in_each_exercise() {
    let place = Place::new();
    let only = ["--only", "double-free,double-free-remote"];
    let cells = made(&place, "stops_late", &only, 0);
    assert_eq!(cells.len(), 4);
    for (check, _, cell) in cells {
        // `LATER` of answers.c, less the call that ends it.
        assert_eq!(cell["distance"], 39, "{check}: {cell}");
    }
}

/// Each takes its whole time.
#[test]
fn four_processes_of_a_misuse_that_hang_are_enough() {
    let place = Place::new();
    let flags = ["--preset", "full", "--timeout", "1s"];
    let only = ["--only", "double-free-cold"];
    for (_, _, cell) in made(&place, "hangs", &[&flags[..], &only].concat(), 0) {
        assert_eq!(cell["tally"], serde_json::json!({"hang": 4}), "{cell}");
    }
}

#[test]
fn a_fault_at_an_address_of_the_allocators_entry_is_its_own_way_to_stop() {
    let place = Place::new();
    let library = place.answering("crashes");
    fs::create_dir_all(place.at("config/heapmark/allocators")).unwrap();
    for (name, at, expected) in [("own", 16, "stopped"), ("other", 24, "crashed")] {
        let entry = format!(
            "name = '{name}'\nfamily = '{name}'\nabout = 'mine'\ntier = 'user'\nstops-at = [{at}]\n\
             source = {{ kind = 'path', files = ['{}'] }}\n",
            library.display()
        );
        let file = format!("config/heapmark/allocators/{name}.toml");
        fs::write(place.at(&file), entry).unwrap();
        let words = [
            "check",
            "-a",
            name,
            "--format",
            "json",
            "--only",
            "double-free",
        ];
        let end = place.run(&[&words[..], &["--output", name]].concat());
        assert_eq!(end.code, Some(0), "{name}: {}", end.stderr);
        let read: Value = serde_json::from_str(&end.stdout).unwrap();
        let cells = &read["allocators"][0]["hardening"][0]["cells"];
        for cell in cells.as_array().unwrap() {
            assert_eq!(word(cell, "outcome"), expected, "{name}: {cell}");
        }
    }
}

#[test]
fn an_informed_attacker_gets_past_what_is_not_bound_to_its_place() {
    let place = Place::new();
    let cells = made(&place, "stops", &["--only", "over-8-usable"], 0);
    for (_, _, cell) in cells {
        let expected = match word(&cell, "form") {
            "naive" => "stopped",
            _ => "absorbed",
        };
        assert_eq!(word(&cell, "outcome"), expected, "{cell}");
    }
}

/// Those of values that do something wrong, in children of their own.
const IN_CHILDREN: [&str; 9] = [
    "aligned-mismatch",
    "bad-free-highbits",
    "canary-bytes",
    "random-search",
    "sampled-detectors",
    "sized-mismatch",
    "string-end",
    "uaf-read",
    "uaf-window",
];

#[test]
fn a_library_that_dies_of_everything_is_an_error_and_stops_nothing() {
    let place = Place::new();
    let own = ["double-free", "over-8-usable", "bad-free-stack"];
    let only = [&own[..], &IN_CHILDREN].concat().join(",");
    for (check, _, cell) in made(&place, "dies", &["--only", &only], 4) {
        assert_eq!(word(&cell, "outcome"), "error", "{check}: {cell}");
        assert_eq!(cell["tally"], serde_json::json!({}), "{check}");
        let why = cell["reasons"][0].as_str().unwrap();
        assert!(why.starts_with("without the misuse: "), "{check}: {why}");
    }
    let end = place.run(&[
        "check",
        "-a",
        "glibc",
        "--only",
        "double-free",
        "--output",
        "glibc",
    ]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(end.says("never a score"), "{}", end.stdout);
}

#[test]
fn exits_hangs_and_faults_are_told_apart_and_sited() {
    let place = Place::new();
    let only = ["--only", "double-free", "--timeout", "2s"];
    for (answer, outcome, why) in [
        ("exits", "stopped", "in the misuse exit code 1"),
        ("hangs", "hang", "not ended after 2 s, in the misuse"),
        ("stops", "stopped", "in the misuse SIGABRT, in libc"),
        (
            "crashes",
            "crashed",
            "in the misuse SIGSEGV at 0x10, in libcrashes.so",
        ),
    ] {
        for (_, _, cell) in made(&place, answer, &only, 0) {
            assert_eq!(word(&cell, "outcome"), outcome, "{answer}: {cell}");
            let found = cell["reasons"][0].as_str().unwrap();
            assert!(found.starts_with(why), "{answer}: {found}");
            let library = place.at(&format!("lib{answer}.so")).display().to_string();
            assert_eq!(
                word(&cell, "again"),
                format!("heapmark check -a '{answer}={library}' --only double-free --timeout 2s")
            );
        }
    }
    let diff = place.run(&["check", "diff", "of-stops", "of-crashes"]);
    let line = "crashes double-free 24 B naive: stopped -> crashed\n";
    assert!(diff.stdout.contains(line), "{}", diff.stdout);
}

#[test]
fn what_ends_in_values_has_some_and_they_are_those_of_the_library() {
    let place = Place::new();
    let checks = "uaf-read,recycled-contents,freed-raw-pointer,placement-in-class,reuse-order,exec-heap,string-end";
    let only = ["--only", checks];
    let kept = made(&place, "spills", &only, 0);
    let filled = made(&place, "absorbs", &only, 0);
    let notes = |cells: &[(String, String, Value)], check: &str| {
        let cell = cells.iter().find(|(name, _, _)| name == check).unwrap();
        cell.2["notes"].to_string()
    };
    for (check, _, cell) in kept.iter().chain(&filled) {
        if cell["outcome"] == "observed" {
            assert!(
                !cell["notes"].as_array().unwrap().is_empty(),
                "{check}: {cell}"
            );
        }
    }
    for check in ["uaf-read", "recycled-contents"] {
        assert!(notes(&kept, check).contains("old bytes=100 %"), "{check}");
        assert!(notes(&filled, check).contains("old bytes=0 %"), "{check}");
    }
    for check in ["placement-in-class", "reuse-order"] {
        let one = ["different=1 values of 200 processes", "until it returns=0"];
        let found = notes(&kept, check);
        assert!(one.iter().any(|it| found.contains(it)), "{check}: {found}");
    }
}

#[test]
#[ignore = "make test-all"]
fn a_library_that_reuses_no_block_gets_no_number_of_bits() {
    let place = Place::new();
    let last = place.answering("absorbs").display().to_string();
    let never = place.fake("never_again").display().to_string();
    for (library, expected) in [
        (
            never,
            "not reused within 65536 allocations in 200 of 200 processes",
        ),
        (last, "min-entropy bits=0.0"),
    ] {
        let own = format!("own={library}");
        let end = place.run(&["check", "-a", &own, "--only", "entropy-reuse"]);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert!(end.says(expected), "{}", end.stdout);
        let has_bits = end.stdout.contains("bits=");
        assert_eq!(has_bits, expected.contains("bits="), "{}", end.stdout);
        assert!(!end.stdout.contains("=-0"), "{}", end.stdout);
    }
}

#[test]
fn what_a_guard_ends_is_counted() {
    let place = Place::new();
    for (answer, share) in [("traps", "100.0 % [96.3"), ("absorbs", "0.0 % [0.0")] {
        let cells = made(&place, answer, &["--only", "sampled-detectors"], 0);
        let (_, _, cell) = &cells[1];
        for of in ["reads behind blocks", "reads of freed blocks"] {
            let note = format!("{of} that end it={share} to ");
            assert!(
                cell["notes"].to_string().contains(&note),
                "{answer}: {cell}"
            );
        }
    }
}

/// They search, or read tables of the process.
const LONG: [&str; 3] = ["random-search", "meta-distance", "writable-hooks"];
/// Printed by the command, and run.
const RUN: [&str; 3] = ["double-free", "bad-free-stack", "over-8-usable"];

#[test]
fn each_printed_program_compiles_and_some_show_the_same() {
    let place = Place::new();
    let folder = repository().join("checks/hardening");
    let mut checks: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    checks.sort();
    assert!(checks.len() > 40);
    let all = definition::all().unwrap();
    for check in &checks {
        let program = match RUN.contains(&check.as_str()) {
            true => place.run(&["check", "--program", check]).stdout,
            false => all.iter().find(|it| it.name == *check).unwrap().printed(),
        };
        let most = if LONG.contains(&check.as_str()) {
            130
        } else {
            55
        };
        assert!(program.lines().count() <= most, "{check}: {program}");
        let source = place.at(&format!("{check}.c"));
        fs::write(&source, program).unwrap();
        let made = Command::new("cc")
            .args(["-O1", "-w", "-fno-builtin", "-pthread"])
            .arg(&source)
            .arg("-o")
            .arg(place.at(check))
            .arg("-ldl")
            .output();
        let made = made.unwrap();
        let said = String::from_utf8_lossy(&made.stderr);
        assert!(made.status.success(), "{check}: {said}");
    }
    for (answer, code, signal) in [
        ("stops", None, Some(6)),
        ("crashes", None, Some(11)),
        ("corrupts", Some(1), None),
        ("absorbs", Some(0), None),
    ] {
        let library = place.answering(answer);
        for check in RUN {
            let ended = Command::new(place.at(check))
                .env("LD_PRELOAD", &library)
                .status();
            let ended = ended.unwrap();
            let found = (ended.code(), ended.signal());
            assert_eq!(found, (code, signal), "{answer} {check}");
        }
    }
}

/// A document about three of these libraries. Some of its claims are planted to be wrong.
const DOCUMENT: &str = r#"
short = "PL"
title = "a planted document"
source = "nowhere"
version = "1"
date = "today"

[allocators]
"careful" = { ours = ["stops"], brought = true }
"careless" = { ours = ["corrupts"], brought = true }
"absent" = { ours = ["spills"], brought = true }
"unknown" = {}
"tuned" = { configured = ["corrupts"], brought = true }

[[features]]
name = "double free"
says = "noticed at once"
claimed = { careful = "yes", careless = "yes", absent = "yes", unknown = "yes", tuned = "option" }
shown-by = [{ check = "double-free", sizes = [24, 262144], outcomes = ["stopped"] }]

[[features]]
name = "no double free"
says = "noticed at once"
claimed = { careful = "no", careless = "no" }
shown-by = [{ check = "double-free", sizes = [24, 262144], outcomes = ["stopped"] }]

[[features]]
name = "wiping"
says = "old bytes are gone"
claimed = { careful = "yes", careless = "option" }
shown-by = [{ check = "uaf-read", sizes = [24], value = "old bytes", at-most = 10 }]

[[features]]
name = "sealing"
says = "its state is read-only"
claimed = { careful = "yes" }
no-check = "no check looks at it"

[[features]]
name = "quarantine"
says = "a freed block waits"
claimed = { careful = "yes", careless = "interface" }
shown-by = [{ check = "uaf-window", value = "after 0, 1, 16, 256, 4096, 65536 pairs", is = ["stopped"] }]

[[features]]
name = "named option"
says = "noticed at once"
claimed = { tuned = "option", careful = "yes" }
with = { tuned = ["corrupts"] }
shown-by = [{ check = "double-free", sizes = [24, 262144], outcomes = ["stopped"] }]

[[features]]
name = "vague"
says = "noticed or not"
claimed = { careless = "yes", careful = "no" }
shown-by = [{ check = "double-free", sizes = [24, 262144], outcomes = ["stopped"] }]
also-with = "it may be noticed later"
also-without = "it may be luck"

[[features]]
name = "larger"
says = "noticed at once"
claimed = { careful = "yes" }
shown-by = [{ check = "double-free", sizes = [4000], outcomes = ["stopped"] }]

[[features]]
name = "of each size"
says = "noticed at once"
claimed = { careful = "yes", careless = "yes" }
shown-by = [{ check = "double-free", outcomes = ["stopped"] }]
"#;

/// A place with a document among the user's.
fn with_document(text: &str) -> Place {
    let place = Place::new();
    let folder = place.at("config/heapmark/claims/hardening");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("planted.toml"), text).unwrap();
    place
}

/// With a result of two libraries, which tests only read, in `out`.
static CLAIMED: LazyLock<Place> = LazyLock::new(|| {
    let place = with_document(DOCUMENT);
    let library = |answer: &str| format!("{answer}={}", place.answering(answer).display());
    let both = format!("{},{}", library("stops"), library("corrupts"));
    let only = [
        "--only",
        "double-free,uaf-read",
        "--output",
        "out",
        "--timeout",
        "20s",
    ];
    let end = place.run(&[&["check", "-a", &both], &only[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    place
});

#[test]
fn claims_about_hardening_are_confirmed_contradicted_or_not_testable() {
    let place = &*CLAIMED;
    let flags = ["claims", "out", "--document", "planted"];
    let judged = place.run(&[&flags[..], &["--to", "json"]].concat());
    assert_eq!(judged.code, Some(0), "{}", judged.stderr);
    let judged: Vec<Value> = serde_json::from_str(&judged.stdout).unwrap();
    let of = |id: &str, allocator: &str| {
        let mut all = judged.iter();
        let found = all.find(|it| word(it, "id") == id && word(it, "allocator") == allocator);
        found.unwrap_or_else(|| panic!("{id} {allocator}: {judged:#?}"))
    };
    for (id, allocator, verdict, reason) in [
        ("PL-1", "careful", "confirmed", "double-free 24 B: stopped"),
        (
            "PL-1",
            "careless",
            "contradicted",
            "double-free 24 B: corrupted",
        ),
        (
            "PL-1",
            "absent",
            "not-testable",
            "not in this result: spills",
        ),
        (
            "PL-1",
            "unknown",
            "not-testable",
            "no entry of ours is this allocator",
        ),
        (
            "PL-2",
            "careful",
            "contradicted",
            "double-free 24 B: stopped",
        ),
        (
            "PL-2",
            "careless",
            "confirmed",
            "double-free 24 B: corrupted",
        ),
        (
            "PL-3",
            "careful",
            "confirmed",
            "uaf-read 24 B: old bytes=0 %",
        ),
        ("PL-3", "careless", "not-testable", "this option"),
        ("PL-4", "careful", "not-testable", "no check looks at it"),
        (
            "PL-5",
            "careful",
            "not-testable",
            "uaf-window was not checked: --preset full has it",
        ),
        (
            "PL-5",
            "careless",
            "not-testable",
            "functions of the standards",
        ),
        ("PL-1", "tuned", "not-testable", "which option it is"),
        (
            "PL-6",
            "tuned",
            "contradicted",
            "double-free 24 B: corrupted",
        ),
        ("PL-6", "careful", "confirmed", "double-free 24 B: stopped"),
        (
            "PL-7",
            "careless",
            "not-testable",
            "it may be noticed later",
        ),
        ("PL-7", "careful", "not-testable", "it may be luck"),
        (
            "PL-8",
            "careful",
            "not-testable",
            "double-free was not checked with 4000 bytes: --preset full has it",
        ),
        (
            "PL-9",
            "careful",
            "not-testable",
            "double-free was not checked with 4000, 1048576 bytes: --preset full has it",
        ),
        (
            "PL-9",
            "careless",
            "contradicted",
            "double-free 24 B: corrupted",
        ),
    ] {
        let one = of(id, allocator);
        assert_eq!(word(one, "verdict"), verdict, "{one:#}");
        assert!(word(one, "reason").contains(reason), "{one:#}");
        let is_wrong = verdict == "contradicted";
        assert_eq!(one["again"].is_string(), is_wrong, "{one:#}");
    }
    assert_eq!(judged.len(), 19);
    // The command does show it.
    let command = shlex::split(word(of("PL-1", "careless"), "again")).unwrap();
    let words: Vec<&str> = command[1..].iter().map(String::as_str).collect();
    let again = place.run(&words);
    assert!(again.stdout.contains("corrupted"), "{}", again.stdout);

    let table = place.run(&["claims", "out"]).stdout;
    for text in ["contradicted", "PL-1", "a planted document", "no score"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    assert!(!table.contains("PL-4"), "{table}");
    let whole = place.run(&[&flags[..], &["--to", "md"]].concat()).stdout;
    let rows = whole.lines().filter(|line| line.starts_with("| PL-"));
    assert_eq!(rows.count(), 19, "{whole}");
    let page = fs::read_to_string(place.at("out/check.html")).unwrap();
    let section = page.split("<section id=\"claims\"").nth(1).unwrap();
    let section = section.split_once("</section>").unwrap().0;
    assert!(section.contains(">corrupts<"), "{section}");
    assert!(section.contains("again: heapmark check"), "{section}");
    assert!(!section.contains("PL-4"), "{section}");

    let several = place.run(&["claims", "out", "out"]);
    several.is_one_line(2);
    place
        .run(&["claims", "out", "--reproduction"])
        .is_one_line(2);
    place
        .run(&["claims", "out", "--document", "bt"])
        .is_one_line(2);
}

#[test]
fn a_faulty_document_about_hardening_is_refused_before_anything_is_checked() {
    let wrong = "check = \"duoble-free\"";
    let text = DOCUMENT.replacen("check = \"double-free\"", wrong, 1);
    let place = with_document(&text);
    copy(&CLAIMED.at("out"), &place.at("out"));
    for words in [
        &["claims", "out"][..],
        &["list", "claims"],
        &["report", "out"],
        &["check", "-a", "glibc", "--output", "new"],
    ] {
        let end = place.run(words);
        end.is_one_line(1);
        let says = "planted.toml: shown-by of double free: there is no check of hardening `duoble-free` (line 19); did you mean";
        assert!(end.stderr.contains(says), "{words:?}: {}", end.stderr);
    }
    assert!(!place.at("new").exists());
}

#[test]
fn what_is_listed_of_hardening_are_the_claims_that_a_result_judges() {
    let place = &*CLAIMED;
    let ids = |words: &[&str]| {
        let end = place.run(words);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        let all: Vec<Value> = serde_json::from_str(&end.stdout).unwrap();
        let all = all.into_iter().filter(|it| it["workloads"].is_null());
        let mut ids: Vec<String> = all.map(|it| word(&it, "id").to_owned()).collect();
        ids.dedup();
        ids
    };
    let listed = ids(&["list", "claims", "--format", "json"]);
    assert_eq!(listed, ids(&["claims", "out", "--to", "json"]));
    for id in ["PL-5", "IA-24", "HM-1"] {
        assert!(listed.contains(&id.to_owned()), "{id}: {listed:?}");
    }
}
