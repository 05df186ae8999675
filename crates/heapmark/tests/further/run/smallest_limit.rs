//! `--limit`: the smallest limit under which work is still done, what its search saw, and what is left of it afterwards.

use crate::support::live::{finish, guests, lines, send, start, wait_for};
use crate::support::machine::Machine;
use crate::support::{End, Place, of_purpose, samples};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;

/// Blocks of several sizes, of which none is used twice: about 4 MB live, in a process of a few milliseconds.
const JOB: [&str; 10] = [
    "run",
    "-w",
    "same-thread-5000",
    "-t",
    "1",
    "--set",
    "same-thread-5000.volume=4000000",
    "--blocks",
    "1",
    "--check-again",
];

fn search(place: &Place, name: &str, flags: &[&str]) -> End {
    let end = place.run(&[&JOB[..], &["-o", name], flags].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    end
}

/// The tables of a run, as JSON.
fn rows(place: &Place, name: &str) -> Vec<Value> {
    let end = place.run(&["export", name, "--to", "json"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let document: Value = serde_json::from_str(&end.stdout).unwrap();
    let tables = document["analysis"]["limits"].as_array().unwrap();
    assert_eq!(tables.len(), 1);
    tables[0]["rows"].as_array().unwrap().clone()
}

fn row<'a>(rows: &'a [Value], allocator: &str) -> &'a Value {
    let own = rows.iter().find(|row| row["allocator"] == allocator);
    own.unwrap_or_else(|| panic!("no {allocator} in {rows:?}"))
}

fn value(row: &Value, metric: &str) -> f64 {
    let mut cells = row["cells"].as_array().unwrap().iter();
    let cell = cells.find(|cell| cell["metric"] == metric);
    cell.unwrap_or_else(|| panic!("no {metric} in {row}"))["spread"]["median"]
        .as_f64()
        .unwrap()
}

/// Limits that the search has tried, and how processes under them ended.
fn tried(row: &Value) -> Vec<(f64, Vec<&str>)> {
    let searched = |limit: &&Value| limit["percent"].is_null();
    let limits = row["limits"].as_array().unwrap().iter();
    let words = |limit: &'_ Value| limit["outcomes"].as_array().unwrap().clone();
    limits
        .filter(searched)
        .map(|limit| {
            let words = words(limit);
            let word = |word: &Value| match word.as_str().unwrap() {
                "ok" => "ok",
                "oom" => "oom",
                "crash" => "crash",
                other => panic!("{other}"),
            };
            (
                limit["bytes"].as_f64().unwrap(),
                words.iter().map(word).collect(),
            )
        })
        .collect()
}

#[test]
fn an_allocator_that_gives_back_what_it_kept_once_memory_is_refused_lives_with_less_and_twice_the_same()
 {
    let place = Place::new();
    let fakes = ["reclaimer", "keeper", "heedless"];
    let allocators = fakes.map(|name| format!("{name}={}", place.compile(name, &[]).display()));
    let allocators = allocators.join(",");
    let flags = ["--limit", "data", "-a", &allocators, "--baseline", "keeper"];
    let end = search(&place, "once", &flags);
    assert!(
        end.says("same-thread-5000, 1 thread: smallest limit on data"),
        "{}",
        end.stdout
    );
    let once = rows(&place, "once");
    let names: Vec<&Value> = once.iter().map(|row| &row["allocator"]).collect();
    assert_eq!(names[0], "reclaimer", "the least limit first");
    let smallest = |name: &str| value(row(&once, name), "smallest_limit_bytes");
    // What it keeps is as much again as what is live.
    assert!(
        smallest("reclaimer") * 1.4 < smallest("keeper"),
        "{}",
        end.stdout
    );
    assert_eq!(smallest("heedless"), smallest("keeper"));
    let headroom = value(row(&once, "reclaimer"), "headroom_ratio");
    let live = value(row(&once, "reclaimer"), "limited_live_bytes");
    assert_eq!(headroom, smallest("reclaimer") / live);
    assert!(headroom > 1.0);

    // Each limit below the smallest one killed a process, and how is said; at it, and above, three did their work.
    for (name, word) in [
        ("reclaimer", "oom"),
        ("keeper", "oom"),
        ("heedless", "crash"),
    ] {
        let all = tried(row(&once, name));
        for (bytes, outcomes) in &all {
            let word = match *bytes < smallest(name) {
                true => word,
                false => "ok",
            };
            assert_eq!(outcomes, &[word; 3], "{name} under {bytes}");
        }
        let below = all.iter().map(|(bytes, _)| *bytes);
        let below = below
            .filter(|bytes| *bytes < smallest(name))
            .fold(0.0, f64::max);
        assert!(smallest(name) / below <= 1.012, "{name}: {below}");
    }
    let slowdowns = |name: &str| {
        let cells = row(&once, name)["cells"].as_array().unwrap().iter();
        let own = cells.filter(|cell| cell["metric"] == "limit_slowdown");
        own.map(|cell| cell["label"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(slowdowns("keeper"), ["1.02", "1.1", "1.25", "1.5", "2"]);

    search(&place, "again", &flags);
    let again = rows(&place, "again");
    for name in fakes {
        let ratio = value(row(&again, name), "smallest_limit_bytes") / smallest(name);
        assert!((0.98..1.0204).contains(&ratio), "{name}: {ratio}");
    }
    // The stack of a thread that lives for a few milliseconds is in it each time.
    let records = ["once", "again"]
        .map(|run| samples(&place.at(run)))
        .concat();
    let harness = records
        .iter()
        .filter_map(|it| it["demand"]["harness_bytes"].as_u64());
    let harness: Vec<u64> = harness.collect();
    assert_eq!(harness, [harness[0]; 6]);
    assert!(harness[0] > 1 << 20, "{harness:?}");
    let by = ["--by", "smallest_limit_bytes", "--to", "json"];
    let verdicts = |runs: &[&str]| {
        let end = place.run(&[&["compare"], runs, &by[..]].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        let document: Value = serde_json::from_str(&end.stdout).unwrap();
        let rows = document["rows"].as_array().unwrap().clone();
        let word = |row: &Value| row["verdict"]["word"].as_str().map(str::to_owned);
        rows.iter()
            .map(|row| {
                (
                    row["allocator"].as_str().unwrap().to_owned(),
                    word(row).unwrap(),
                )
            })
            .collect::<Vec<_>>()
    };
    for (name, word) in verdicts(&["once", "again"]) {
        assert_eq!(word, "same", "{name}");
    }
    let beside = verdicts(&["once"]);
    assert!(
        beside.contains(&("reclaimer".into(), "faster".into())),
        "{beside:?}"
    );
    assert!(
        beside.contains(&("heedless".into(), "same".into())),
        "{beside:?}"
    );

    let page = fs::read_to_string(place.at("once/report.html")).unwrap();
    assert!(page.contains("smallest limit on data") && page.contains("reclaimer"));
    let csv = place.run(&["export", "once", "--to", "csv"]);
    assert!(
        csv.stdout.contains("smallest_limit_bytes"),
        "{}{}",
        csv.stdout,
        csv.stderr
    );
}

#[test]
fn what_some_processes_need_more_is_said_and_does_not_decide() {
    let place = Place::new();
    let count = format!("-DFILE=\"{}\"", place.at("processes").display());
    let moody = place.compile("moody", &[count.into()]);
    let keeper = place.compile("keeper", &[]);
    let allocators = format!("keeper={},moody={}", keeper.display(), moody.display());
    let flags = ["--limit", "data", "-a", &allocators, "--baseline", "keeper"];
    let end = search(&place, "run", &flags);
    assert!(end.says("failed at"), "{}", end.stdout);
    let rows = rows(&place, "run");
    let [moody, keeper] = ["moody", "keeper"].map(|name| row(&rows, name));
    let smallest = value(moody, "smallest_limit_bytes");
    // Each third process takes 2 MB more: under each limit that does, some fail.
    let ratio = smallest / value(keeper, "smallest_limit_bytes");
    assert!((0.98..1.0204).contains(&ratio), "{ratio}: {}", end.stdout);
    let failed_bytes = value(moody, "failed_up_to_bytes");
    assert!((smallest..smallest + 2.1e6).contains(&failed_bytes));
    let all = tried(moody);
    let (_, outcomes) = all.iter().find(|(bytes, _)| *bytes == smallest).unwrap();
    assert!(outcomes.contains(&"oom"), "{outcomes:?}");
    assert_eq!(outcomes.iter().filter(|word| **word == "ok").count(), 5);
    let said = format!("ok 5 of {} times at", outcomes.len());
    // A narrow table breaks the lines of its cells.
    let words: Vec<&str> = end.stdout.split_whitespace().collect();
    let text = words.join(" ");
    assert!(text.contains(&said), "{said}: {}", end.stdout);
    // A range stands in one row.
    assert_eq!(text.matches(" MiB to").count(), 1, "{}", end.stdout);
    let cells = keeper["cells"].as_array().unwrap();
    let failed = |cell: &Value| cell["metric"] == "failed_up_to_bytes";
    assert!(!cells.iter().any(failed), "{keeper}");
}

#[test]
fn a_search_that_was_interrupted_leaves_nothing_behind_and_ends_as_it_would_have() {
    let place = Place::new();
    let keeper = format!("keeper={}", place.compile("keeper", &[]).display());
    let flags = ["--limit", "as", "-a", &keeper, "--baseline", "keeper"];
    let child = start(&place, &[&JOB[..], &["-o", "run"], &flags].concat());
    // The control, the calibration, the checks, and some of the search.
    wait_for("the search", || {
        lines(&place.at("run")) > 3 && !of_purpose(&samples(&place.at("run")), "search").is_empty()
    });
    send(&child, Signal::INT);
    let end = finish(child);
    assert_eq!((end.code, guests(&place)), (Some(130), 0), "{}", end.stderr);
    let stored = samples(&place.at("run")).len();
    let end = place.run(&["run", "--resume", "run"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let all = samples(&place.at("run"));
    assert!(all.len() > stored, "it had ended before");
    let mut cells: Vec<&Value> = all.iter().map(|record| &record["cell"]).collect();
    let count = cells.len();
    cells.sort_by_key(|cell| cell.as_str());
    cells.dedup();
    assert_eq!(cells.len(), count, "no process of the search ran twice");
    search(&place, "whole", &flags);
    let smallest = |run| value(row(&rows(&place, run), "keeper"), "smallest_limit_bytes");
    let ratio = smallest("run") / smallest("whole");
    assert!((0.98..1.0204).contains(&ratio), "{ratio}");

    search(
        &place,
        "data",
        &["--limit", "data", "-a", &keeper, "--baseline", "keeper"],
    );
    let end = place.run(&["compare", "whole", "data", "--by", "smallest_limit_bytes"]);
    assert_eq!(end.code, Some(2), "{}", end.stdout);
    assert!(end.stderr.contains("(--limit)"), "{}", end.stderr);
}

#[test]
fn a_limit_holds_for_all_that_a_tried_command_starts_and_for_nothing_else() {
    let place = Place::new();
    let seen = place.at("seen");
    let command = format!("(ulimit -v >> {})", seen.display());
    let flags = [
        "try", "-o", "run", "-a", "glibc", "--blocks", "1", "--limit", "as",
    ];
    let end = place.run(&[&flags[..], &["--", "sh", "-c", &command]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let seen: Vec<String> = fs::read_to_string(seen)
        .unwrap()
        .lines()
        .map(str::to_owned)
        .collect();
    let records = samples(&place.at("run"));
    let set_kib: Vec<String> = records
        .iter()
        .filter(|record| record["outcome"]["kind"] == "ok")
        .filter_map(|record| {
            let limit = &record["limit"];
            let bytes = limit["bytes"].as_u64()? + limit["harness_bytes"].as_u64().unwrap();
            Some((bytes / 1024).to_string())
        })
        .collect();
    assert!(set_kib.len() > 6, "{set_kib:?}");
    for kib in &set_kib {
        assert!(seen.contains(kib), "{kib} of {seen:?}");
    }
    assert!(seen.iter().any(|line| line == "unlimited"), "{seen:?}");
}

#[test]
fn a_control_group_counts_what_is_resident_kills_by_itself_and_takes_what_lies_free_lazily() {
    let place = Place::new();
    let fakes = ["reclaimer", "keeper", "heedless", "lazy_returner"];
    let allocators = fakes.map(|name| format!("{name}={}", place.compile(name, &[]).display()));
    let allocators = allocators.join(",");
    let flags = [
        "--limit",
        "cgroup",
        "-a",
        &allocators,
        "--baseline",
        "keeper",
    ];
    let end = place.run(&[&JOB[..], &["-o", "run"], &flags].concat());
    let refused = |line: &&str| end.code == Some(2) && line.contains("--limit cgroup: ");
    if let Some(why) = end.stderr.lines().find(refused) {
        eprintln!("skipped: {why}");
        return;
    }
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let rows = rows(&place, "run");
    let smallest = |name: &str| value(row(&rows, name), "smallest_limit_bytes");
    // Nothing is refused, so none of them can react. The kernel charges a group in steps.
    for name in ["reclaimer", "heedless"] {
        let ratio = smallest(name) / smallest("keeper");
        assert!((0.9..1.1).contains(&ratio), "{name}: {}", end.stdout);
    }
    assert!(
        smallest("lazy_returner") * 1.3 < smallest("keeper"),
        "{}",
        end.stdout
    );
    for name in fakes {
        for (bytes, outcomes) in tried(row(&rows, name)) {
            let is_enough = bytes >= 1.1 * smallest(name);
            let words: &[&str] = if is_enough { &["ok"] } else { &["ok", "oom"] };
            assert!(
                outcomes.iter().all(|word| words.contains(word)),
                "{name} under {bytes}: {outcomes:?}"
            );
        }
    }
    let reclaimable = |name: &str| value(row(&rows, name), "reclaimable_bytes");
    assert!(reclaimable("lazy_returner") > 1e6, "{}", end.stdout);
    assert_eq!(reclaimable("keeper"), 0.0);
}

#[test]
fn control_groups_are_refused_in_one_line_if_none_may_be_made() {
    let place = Place::new();
    // No group there hands the memory controller on.
    let machine = Machine::clean(place.at("machine"));
    machine.plant("sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
    let args = [&JOB[..], &["-o", "run", "--limit", "cgroup", "-a", "glibc"]].concat();
    let output = place
        .heapmark(&args)
        .env("HEAPMARK_MACHINE_ROOT", place.at("machine"))
        .output();
    let end = End::of(output.unwrap());
    assert_eq!(end.code, Some(2), "{}{}", end.stdout, end.stderr);
    let lines: Vec<&str> = end
        .stderr
        .lines()
        .filter(|line| line.contains("--limit"))
        .collect();
    assert!(
        lines.len() == 1
            && lines[0].contains("cgroup.subtree_control")
            && lines[0].contains("--limit data"),
        "{}",
        end.stderr
    );
    assert!(
        !place.at("run").exists(),
        "refused before anything is stored"
    );
}
