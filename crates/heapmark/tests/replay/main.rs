//! `heapmark replay` and `run -w trace:FILE` through the built binary: a trace is chosen, measured and taken up again as any other
//! workload is.

mod input;
mod modes;
mod operators;
mod shared;
#[path = "../support/mod.rs"]
mod support;
mod wrong;

use heapmark::trace::{Event, Head, Token, Writer};
use serde_json::Value;
use std::fs;
use std::path::Path;
use support::{End, Place, head, of_purpose, samples, word};

type Told = (u32, Event);

fn malloc(size: u64) -> Event {
    Event::Malloc { size, operator: false }
}

fn free(thread: u32, index: u64) -> Event {
    Event::Free { token: Token { thread, index } }
}

fn write(path: &Path, events: &[Told]) {
    let mut writer = Writer::new(fs::File::create(path).unwrap(), &Head::default()).unwrap();
    events.iter().for_each(|(thread, event)| writer.write(*thread, event).unwrap());
    writer.finish().unwrap();
}

/// One thread allocates, another frees: some 4 MiB are live at a time.
fn pipeline() -> Vec<Told> {
    let mut events = vec![(0, Event::ThreadStart { child: 1 })];
    for index in 0..12_000 {
        events.push((0, malloc(16 + index * 37 % 3000)));
        if let Some(old) = index.checked_sub(3000) {
            events.push((1, free(0, old)));
        }
    }
    events.push((1, Event::ThreadExit));
    events
}

const SHORT: [&str; 6] = ["--target-ms", "2", "--no-shadow", "--no-repeat", "-o", "run"];

fn replay(place: &Place, flags: &[&str]) -> End {
    place.run(&[&["replay"], flags, &SHORT].concat())
}

/// Scores of equal traces are one file: whoever damages it must be alone.
fn with_own_cache(place: &Place, args: &[&str]) -> End {
    End::of(place.heapmark(args).env("HEAPMARK_CACHE", place.at("cache")).output().unwrap())
}

fn numbers(record: &Value) -> (u64, u64) {
    let number = |value: &Value| value.as_u64().unwrap();
    let calls = &record["measurement"]["calls"];
    (number(&calls["malloc"]), number(&calls["free"]))
}

