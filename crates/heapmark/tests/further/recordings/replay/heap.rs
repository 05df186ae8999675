//! A replay's heap is that of its program: what the program writes is resident, what its main thread did is played by the main
//! thread, and what it told glibc is told again.

use super::{Place, samples};
use crate::support::home::record;
use crate::support::tried::{note, run};
use crate::support::{of_purpose, words};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A place with the program `heap.c`.
fn place() -> (Place, PathBuf) {
    let place = Place::new();
    place.ready(&["jemalloc", "mimalloc3"]);
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/further/recordings/replay/heap.c");
    let program = place.at("heap");
    let built = Command::new("cc")
        .args(["-O1", "-fno-builtin", "-pthread", "-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .output()
        .unwrap();
    assert!(built.status.success(), "{built:?}");
    (place, program)
}

/// Records the program with these words as `NAME.trace`, and replays it under glibc and others, with these flags.
fn replayed(place: &Place, program: &Path, words: &[&str], flags: &[&str]) -> String {
    let name = words.join("-");
    let (trace, run) = (format!("{name}.trace"), format!("run-{name}"));
    let program = program.to_str().unwrap();
    let end = place.run(&[&["record", "-o", &trace, program], words].concat());
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let rest = ["--blocks", "1", "--no-aa-copy", "--no-repeat", "-o", &run];
    let end = place.run(
        &[
            &["replay", &trace, "-a", "glibc,jemalloc,mimalloc3"],
            flags,
            &rest,
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    run
}

/// A metric of a replay that sampled memory, of each allocator.
fn memory(place: &Place, run: &str, metric: &str) -> [f64; 3] {
    let end = place.run(&["export", run, "--to", "json"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let document: Value = serde_json::from_str(&end.stdout).unwrap();
    let rows = document["analysis"]["footprints"][0]["rows"]
        .as_array()
        .unwrap();
    let is = |value: &Value, key: &str, word: &str| value[key] == word;
    ["glibc", "jemalloc", "mimalloc3"].map(|allocator| {
        let row = rows
            .iter()
            .find(|row| is(row, "allocator", allocator))
            .unwrap();
        let mut cells = row["cells"].as_array().unwrap().iter();
        let cell = cells.find(|cell| is(cell, "metric", metric));
        let cell = cell.unwrap_or_else(|| panic!("no {metric} of {allocator} in {row}"));
        cell["spread"]["median"].as_f64().unwrap()
    })
}

/// Page faults of the first round under glibc and jemalloc.
fn faults(place: &Place, run: &str) -> [f64; 2] {
    let records = samples(&place.at(run));
    let timed = of_purpose(&records, "sample");
    ["glibc", "jemalloc"].map(|allocator| {
        let mut own = timed.iter();
        let is_first = |it: &Value| it["allocator"] == allocator;
        let own = own.find(|it| is_first(it)).unwrap();
        own["measurement"]["iterations"][0]["minor_faults"]
            .as_f64()
            .unwrap()
    })
}

#[test]
fn written_blocks_of_every_size_are_resident_however_they_were_asked_for() {
    let (place, program) = place();
    for words in [["written", "40"], ["written", "16"], ["zeroed", "24000"]] {
        let run = replayed(&place, &program, &words, &["--retained"]);
        let [glibc, jemalloc, mimalloc3] = memory(&place, &run, "overhead_at_peak_demand");
        assert!((0.97..1.03).contains(&glibc), "{words:?}: {glibc}");
        assert!((1.0..1.35).contains(&jemalloc), "{words:?}: {jemalloc}");
        assert!((1.0..1.25).contains(&mimalloc3), "{words:?}: {mimalloc3}");
    }
}

#[test]
fn the_main_threads_heap_and_mallopt_decide_what_glibc_gives_back() {
    let (place, program) = place();
    let first = ["--set", "trace:*.rounds=first"];
    let of = |words: &[&str], flags: &[&str]| {
        let run = replayed(&place, &program, words, &[&first[..], flags].concat());
        faults(&place, &run)
    };
    // glibc gives the top of the main heap back each time, and gets it again.
    let [glibc, jemalloc] = of(&["pairs"], &[]);
    assert!(glibc > 8000.0 && jemalloc < 1000.0, "{glibc}, {jemalloc}");
    let [glibc, jemalloc] = of(&["kept"], &[]);
    assert!(glibc < 1000.0 && jemalloc < 1000.0, "{glibc}, {jemalloc}");
    // The same calls of another thread, and of this one on a worker, lie in another heap.
    let [glibc, _] = of(&["worker"], &[]);
    assert!(glibc < 4000.0, "{glibc}");
    let [glibc, _] = of(&["pairs", "beside"], &["--set", "trace:*.thread=worker"]);
    assert!(glibc < 4000.0, "{glibc}");
}

#[test]
fn what_is_held_at_the_end_is_told_beside_what_is_live_then_and_malloc_trim_shows() {
    let (place, program) = place();
    let held = |words: &[&str]| {
        let run = replayed(&place, &program, words, &["--retained"]);
        let [live, ..] = memory(&place, &run, "end_live_bytes");
        assert!((60_000.0..200_000.0).contains(&live), "{live}");
        let [end, ..] = memory(&place, &run, "end_heap_bytes");
        (end, memory(&place, &run, "rest_heap_bytes"), run)
    };
    let (end, [at_rest, ..], _) = held(&["load"]);
    assert!(end > 20e6 && at_rest > 20e6, "{end}, {at_rest}");
    let (end, [glibc, jemalloc, _], run) = held(&["trimmed"]);
    assert!(
        end < 8e6 && glibc < 8e6 && jemalloc > 20e6,
        "{end}, {glibc}, {jemalloc}"
    );
    let told = words(&place.run(&["show", &run]).stdout);
    assert!(
        told.contains("Calls of malloc_trim, which only rows of glibc make: 1"),
        "{told}"
    );
    let told = place.run(&["trace", "stats", "trimmed.trace"]).stdout;
    assert!(told.contains("malloc_trim"), "{told}");
}

/// The live blocks of malloc at the end of a tried command, which glibc has served in the check.
fn live(records: &[Value]) -> Option<f64> {
    let check = record(records, "check", "glibc");
    check["measurement"]["figures"]["malloc_live_at_end_bytes"].as_f64()
}

#[test]
fn a_tried_command_is_told_what_is_resident_when_it_ends() {
    let (place, program) = place();
    let held = |what: &str| {
        let flags = ["try", "-a", "glibc", "--blocks", "1", "-o", what, "--"];
        let end = place.run(&[&flags[..], &[program.to_str().unwrap(), what]].concat());
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        assert!(end.says("RSS at end"), "{}", end.stdout);
        let records = samples(&place.at(what));
        let figures = &of_purpose(&records, "sample")[0]["measurement"]["figures"];
        let end_rss_bytes = figures["end_rss_bytes"].as_f64().unwrap();
        (end_rss_bytes, live(&records).unwrap(), end.stdout)
    };
    for (what, least, most) in [("load", 20e6, 50e6), ("trimmed", 1e6, 12e6)] {
        let (resident, live, said) = held(what);
        assert!((least..most).contains(&resident), "{what}: {resident}");
        assert!((60_000.0..200_000.0).contains(&live), "{what}: {live}");
        let words = format!(
            "live at the end: {:.1} KiB in blocks of malloc",
            live / 1024.0
        );
        assert!(said.contains(&words), "no {words} in {said}");
    }
}

#[test]
fn what_is_live_at_an_end_without_exit_is_unknown_and_of_several_processes_one_is_named() {
    let (place, program) = place();
    let tried = |command: &str| {
        let (end, records) = run(&place, &["-a", "glibc", "--", "sh", "-c", command]);
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        let told = words(&end.stdout);
        let unknown = note(&records, "glibc", "end_unknown").to_owned();
        (live(&records), unknown, told)
    };
    let (live, unknown, told) = tried("exec ./heap leaves");
    assert_eq!(live, None);
    assert_eq!(unknown, "unknown, since none of its processes ends by exit");
    assert!(
        told.contains(&format!("live at the end: {unknown}")),
        "{told}"
    );
    let named = program.canonicalize().unwrap();
    let (live, unknown, told) = tried("./heap leaves; ./heap trimmed; true");
    assert!(live.is_some_and(|live| live < 200_000.0), "{live:?}");
    let name = named.display();
    let wanted = format!("unknown in {name}, which has had more memory, and ends without exit");
    assert_eq!(unknown, wanted);
    assert!(
        told.contains("in ~/heap, which has the most RSS at end"),
        "{told}"
    );
}
