//! `thread = main`: the process's main thread does the work, and the process has no other thread. A preloaded library says
//! which thread calls, and sees each thread that is created.

use crate::kernels::catalogue::LITTLE_WORK;
use crate::kernels::counter::{Counter, case, job};
use crate::support::{CATALOG, Place, of_purpose, plan, samples, source, word};
use heapmark::execute::{Job, Outcome};
use heapmark::plan::Mode;
use heapmark_guest::kernels;
use std::collections::BTreeSet;

/// What the library saw of a process.
#[derive(Debug)]
struct CallsSeen {
    on_main: u64,
    on_others: u64,
    created: u64,
    /// Calls while the C library knew of more than one thread.
    threaded: u64,
}

impl CallsSeen {
    fn of(counter: &Counter, job: &Job, what: &str) -> CallsSeen {
        let ([on_main, on_others, created, threaded, _], attempt) = counter.numbers(job);
        assert_eq!(attempt.outcome, Outcome::Ok, "{what}: {}", attempt.report);
        CallsSeen {
            on_main,
            on_others,
            created,
            threaded,
        }
    }

    /// No call, and no thread, but the main thread's.
    fn is_of_one_thread(&self) -> bool {
        let CallsSeen {
            on_others,
            created,
            threaded,
            ..
        } = self;
        [on_others, created, threaded] == [&0; 3]
    }
}

fn counter() -> Counter {
    Counter::with(&source("threads_seen"))
}

/// Little work, by kernel.
fn small(kernel: &str) -> &'static [&'static str] {
    match kernel {
        "same-thread" | "cross-vector" => &["volume=1000000"],
        "churn" | "speed" => &["objects=2000"],
        "cache-thrash" => &["iterations=5", "rw=1000"],
        "zalloc" => &["blocks=100"],
        "robson" => &["live=65536", "steps=4"],
        "ladder" => &["largest=1024", "volume=10000"],
        "pin" => &["largest=1024", "volume=100000"],
        "shift" => &["live=65536", "octaves=3", "cycles=1"],
        "stranded" => &["large=10000", "iterations=3"],
        "traverse" => &["nodes=100", "litter=100000"],
        // Some of these blocks have 32 MiB, and each is written.
        "pair-edge" => &["pairs=4"],
        "medium" => &["slots=2", "replacements=4"],
        "hot-ring" => &["pairs=40"],
        "grow" => &["limit=20000", "ladders=2", "teams=1"],
        "batch-order" => &["pairs=100", "batch=25"],
        "aligned" => &["slots=10", "replacements=40"],
        "glibc-thread" => &["replacements=100"],
        "calloc" => &["size=8192", "slots=10", "replacements=40"],
        "aligned-churn" => &["iterations=30"],
        "steady" => &["operations=1000", "live=300000"],
        _ => panic!("say what little work is for {kernel}"),
    }
}

/// Workloads that have the parameter, with their kernels.
fn all() -> Vec<(String, String)> {
    let workloads = &CATALOG.workloads;
    let has = |name: &str| {
        let kernel = kernels::find(name);
        kernel.is_some_and(|kernel| kernel.parameters.contains(&"thread"))
    };
    workloads
        .iter()
        .filter_map(|workload| Some((workload.name.clone(), workload.kernel.clone()?)))
        .filter(|(_, kernel)| has(kernel))
        .collect()
}

#[test]
fn main_is_the_only_thread_and_worker_is_another_one() {
    let counter = counter();
    let mut seen = BTreeSet::new();
    for (workload, kernel) in all() {
        for thread in ["main", "worker"] {
            let word = format!("thread={thread}");
            let set = [small(&kernel), &[word.as_str()]].concat();
            let job = job(&case(&workload, 1, &set), 1, 2, false);
            let what = format!("{workload}, {thread}");
            let calls = CallsSeen::of(&counter, &job, &what);
            if thread == "main" {
                assert!(calls.is_of_one_thread(), "{what}: {calls:?}");
                assert!(calls.on_main > 20, "{what}: {calls:?}");
            } else {
                // One in each of three rounds.
                assert_eq!(calls.created, 3, "{what}");
                assert!(calls.on_others > 20, "{what}: {calls:?}");
                assert!(calls.threaded >= calls.on_others, "{what}: {calls:?}");
            }
        }
        seen.insert(kernel);
    }
    // A replay's threads are the trace's.
    let mut known = kernels::ALL.iter().filter(|it| it.name != "replay");
    assert!(
        known.all(|kernel| kernel.parameters.contains(&"thread") == seen.contains(kernel.name))
    );
}

#[test]
fn the_main_thread_makes_the_calls_that_the_worker_would_make() {
    let counter = Counter::new();
    for workload in ["same-thread", "churn", "zalloc", "speed-malloc-free"] {
        let kernel = workload.trim_end_matches("-malloc-free");
        let count = |word: &str| {
            let set = [small(kernel), &[word]].concat();
            let (counted, outcome, said) = counter.run(workload, 1, &set, 1, 2);
            assert_eq!(outcome, Outcome::Ok, "{workload}");
            assert_eq!(counted, said, "{workload}");
            counted
        };
        assert_eq!(count("thread=main"), count("thread=worker"), "{workload}");
    }
}