#[test]
fn a_trace_is_a_workload_like_any_other_and_the_floor_stands_beside_it() {
    let place = Place::new();
    write(&place.at("pipe line.trace"), &pipeline());
    let allocators = place.ready(&["glibc", "jemalloc"]);
    let end = replay(&place, &["pipe line.trace", "-a", &allocators.join(","), "--blocks", "2"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(end.stdout.contains("trace:pipe_line") && end.stdout.contains("floor"), "{}", end.stdout);
    let records = samples(&place.at("run"));
    let timed = of_purpose(&records, "sample");
    assert_eq!(timed.len(), 2 * (allocators.len() + 1), "two blocks, the null allocator among them");
    for record in timed {
        let rounds = record["measurement"]["iterations"].as_array().unwrap().len() as u64;
        assert_eq!(numbers(record), (12_000 * rounds, 12_000 * rounds), "{}", word(record, "allocator"));
    }
    assert_eq!(of_purpose(&records, "check").len(), allocators.len(), "every block was held against all others");
    let rows = place.rows("run");
    assert!(rows.iter().any(|row| row["workload"] == "trace:pipe_line" && row["threads"] == "2"), "{rows:?}");
}

#[test]
fn what_a_replay_asks_of_the_kernel_is_counted() {
    let place = Place::new();
    // Above what glibc keeps in its heap: each block is a mapping of its own.
    let events: Vec<Told> = (0..50).flat_map(|index| [(0, malloc(64 << 20)), (0, free(0, index))]).collect();
    write(&place.at("a.trace"), &events);
    let flags = ["a.trace", "-a", "glibc", "--counter", "kernel", "--blocks", "1", "--no-floor", "--touch", "none"];
    let end = replay(&place, &flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    assert!(end.stdout.contains("munmap") && end.stdout.contains("madvise"), "{}", end.stdout);
    let records = samples(&place.at("run"));
    let figures = &of_purpose(&records, "count")[0]["measurement"]["figures"];
    for call in ["mmap_per_operation", "munmap_per_operation"] {
        let each = figures[call].as_f64().unwrap();
        assert!((0.5..0.6).contains(&each), "one for each block, and some for a stack: {call} {each}");
    }
}

#[test]
fn more_threads_than_cpus_are_said_and_one_alone_is_not() {
    let place = Place::new();
    let threads = std::thread::available_parallelism().unwrap().get() as u32;
    let mut events: Vec<Told> = (1..=threads).map(|child| (0, Event::ThreadStart { child })).collect();
    for thread in 0..=threads {
        events.extend([(thread, malloc(100)), (thread, free(thread, 0))]);
    }
    events.extend((1..=threads).map(|thread| (thread, Event::ThreadExit)));
    write(&place.at("crowd.trace"), &events);
    write(&place.at("alone.trace"), &[(0, malloc(100)), (0, free(0, 0))]);
    let end = replay(&place, &["crowd.trace", "alone.trace", "-a", "glibc", "--blocks", "1"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let heading = |name: &str| end.stdout.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
    assert!(heading("trace:crowd").ends_with(&format!("{} threads (oversubscribed)", threads + 1)), "{}", end.stdout);
    assert!(heading("trace:alone").ends_with("1 thread"), "{}", end.stdout);
    assert!(end.stdout.contains("the scheduler is measured too"), "{}", end.stdout);
}

#[test]
fn two_traces_of_one_name_are_told_apart_and_one_given_twice_is_one() {
    let place = Place::new();
    fs::create_dir(place.at("old")).unwrap();
    write(&place.at("a.trace"), &pipeline());
    write(&place.at("old/a.trace"), &[(0, malloc(1))]);
    let plan = |traces: &[&str]| {
        let end = place.run(&[&["replay"], traces, &["-a", "glibc", "--dry-run", "--blocks", "1"]].concat());
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        let cells =
            end.stdout.lines().filter(|line| line.ends_with(|c: char| c.is_ascii_digit()) && line.contains("/b00/"));
        let names: std::collections::BTreeSet<String> =
            cells.map(|line| line.split('@').next().unwrap().to_owned()).collect();
        names
    };
    assert_eq!(plan(&["a.trace", "./a.trace"]).into_iter().collect::<Vec<_>>(), ["trace:a"]);
    let both = plan(&["a.trace", "old/a.trace"]);
    assert!(both.len() == 2 && both.iter().all(|name| name.starts_with("trace:a-")), "{both:?}");
}

#[test]
fn a_run_of_a_trace_is_taken_up_again_with_that_trace_only() {
    let place = Place::new();
    write(&place.at("a.trace"), &pipeline());
    let end = with_own_cache(&place, &[&["replay", "a.trace", "-a", "glibc", "--blocks", "2"], &SHORT[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    // As if it had been interrupted: the last line is gone, and so is the compiled score.
    let file = place.at("run/samples.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let whole = text.lines().count();
    let cut: Vec<&str> = text.lines().take(whole - 1).collect();
    fs::write(&file, cut.join("\n") + "\n").unwrap();
    let score = head(&place.at("run"))["plan"]["cases"][0]["parameters"]["score"].as_str().unwrap().to_owned();
    fs::write(&score, "damaged").unwrap();
    let again = with_own_cache(&place, &["run", "--resume", "run"]);
    assert_eq!(again.code, Some(0), "{}{}", again.stdout, again.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), whole);
    write(&place.at("a.trace"), &[(0, malloc(1))]);
    let other = with_own_cache(&place, &["run", "--resume", "run"]);
    assert_eq!(other.code, Some(1));
    assert!(other.stderr.contains("is not the trace that this run began with"), "{}", other.stderr);
    fs::remove_file(place.at("a.trace")).unwrap();
    let gone = with_own_cache(&place, &["run", "--resume", "run"]);
    assert!(gone.stderr.contains("this run replays a trace") && gone.stderr.lines().count() == 1, "{}", gone.stderr);
}
