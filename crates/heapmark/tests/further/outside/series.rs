//! Memory over time: curves of real processes that must have a certain shape, and the files of a run.

use crate::support::{CATALOG, HUNG_AFTER};
use heapmark::build::{self, State};
use heapmark::execute::{self, Guest, Job, Outcome, Subject, Watch};
use heapmark::observe::Watcher;
use heapmark::observe::series::SeriesSampler;
use heapmark::plan::{Cell, Override, cases};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;

/// A table with its columns by name.
struct Table {
    head: Vec<String>,
    lines: Vec<Vec<String>>,
}

impl Table {
    fn read(text: &str) -> Table {
        let mut lines = text
            .lines()
            .map(|line| line.split(',').map(String::from).collect::<Vec<_>>());
        Table {
            head: lines.next().unwrap(),
            lines: lines.collect(),
        }
    }

    fn texts(&self, column: &str) -> Vec<&str> {
        let place = self.head.iter().position(|head| head == column).unwrap();
        self.lines.iter().map(|line| line[place].as_str()).collect()
    }

    fn numbers(&self, column: &str) -> Vec<u64> {
        // Before the kernel publishes there is nothing requested.
        self.texts(column)
            .iter()
            .map(|text| {
                if text.is_empty() {
                    0
                } else {
                    text.parse().unwrap()
                }
            })
            .collect()
    }
}

fn subject(name: &str) -> Subject {
    let catalog = &*CATALOG;
    let allocator = catalog.allocator(name).unwrap().clone();
    build::build(
        &[&allocator],
        &catalog.allocators,
        2,
        &indicatif::MultiProgress::new(),
    );
    let State::Ready(library) = build::state(&allocator, &catalog.allocators) else {
        panic!("{name} is not ready")
    };
    Subject {
        allocator,
        library,
        variant: None,
        refused: None,
    }
}

/// The series of one process at quick size, and the sum of the sizes that it requests.
fn series(subject: &Subject, workload: &str, set: &[&str]) -> (Table, u64) {
    let guest = Guest::find().unwrap();
    let catalog = &*CATALOG;
    let set: Vec<Override> = set
        .iter()
        .map(|text| format!("{workload}.{text}").parse().unwrap())
        .collect();
    let case = cases(
        &catalog.workloads(workload).unwrap(),
        "quick",
        &[1],
        2,
        &set,
    )
    .unwrap()
    .remove(0);
    let allocator = subject.allocator.name.clone();
    let cell = Cell {
        allocator,
        seed: 7,
        ..Cell::default()
    };
    let mut recorder = SeriesSampler::of(&case, guest.path()).unwrap().unwrap();
    let mut job = Job::new(&case, &cell, 0, 1, false).unwrap();
    job.series = Some(recorder.word());
    let looks = recorder.looks();
    let mut look = |pid, page: &_| recorder.look(pid, page);
    let watch: Option<Watch> = if looks { Some(&mut look) } else { None };
    let (limit, stop) = (HUNG_AFTER, AtomicBool::new(false));
    let attempt = execute::run(&guest, subject, &job, limit, &stop, watch).unwrap();
    assert_eq!(attempt.outcome, Outcome::Ok, "{}", attempt.report);
    let requested = attempt.measurement.unwrap().figures["requested_sum_bytes"] as u64;
    (
        Table::read(&Box::new(recorder).csv().unwrap().unwrap()),
        requested,
    )
}

fn check_bounds(table: &Table, requested: u64, about: &str) {
    let (live, total) = (
        table.numbers("requested_live_bytes"),
        table.numbers("total_dynamic_bytes"),
    );
    assert!(
        live.iter().zip(&total).all(|(live, total)| live <= total),
        "{about}: {live:?} {total:?}"
    );
    assert!(
        live.iter().all(|live| *live <= requested),
        "{about}: {live:?}"
    );
    assert_eq!(live.last(), Some(&0), "{about}: {live:?}");
    let times = table.numbers("time_ns");
    assert!(
        times.is_sorted() && times[0] < times[times.len() - 1],
        "{about}: {times:?}"
    );
    let parts = [
        "heap", "mmap", "mmap_so", "stack", "text", "other", "harness",
    ];
    for line in 0..table.lines.len() {
        let sum: u64 = parts
            .iter()
            .map(|part| table.numbers(&format!("{part}_bytes"))[line])
            .sum();
        assert_eq!(sum, table.numbers("accessible_bytes")[line], "{about}");
    }
}