#[test]
fn neither_the_check_nor_the_timing_of_single_calls_brings_a_thread() {
    let counter = counter();
    for workload in ["churn", "same-thread", "zalloc"] {
        let set = [small(workload), &["thread=main"]].concat();
        let case = case(workload, 1, &set);
        let checked = CallsSeen::of(&counter, &job(&case, 0, 1, true), "check");
        assert!(checked.is_of_one_thread(), "{workload}: {checked:?}");
        let timed = Job {
            mode: Mode::Latency { every: 4 },
            ..job(&case, 0, 1, false)
        };
        let timed = CallsSeen::of(&counter, &timed, "latency");
        assert!(timed.is_of_one_thread(), "{workload}: {timed:?}");
    }
}

#[test]
fn in_a_steady_heap_the_main_thread_takes_the_points_that_a_worker_has() {
    let counter = counter();
    let points = ["main", "worker"].map(|thread| {
        let word = format!("thread={thread}");
        let set = ["operations=3000", "live=2000000", &word];
        let job = Job {
            mode: Mode::Memory,
            ..job(&case("steady", 1, &set), 0, 1, false)
        };
        let (_, attempt) = counter.numbers(&job);
        assert_eq!(attempt.outcome, Outcome::Ok, "{thread}: {}", attempt.report);
        let figures = attempt.measurement.unwrap().figures;
        assert!(figures["steady_overhead"] > 0.9, "{thread}: {figures:?}");
        let lines = attempt.report.lines();
        lines.filter(|line| line.starts_with("point=")).count()
    });
    // At the first birth on the clock, after 1024 and 2048 more, and after the last one.
    assert_eq!(points, [4, 4]);
}

#[test]
fn every_document_is_followed_in_which_thread_works() {
    let workloads = &CATALOG.workloads;
    let documents = ["BT", "MM", "RP", "ZA", "LL"];
    for workload in workloads
        .iter()
        .filter(|workload| documents.contains(&workload.document.as_str()))
    {
        assert!(workload.one_thread.is_some(), "{}", workload.name);
        // No program of a document is known that has a kernel and works on its main thread.
        for preset in workload.presets.values() {
            let thread = preset.parameters.get("thread");
            assert!(
                thread.is_none_or(|thread| thread == "worker"),
                "{}",
                workload.name
            );
        }
    }
}

#[test]
fn main_is_for_one_thread_and_only_where_a_kernel_can() {
    let place = Place::new();
    let error = |flags: &[&str]| {
        let end = place.run(&[&["run", "--dry-run"], flags].concat());
        assert_ne!(end.code, Some(0), "{}", end.stdout);
        end.stderr
    };
    let two = error(&["-w", "churn", "-t", "1,2", "--set", "churn.thread=main"]);
    for part in ["churn: thread = main", "2 threads", "use -t 1"] {
        assert!(two.contains(part), "{two}");
    }
    for workload in ["larson", "scatter-1", "memory", "cache-scratch"] {
        let set = format!("{workload}.thread=main");
        let none = error(&["-w", workload, "-t", "1", "--set", &set]);
        let expected = format!("workload {workload} has no parameter `thread`");
        assert!(none.contains(&expected), "{none}");
    }
    let other = error(&["-w", "churn", "-t", "1", "--set", "churn.thread=first"]);
    assert!(other.contains("expected worker or main"), "{other}");
}

#[test]
fn a_run_on_the_main_thread_ends_ok_and_says_so_in_its_parameters() {
    let place = Place::new();
    let workloads = &CATALOG.workloads;
    let times = |name: &String| {
        let mut known = workloads.iter();
        known.any(|workload| workload.name == *name && !workload.is_for_memory())
    };
    let names: Vec<String> = all()
        .into_iter()
        .map(|(workload, _)| workload)
        .filter(times)
        .collect();
    let chosen = names.join(",");
    let mut flags: Vec<&str> = "run -a glibc,null -t 1 --blocks 1 --target-ms 1 --no-repeat -o run"
        .split(' ')
        .collect();
    flags.extend(["-w", &chosen]);
    let is_chosen = |change: &&&str| {
        let pattern = change.split('.').next().unwrap();
        let meant = CATALOG.workloads(pattern).unwrap();
        meant.iter().any(|workload| names.contains(&workload.name))
    };
    for change in LITTLE_WORK
        .iter()
        .filter(is_chosen)
        .chain(&["*.thread=main"])
    {
        flags.extend(["--set", change]);
    }
    let end = place.run(&flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let run = place.at("run");
    let is_on_main = |case: &heapmark::plan::Case| case.parameters["thread"] == "main";
    assert!(plan(&run).cases.iter().all(is_on_main));
    let records = samples(&run);
    let measured = of_purpose(&records, "sample");
    for name in &names {
        let mut of = measured
            .iter()
            .filter(|record| word(record, "workload") == name)
            .peekable();
        assert!(of.peek().is_some(), "{name}");
        assert!(of.all(|record| record["outcome"]["kind"] == "ok"), "{name}");
    }
}
