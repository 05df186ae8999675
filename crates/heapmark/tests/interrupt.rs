//! Signals, kills and second writers: what was stored stays stored, `--resume` brings the run to the same end, and no
//! guest outlives its heapmark.

mod support;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use support::{End, GUEST, Place, SMALL, plan, samples, word};

/// A heapmark that runs beside the test, with a guest program of its own that can be told from all others.
fn start(place: &Place, args: &[&str]) -> Child {
    let guest = place.at("own-guest");
    if !guest.exists() {
        fs::copy(GUEST, &guest).unwrap();
    }
    let mut command = place.heapmark(args);
    command.env("HEAPMARK_GUEST", guest).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn finish(child: Child) -> End {
    End::of(child.wait_with_output().unwrap())
}

fn send(child: &Child, signal: Signal) {
    kill_process(Pid::from_child(child), signal).unwrap();
}

/// Waits for something that must come.
fn wait_for(what: &str, mut come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !come() {
        assert!(began.elapsed() < Duration::from_secs(60), "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The part of `samples.jsonl` that consists of complete lines.
fn complete_lines(run: &Path) -> Vec<u8> {
    let mut bytes = fs::read(run.join("samples.jsonl")).unwrap_or_default();
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
    bytes
}

fn lines(run: &Path) -> usize {
    complete_lines(run).iter().filter(|byte| **byte == b'\n').count()
}

/// Processes that run this place's guest. The dead that nobody has reaped yet have no program any more.
fn guests(place: &Place) -> usize {
    let guest = place.at("own-guest").canonicalize().unwrap();
    let runs_it = |entry: fs::DirEntry| fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == guest);
    fs::read_dir("/proc").unwrap().flatten().map(runs_it).filter(|runs| *runs).count()
}

/// Exactly one record for each cell of the plan, and none of another; all blocks of every row in the tables. A line that a
/// kill has torn is no record.
fn is_whole(place: &Place, name: &str) {
    let (run, mut counts) = (place.at(name), BTreeMap::new());
    let plan = plan(&run);
    let text = String::from_utf8(complete_lines(&run)).unwrap();
    for record in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        *counts.entry(word(&record, "cell").to_string()).or_insert(0) += 1;
    }
    let mut planned: Vec<String> = plan.cells().into_iter().chain(plan.checks()).map(|cell| cell.id).collect();
    planned.extend(["control".into(), plan.calibration(0).id]);
    let expected: BTreeMap<String, i32> = planned.into_iter().map(|cell| (cell, 1)).collect();
    assert_eq!(counts, expected);
    tables_are_whole(place, name);
}

fn tables_are_whole(place: &Place, name: &str) {
    let plan = plan(&place.at(name));
    let rows = place.rows(name);
    assert_eq!(rows.len(), plan.allocators.len() * plan.cases.len());
    for row in rows {
        assert_eq!((row["outcome"].as_str(), &row["samples"]), ("ok", &plan.blocks.to_string()), "{row:?}");
    }
}

/// A run of many short processes.
fn many(blocks: &'static str) -> Vec<&'static str> {
    [&["run", "-o", "run", "-a", "glibc,null", "--blocks", blocks], &SMALL[..]].concat()
}

fn a_signal_stops_a_run_of_short_processes(signal: Signal) {
    let place = Place::new();
    let child = start(&place, &many("200"));
    let run = place.at("run");
    wait_for("the first records", || lines(&run) >= 6);
    send(&child, signal);
    let end = finish(child);
    assert_eq!(end.code, Some(130), "{}", end.stderr);
    assert!(end.stderr.contains("heapmark run --resume run goes on"), "{}", end.stderr);
    assert_eq!(guests(&place), 0);
    let before = complete_lines(&run);
    let stored = samples(&run).len();
    assert!(stored < 400, "it went on to its end: {stored} records");

    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    assert!(complete_lines(&run).starts_with(&before));
    is_whole(&place, "run");
}

#[test]
fn sigint_ends_a_run_that_resume_completes() {
    a_signal_stops_a_run_of_short_processes(Signal::INT);
}

#[test]
fn sigterm_ends_a_run_that_resume_completes() {
    a_signal_stops_a_run_of_short_processes(Signal::TERM);
}

/// The signal may come while heapmark stores, starts or reads rather than waits; processes too short to be waited for must
/// not let it pass.
#[test]
fn a_signal_counts_at_whatever_moment_it_comes() {
    let place = Place::new();
    let (seed, mut number) = (20_u64, 0);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    while number < 8 {
        let name = format!("run{number}");
        let mut args = many("300");
        args[2] = &name;
        let child = start(&place, &args);
        wait_for("a record", || lines(&place.at(&name)) >= 1);
        let pause = random.random_range(0..60_000);
        std::thread::sleep(Duration::from_micros(pause));
        send(&child, Signal::INT);
        let end = finish(child);
        assert_eq!(end.code, Some(130), "seed {seed}, run {number}, after {pause} us: {}", end.stderr);
        assert!(samples(&place.at(&name)).len() < 300, "seed {seed}, run {number}, after {pause} us");
        number += 1;
    }
}

/// A run whose guest waits for ever in its checked process.
fn hanging(place: &Place) -> Child {
    let word = format!("glibc,hanger={}", place.fake("hanger").display());
    let flags = ["run", "-o", "run", "-a", &word, "--blocks", "1", "--timeout", "300"];
    let child = start(place, &[&flags[..], &SMALL[..]].concat());
    // Control, calibration, the baseline's check: then comes the one that hangs.
    wait_for("the check before", || lines(&place.at("run")) == 3);
    wait_for("a guest", || guests(place) == 1);
    child
}

#[test]
fn a_signal_ends_a_guest_that_hangs() {
    let place = Place::new();
    let child = hanging(&place);
    send(&child, Signal::INT);
    assert_eq!(finish(child).code, Some(130));
    assert_eq!(guests(&place), 0);
    assert_eq!(samples(&place.at("run")).len(), 3, "an interrupted process is no result");
}

#[test]
fn a_killed_heapmark_takes_its_guest_along() {
    let place = Place::new();
    let mut child = hanging(&place);
    send(&child, Signal::KILL);
    child.wait().unwrap();
    wait_for("the guest's end", || guests(&place) == 0);
}

#[test]
fn twenty_kills_lose_and_double_nothing() {
    let place = Place::new();
    let seed = 9;
    println!("seed {seed}");
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let (mut runs, mut whole) = (Vec::new(), true);
    for kill in 0..20 {
        if whole {
            runs.push(format!("run{}", runs.len()));
        }
        let name = runs.last().unwrap();
        let run = place.at(name);
        let before = complete_lines(&run);
        // A kill before there was a head leaves nothing to go on with: it starts once more.
        let mut args = if run.join("run.json").exists() { vec!["run", "--resume", name] } else { many("60") };
        if args.len() > 3 {
            args[2] = name;
        }
        let mut child = start(&place, &args);
        let pause = Duration::from_millis(random.random_range(1..400));
        std::thread::sleep(pause);
        whole = child.try_wait().unwrap().is_some();
        let _ = child.kill();
        child.wait().unwrap();
        println!("kill {kill} of {name} after {pause:?}: {} lines before, {} after", lines_of(&before), lines(&run));
        assert!(complete_lines(&run).starts_with(&before), "a stored line changed");
        wait_for("the guest's end", || guests(&place) == 0);
    }
    for name in &runs {
        let run = place.at(name);
        if run.join("run.json").exists() {
            let before = complete_lines(&run);
            let end = place.run(&["run", "--resume", name]);
            assert_eq!(end.code, Some(0), "{}", end.stderr);
            assert!(complete_lines(&run).starts_with(&before), "a stored line changed");
            is_whole(&place, name);
        }
    }
    assert!(runs.iter().any(|name| lines(&place.at(name)) > 100), "no run was killed in its middle");
}

fn lines_of(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte == b'\n').count()
}

#[test]
fn a_torn_last_line_costs_its_own_cell_only() {
    let place = Place::new();
    assert_eq!(place.run(&many("4")).code, Some(0));
    let (run, file) = (place.at("run"), place.at("run/samples.jsonl"));
    let bytes = fs::read(&file).unwrap();
    let last = bytes[..bytes.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(&file, &bytes[..(last + bytes.len()) / 2]).unwrap();
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let text = fs::read(&file).unwrap();
    assert!(text.starts_with(&bytes[..last]));
    let records = text.split(|byte| *byte == b'\n').filter(|line| serde_json::from_slice::<Value>(line).is_ok());
    assert_eq!(records.count(), lines(&run) - 1, "all but the torn line");
    tables_are_whole(&place, "run");
}

#[test]
fn a_second_heapmark_on_the_same_run_is_refused() {
    let place = Place::new();
    let child = hanging(&place);
    let before = (fs::read(place.at("run/run.json")).unwrap(), complete_lines(&place.at("run")));
    let second = place.run(&["run", "--resume", "run"]);
    assert_eq!(second.code, Some(1), "{}", second.stderr);
    assert!(second.stderr.contains("being written to by another heapmark"), "{}", second.stderr);
    let third = place.run(&many("4"));
    assert_eq!(third.code, Some(2), "{}", third.stderr);
    assert_eq!((fs::read(place.at("run/run.json")).unwrap(), complete_lines(&place.at("run"))), before);
    send(&child, Signal::INT);
    finish(child);
}

#[test]
fn a_directory_that_holds_a_run_is_not_written_over() {
    let place = Place::new();
    assert_eq!(place.run(&many("1")).code, Some(0));
    let before = (fs::read(place.at("run/run.json")).unwrap(), complete_lines(&place.at("run")));
    let end = place.run(&many("1"));
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert!(end.stderr.contains("already holds a run") && end.stderr.contains("--resume run"), "{}", end.stderr);
    assert_eq!((fs::read(place.at("run/run.json")).unwrap(), complete_lines(&place.at("run"))), before);

    // Samples without a head belong to no plan that anybody knows.
    fs::remove_file(place.at("run/run.json")).unwrap();
    let end = place.run(&many("1"));
    assert_eq!(end.code, Some(2), "{}", end.stderr);
    assert_eq!(complete_lines(&place.at("run")), before.1);
}

#[test]
fn a_run_does_not_go_on_with_another_library() {
    let place = Place::new();
    let library = place.fake("honest");
    let word = format!("mine={}", library.display());
    assert_eq!(place.run_small("run", &["-a", &word, "--blocks", "2"]).code, Some(0));
    let before = complete_lines(&place.at("run"));
    let mut bytes = fs::read(&library).unwrap();
    bytes.push(0);
    fs::write(&library, bytes).unwrap();
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(1), "{}", end.stderr);
    assert!(end.stderr.contains("is not the file that this run began with: start a new run"), "{}", end.stderr);
    assert_eq!(complete_lines(&place.at("run")), before);
}