#[test]
fn taken_at_operations_the_requested_curve_rises_to_all_objects_and_falls_to_nothing() {
    for name in ["glibc", "jemalloc"] {
        let (table, requested) = series(
            &subject(name),
            "memory",
            &["objects=10000", "round=10000", "sample=per-op", "every=500"],
        );
        check_bounds(&table, requested, name);
        let live = table.numbers("requested_live_bytes");
        // Before the first operation, 20 times while 10,000 objects are allocated, 20 times while they are freed, at the end.
        assert_eq!(live.len(), 1 + 20 + 20 + 1, "{name}");
        assert_eq!((live[0], live[20], live[40]), (0, requested, 0), "{name}");
        assert!(live[..=20].is_sorted_by(|a, b| a < b), "{name}: {live:?}");
        assert!(live[20..=40].is_sorted_by(|a, b| a > b), "{name}: {live:?}");
        // What the objects need is the allocator's, not the harness's.
        let total = table.numbers("total_dynamic_bytes");
        assert!(total[20] - total[0] >= requested / 2, "{name}: {total:?}");
    }
}

#[test]
fn polled_from_outside_the_total_is_never_below_what_was_requested() {
    for name in ["glibc", "jemalloc"] {
        // Enough objects that some looks fall into the run.
        for (workload, set) in [
            ("memory", ["objects=200000", "round=200000"]),
            ("memory-4x4", ["objects=50000", "round=500"]),
        ] {
            let about = format!("{workload} {name}");
            // On a busy machine no look may fall into a run.
            let fell = |table: &Table| {
                let phases = table.texts("phase");
                let lives = table
                    .numbers("requested_live_bytes")
                    .iter()
                    .any(|live| *live > 0);
                phases.contains(&"setup") && phases.contains(&"run") && lives
            };
            let mut tables = (0..50).map(|_| series(&subject(name), workload, &set));
            let (table, requested) = tables
                .find(|(table, _)| fell(table))
                .expect("a look that falls into the run");
            check_bounds(&table, requested, &about);
        }
    }
}

#[test]
fn stacks_and_tables_of_the_harness_are_not_the_allocators() {
    let set = ["objects=1000", "round=1000", "sample=per-op"];
    let (table, _) = series(&subject("glibc"), "memory-4x4", &set);
    let stacks = table.numbers("stack_bytes");
    let at_most = stacks.iter().max().unwrap();
    // 20 stacks; what the limit of this system makes of each is at least 64 KiB.
    assert!(*at_most >= stacks[0] + 20 * (64 << 10), "{stacks:?}");
    assert_eq!(stacks.first(), stacks.last());
    let mapped = table.numbers("mmap_bytes");
    // 16,000 objects of at most 500 bytes in 4 arenas.
    assert!(*mapped.iter().max().unwrap() < 32 << 20, "{mapped:?}");
}

fn heapmark(dir: &Path, args: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_heapmark"));
    command.current_dir(dir).args(args);
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn a_run_has_a_series_for_each_sample_and_taking_it_up_again_replaces_what_was_left_behind() {
    let dir = tempfile::tempdir().unwrap();
    let small = [
        "run",
        "-a",
        "glibc",
        "--blocks",
        "2",
        "-o",
        "run",
        "-w",
        "memory,churn",
        "-t",
        "1",
        "--series",
        "1ms",
        "--no-floor",
        "--no-repeat",
    ];
    heapmark(
        dir.path(),
        &[
            &small[..],
            &["--target-ms", "5", "--set", "churn.objects=1000"],
        ]
        .concat(),
    );
    let run = dir.path().join("run");
    let names = || {
        let mut names: Vec<String> = std::fs::read_dir(run.join("series"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let expected = [
        "churn@1_b00_glibc.csv",
        "churn@1_b01_glibc.csv",
        "memory@2_b00_glibc.csv",
        "memory@2_b01_glibc.csv",
    ];
    assert_eq!(names(), expected);
    let churn =
        Table::read(&std::fs::read_to_string(run.join("series/churn@1_b00_glibc.csv")).unwrap());
    assert!(
        churn
            .texts("requested_live_bytes")
            .iter()
            .all(|text| text.is_empty()),
        "churn publishes nothing"
    );

    // As if it had been killed between the series of its last sample and the record.
    let samples = run.join("samples.jsonl");
    let text = std::fs::read_to_string(&samples).unwrap();
    let kept: Vec<&str> = text.lines().collect();
    let (last, rest) = kept.split_last().unwrap();
    let cell = expected
        .iter()
        .find(|name| last.contains(&name.trim_end_matches(".csv").replace('_', "/")))
        .unwrap();
    std::fs::write(&samples, rest.join("\n") + "\n").unwrap();
    std::fs::write(run.join("series").join(cell), "torn").unwrap();
    heapmark(dir.path(), &["run", "--resume", "run"]);
    assert_eq!(names(), expected);
    let again = std::fs::read_to_string(run.join("series").join(cell)).unwrap();
    assert!(
        again.starts_with("time_ns,") && again.lines().count() > 2,
        "{again}"
    );
}
