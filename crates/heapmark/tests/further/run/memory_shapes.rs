//! Workloads that measure memory and take their points themselves, through the built binary: what hoards comes last, what leaks
//! grows, and an impossible reading is an error.

use crate::support::{Place, of_purpose, samples, word, words};
use heapmark::catalog::Catalog;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::LazyLock;

/// Small sizes, and the figure that ranks each.
const SHAPES: [(&str, &str, &[&str]); 10] = [
    ("robson", "robson_ratio", &["live=2097152"]),
    ("ladder", "worst_overhead", &["volume=4194304"]),
    ("pin", "worst_overhead", &["volume=1048576", "largest=4096"]),
    ("shift", "worst_overhead", &["live=1048576", "octaves=4"]),
    ("stranded", "growth_bytes_per_iteration", &["iterations=10"]),
    (
        "ratchet",
        "ratchet_ratio",
        &["requests=48", "pool=4", "blocks=5000", "idle-ms=10"],
    ),
    ("chain", "bytes_per_idle_thread", &["links=8"]),
    (
        "idle-return",
        "above_live_gib_s",
        &["burst=8388608", "idle-ms=50"],
    ),
    (
        "fan-in",
        "peak_over_bound",
        &["producers=2", "operations=60000"],
    ),
    ("relay", "peak_over_bound", &["batches=20000"]),
];

/// What survives follows from addresses.
const IN_ADDRESSES: [&str; 2] = ["robson", "pin"];

fn flags_of(shapes: &[(&str, &str, &[&str])]) -> Vec<String> {
    let names: Vec<&str> = shapes.iter().map(|(name, ..)| *name).collect();
    let mut flags = vec![
        "run".into(),
        "--retained".into(),
        "-w".into(),
        names.join(","),
    ];
    for (name, _, set) in shapes {
        for change in *set {
            flags.extend(["--set".into(), format!("{name}.{change}")]);
        }
    }
    flags
}

fn run(place: &Place, flags: &[String], more: &[&str]) -> String {
    let flags: Vec<&str> = flags
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .collect();
    let end = place.run(&flags);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    end.stdout
}

/// Medians by workload, allocator and metric.
pub fn medians(place: &Place, run: &str) -> BTreeMap<[String; 3], f64> {
    let end = place.run(&["export", run, "--to", "csv"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let mut reader = csv::Reader::from_reader(end.stdout.as_bytes());
    let rows = reader
        .deserialize()
        .map(|row: Result<BTreeMap<String, String>, _>| row.unwrap());
    let value = |row: BTreeMap<String, String>| {
        let key = ["workload", "allocator", "metric"].map(|column| row[column].clone());
        Some((key, row["median"].parse().ok()?))
    };
    rows.filter_map(value).collect()
}

/// A run of all shapes under glibc and some fakes.
struct ShapesRun {
    printed: String,
    medians: BTreeMap<[String; 3], f64>,
    records: Vec<Value>,
}

/// Made once: several tests look at it.
static SHAPES_RUN: LazyLock<ShapesRun> = LazyLock::new(|| {
    let place = Place::new();
    let allocators = format!(
        "glibc,own={},holder={},leaker={},early={}",
        place.compile("own", &[]).display(),
        place.fake("holder").display(),
        place.fake("leaker").display(),
        place.fake("early_riser").display()
    );
    let printed = run(
        &place,
        &flags_of(&SHAPES),
        &["-a", &allocators, "--blocks", "1", "-o", "run"],
    );
    ShapesRun {
        printed,
        medians: medians(&place, "run"),
        records: samples(&place.at("run")),
    }
});

#[test]
fn what_hoards_is_last_in_each_shape_and_what_leaks_is_called_growing() {
    let suite = Catalog::load().unwrap();
    let suite = suite.suite("memory-shapes").unwrap();
    let names = SHAPES.map(|(name, ..)| name.to_owned());
    assert_eq!(
        BTreeSet::from_iter(&suite.workloads),
        BTreeSet::from_iter(&names),
        "each of the suite"
    );
    let ShapesRun {
        printed, medians, ..
    } = &*SHAPES_RUN;
    let of = |workload: &str, allocator: &str, metric: &str| {
        let key = [workload, allocator, metric].map(str::to_owned);
        *medians
            .get(&key)
            .unwrap_or_else(|| panic!("{key:?} of {medians:?}"))
    };
    for (workload, figure, _) in SHAPES {
        let [hoards, glibc, own] =
            ["holder", "glibc", "own"].map(|name| of(workload, name, figure));
        // `own` reuses a block for its own size class only, of which `ladder` takes each once.
        assert!(
            hoards > glibc && hoards >= own,
            "{workload}: {hoards}, {glibc}, {own}"
        );
    }
    for (workload, ..) in SHAPES {
        // Nothing that was freed was used again: at least all that was requested is resident.
        let line = of(workload, "holder", "no_reuse_ratio");
        let keys = ["peak_over_bound", "peak_over_peak"];
        let peak = keys
            .into_iter()
            .find_map(|key| medians.get(&[workload, "holder", key].map(str::to_owned)));
        assert!(
            *peak.unwrap() >= 0.98 * line && line > 1.0,
            "{workload}: {peak:?}, {line}"
        );
        // What survives in these follows from addresses.
        if !IN_ADDRESSES.contains(&workload) {
            assert_eq!(line, of(workload, "glibc", "no_reuse_ratio"), "{workload}");
        }
    }
    let said = words(printed);
    let growing = said
        .split_once("Still growing: ")
        .unwrap_or_else(|| panic!("{printed}"))
        .1;
    let growing = growing.split_once('.').unwrap().0;
    assert!(
        growing.contains("leaker") && growing.contains("holder"),
        "{growing}"
    );
    assert!(
        !growing.contains("own") && !growing.contains("glibc"),
        "{growing}"
    );
}

#[test]
fn what_an_allocator_holds_before_the_first_block_is_its_own_and_no_shape_has_less_than_is_live() {
    let mut followed = of_purpose(&SHAPES_RUN.records, "memory");
    followed.retain(|record| ["glibc", "early"].contains(&word(record, "allocator")));
    assert_eq!(followed.len(), 2 * SHAPES.len());
    for record in followed {
        let [live, heap] = ["live_bytes", "heap_bytes"]
            .map(|key| record["memory"]["peak_demand"][key].as_u64().unwrap());
        assert!(heap >= live, "{record}");
        let held_before = match word(record, "allocator") {
            "early" => 70 << 20,
            _ => 0,
        };
        assert!(heap >= held_before, "{record}");
    }
}

#[test]
fn what_hoards_has_the_worst_memory_beside_times() {
    let place = Place::new();
    let suites = place.at("config/heapmark/suites");
    fs::create_dir_all(&suites).unwrap();
    let small = [
        "churn.objects=2000",
        "ratchet.requests=48",
        "ratchet.pool=4",
        "ratchet.blocks=5000",
        "ratchet.idle-ms=10",
        "fan-in.producers=2",
        "fan-in.operations=60000",
        "idle-return.burst=8388608",
        "idle-return.idle-ms=50",
    ];
    let suite = format!(
        "about = \"x\"\npreset = \"quick\"\nworkloads = [\"churn\"]\n\
         memory-of = [\"ratchet\", \"fan-in\", \"idle-return\"]\nset = {small:?}\n\
         threads = [\"1\"]\ntiers = [\"main\"]\nbaseline = \"glibc\"\ntarget-ms = 2\n"
    );
    fs::write(suites.join("both.toml"), suite).unwrap();
    let allocators = format!(
        "glibc,own={},holder={}",
        place.compile("own", &[]).display(),
        place.fake("holder").display()
    );
    let short = ["--blocks", "1", "--no-aa-copy", "--no-floor", "--no-repeat"];
    let end = place.run(&[&["run", "both", "-a", &allocators, "-o", "run"], &short[..]].concat());
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    assert_eq!(of_purpose(&records, "memory").len(), 9, "one of each");
    let told = place.run(&["export", "run", "--to", "json"]);
    let told: serde_json::Value = serde_json::from_str(&told.stdout).unwrap();
    let held = &told["analysis"]["held"];
    let of = |allocator: &str, shape: &str| {
        let mut all = held.as_array().unwrap().iter();
        let own = all.find(|held| held["allocator"] == allocator);
        own.and_then(|held| held[shape].as_f64())
            .unwrap_or_else(|| panic!("{allocator}, {shape}: {held:#}"))
    };
    for shape in ["pool", "fan_in"] {
        for other in ["glibc", "own"] {
            assert!(
                of("holder", shape) > 1.5 * of(other, shape),
                "{shape}: {held:#}"
            );
        }
    }
    assert!(of("holder", "returned") < 0.01, "{held:#}");
}

#[test]
fn the_worst_window_is_named_and_a_child_that_dies_is_a_failure() {
    let place = Place::new();
    let allocators = format!(
        "glibc,holder={},aborter={}",
        place.fake("holder").display(),
        place.fake("fork_aborter").display()
    );
    let small = [
        "--set",
        "pin-windows.volume=1048576",
        "--set",
        "pin-windows.largest=512",
    ];
    let end = place.run_block("run", "pin-windows", &allocators, &small);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    assert!(
        end.stdout.contains("SIGABRT") && end.says("forked child"),
        "{}",
        end.stdout
    );
    let medians = medians(&place, "run");
    let of = |allocator: &str, metric: &str| {
        medians
            .get(&["pin-windows", allocator, metric].map(str::to_owned))
            .copied()
    };
    // What frees nothing holds the same however few survive.
    assert_eq!(of("holder", "worst_window_bytes"), Some(1_048_576.0));
    let windows = ["4", "16", "64", "1024"].map(|kib| {
        let key = format!("peak_over_peak_{kib}_kib");
        of("holder", &key).unwrap_or_else(|| panic!("{key}: {medians:?}"))
    });
    assert!(windows.is_sorted() && windows[0] > 1.0, "{windows:?}");
    // The process itself has this window, and a heap as fresh.
    let own = of("holder", "peak_over_peak").unwrap();
    assert!((windows[2] / own - 1.0).abs() < 0.02, "{windows:?}, {own}");
    assert_eq!(of("aborter", "worst_window_bytes"), None);
}

#[test]
fn a_request_on_a_thread_that_has_not_allocated_yet_is_told_apart() {
    let place = Place::new();
    let allocators = format!("glibc,cold={}", place.fake("cold_starter").display());
    let small = [
        "--set",
        "ratchet-latency.requests=40",
        "--set",
        "ratchet-latency.pool=4",
        "--set",
        "ratchet-latency.blocks=100",
    ];
    let end = place.run_block("run", "ratchet-latency", &allocators, &small);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let medians = medians(&place, "run");
    let of = |metric: &str| medians[&["ratchet-latency", "cold", metric].map(str::to_owned)];
    let [cold, warm] = ["cold_request_ns", "warm_request_ns"].map(of);
    // It sleeps before the first block of a thread, and then never again.
    assert!(cold >= 20e6 && warm > 0.0 && warm < cold, "{cold}, {warm}");
}

#[test]
fn what_a_thread_takes_is_told_without_its_start() {
    let place = Place::new();
    let allocators = format!("glibc,cold={}", place.fake("cold_starter").display());
    let small = ["--set", "thread-churn.generations=20"];
    let end = place.run_block("run", "thread-churn", &allocators, &small);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let medians = medians(&place, "run");
    let thread_ns = medians[&["thread-churn", "cold", "thread_ns"].map(str::to_owned)];
    // It sleeps 100 ms before the first block of a thread; a thread that asks for none does not wait. A
    // busy machine may start that one some milliseconds later.
    assert!(thread_ns >= 19e6, "{thread_ns}");
}

#[test]
fn a_page_left_by_each_thread_is_found() {
    let place = Place::new();
    let leaks = place.fake("thread_leaker");
    let allocators = format!(
        "glibc,own={},leaks={}",
        place.compile("own", &[]).display(),
        leaks.display()
    );
    let flags = [
        "run",
        "-w",
        "thread-churn",
        "--set",
        "thread-churn.generations=300",
    ]
    .map(str::to_owned);
    let printed = run(
        &place,
        &flags,
        &["-a", &allocators, "--blocks", "1", "-o", "run"],
    );
    let medians = medians(&place, "run");
    let growth = |allocator: &str| {
        medians[&["thread-churn", allocator, "growth_bytes_per_thread"].map(str::to_owned)]
    };
    // Over 150 threads; a heap that takes some more pages for its own blocks is none that leaks.
    assert!((4096.0..4500.0).contains(&growth("leaks")), "{medians:?}");
    assert!(
        growth("own") < 400.0 && growth("glibc") < 400.0,
        "{medians:?}"
    );
    assert!(
        words(&printed).contains("still growing: leaks"),
        "{printed}"
    );
}

#[test]
fn a_child_copies_the_pages_that_free_writes_to() {
    let place = Place::new();
    let allocators = format!(
        "own={},holder={},glibc",
        place.compile("own", &[]).display(),
        place.fake("holder").display()
    );
    let flags = ["run", "-w", "fork-cow", "--set", "fork-cow.heap=4194304"].map(str::to_owned);
    run(
        &place,
        &flags,
        &["-a", &allocators, "--blocks", "1", "-o", "run"],
    );
    let medians = medians(&place, "run");
    let copied =
        |allocator: &str| medians[&["fork-cow", allocator, "copied_bytes"].map(str::to_owned)];
    // A free list inside the blocks writes to each freed block: 656 blocks in as many places of 4 MiB.
    assert!(copied("own") > 2e6, "{medians:?}");
    // A free that does nothing copies nothing but what the child itself needs.
    assert!(copied("holder") < 5e5, "{medians:?}");
}

#[test]
fn the_first_thousand_writes_of_a_parent_are_timed_if_it_makes_so_many() {
    let place = Place::new();
    for (mib, is_timed) in [(20, true), (5, false)] {
        let heap = format!("fork-cow-write.heap={}", mib << 20);
        let flags = ["run", "-w", "fork-cow-write", "--set", heap.as_str()].map(str::to_owned);
        let name = format!("run-{mib}");
        run(
            &place,
            &flags,
            &["-a", "glibc", "--blocks", "1", "-o", &name],
        );
        let medians = medians(&place, &name);
        let first = ["fork-cow-write", "glibc", "first_writes_ns"].map(str::to_owned);
        let first_ns = medians.get(&first).copied();
        assert_eq!(first_ns.is_some_and(|ns| ns > 0.0), is_timed, "{medians:?}");
    }
}

#[test]
fn two_runs_make_the_same_calls_on_the_same_demand() {
    let place = Place::new();
    let is_fixed = |shape: &&(&str, &str, &[&str])| !IN_ADDRESSES.contains(&shape.0);
    let of_life: [(&str, &str, &[&str]); 5] = [
        ("fork-cow", "", &["heap=1048576"]),
        ("thread-churn", "", &["generations=50"]),
        ("start", "", &["starts=2"]),
        ("late-free-key", "", &["blocks=2000"]),
        ("traverse", "", &["nodes=1000", "litter=3000000"]),
    ];
    let of_memory = SHAPES.iter().filter(is_fixed).copied();
    let shapes: Vec<_> = of_memory.chain(of_life).collect();
    let seen: Vec<Vec<String>> = ["one", "two"]
        .map(|name| {
            run(
                &place,
                &flags_of(&shapes),
                &["-a", "glibc", "--blocks", "1", "-o", name],
            );
            let records = samples(&place.at(name));
            let told = of_purpose(&records, "memory").into_iter().map(|record| {
                let workload = word(record, "workload");
                let calls = &record["measurement"]["calls"];
                assert!(calls["malloc"].as_u64() > Some(0), "{record}");
                let memory = &record["memory"];
                let demand = [&memory["peak_demand"]["live_bytes"], &memory["points"]];
                format!("{workload} {calls} {demand:?}")
            });
            let mut told: Vec<String> = told.collect();
            told.sort();
            told
        })
        .into();
    assert_eq!(seen[0].len(), shapes.len(), "{:?}", seen[0]);
    assert_eq!(seen[0], seen[1]);
}

#[test]
fn an_impossible_reading_is_an_error_and_no_praise() {
    let place = Place::new();
    // Its heap lies in a file, so none of it is found.
    let unseen = place.compile("in_disk_file", &[]);
    let allocators = format!("glibc,unseen={}", unseen.display());
    let flags = [
        "--retained",
        "--set",
        "robson.live=2097152",
        "--set",
        "ladder.volume=4194304",
        "--set",
        "fan-in.producers=2",
        "--set",
        "fan-in.operations=2000",
    ];
    let workloads = ["robson", "ladder", "fan-in"];
    let end = place.run_block("run", &workloads.join(","), &allocators, &flags);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    let records = samples(&place.at("run"));
    for workload in workloads {
        let outcome = |name: &str| {
            let followed = of_purpose(&records, "memory");
            let is_own =
                |it: &&Value| word(it, "allocator") == name && word(it, "workload") == workload;
            followed.into_iter().find(is_own).unwrap()["outcome"].to_string()
        };
        assert!(outcome("glibc").contains("\"ok\""), "{}", outcome("glibc"));
        let told = outcome("unseen");
        let error = ["\"error\"", "memory is measured wrongly here"];
        assert!(error.iter().all(|word| told.contains(word)), "{told}");
    }
}

#[test]
fn a_block_that_loses_its_bytes_is_a_wrong_result() {
    let place = Place::new();
    let scribbler = format!("glibc,scribbler={}", place.fake("scribbler").display());
    let flags = ["--set", "ladder.volume=65536"];
    let end = place.run_block("run", "ladder", &scribbler, &flags);
    assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
    assert!(end.says("does not hold what was written"), "{}", end.stdout);
}

#[test]
fn workloads_of_memory_need_no_flag_and_do_not_mix_with_times() {
    let place = Place::new();
    let plan = |flags: &[&str]| place.run(&[&["run", "--dry-run", "-a", "glibc"], flags].concat());
    for flags in [
        &["memory-shapes"][..],
        &["-w", "robson,ladder"],
        &["-w", "robson,churn", "--retained"],
    ] {
        let end = plan(flags);
        assert_eq!(end.code, Some(0), "{}", end.stderr);
        assert!(end.says("memory for what is live"), "{}", end.stdout);
    }
    let refused = [
        (
            &["-w", "robson,churn"][..],
            "robson measures memory, churn time: add --retained",
        ),
        (
            &["-w", "pin", "--latency"],
            "pin measures memory alone: leave out --latency",
        ),
        (
            &["-w", "pin", "--counter", "kernel"],
            "pin measures memory alone",
        ),
        (
            &["-w", "chain", "--series", "1ms"],
            "--series: these workloads measure memory",
        ),
    ];
    for (flags, why) in refused {
        let end = plan(flags);
        assert_ne!(end.code, Some(0), "{flags:?}");
        assert!(end.stderr.contains(why), "{flags:?}: {}", end.stderr);
    }
}

#[test]
fn a_steady_heap_is_largest_under_what_hoards() {
    let place = Place::new();
    let own = place.compile("own", &[]).display().to_string();
    let holder = place.fake("holder").display().to_string();
    let allocators = format!("glibc,own={own},holder={holder}");
    let small = ["steady.live=2000000", "steady.operations=20000"];
    for (threads, run) in [("1", "one"), ("3", "three")] {
        let mut flags = vec![
            "run",
            "--retained",
            "-w",
            "steady",
            "-t",
            threads,
            "-a",
            &allocators,
            "--blocks",
            "1",
            "-o",
            run,
        ];
        small.iter().for_each(|one| flags.extend(["--set", one]));
        let end = place.run(&flags);
        assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
        let medians = medians(&place, run);
        let of = |allocator: &str, metric: &str| {
            let key = ["steady", allocator, metric].map(str::to_owned);
            medians.get(&key).copied()
        };
        for metric in ["steady_overhead", "worst_overhead"] {
            let [hoards, glibc, own] = ["holder", "glibc", "own"]
                .map(|name| of(name, metric).unwrap_or_else(|| panic!("{metric}: {medians:?}")));
            assert!(
                hoards > 2.0 * glibc && hoards > 2.0 * own && glibc > 1.0,
                "{medians:?}"
            );
        }
        // What was freed is still resident: all that was requested.
        let peak = of("holder", "peak_over_peak").unwrap();
        assert!(
            peak >= 0.98 * of("holder", "no_reuse_ratio").unwrap(),
            "{medians:?}"
        );
        let remote = of("glibc", "remote_share").unwrap();
        let expected = if threads == "1" { 0.0 } else { 0.2 };
        assert!((remote - expected).abs() < 0.02, "{remote}");
        assert!(of("glibc", "tlb_64_misses_per_read").is_some_and(|misses| misses > 0.0));
    }
}

#[test]
fn a_block_that_is_overwritten_is_found_at_its_death_and_when_it_is_read() {
    let place = Place::new();
    let library = place.fake("scribbler").display().to_string();
    let allocators = format!("glibc,scribbler={library}");
    for (uses, says) in [
        ("steady.use=0", "bytes does not hold what was written"),
        ("steady.use=1", "does not hold what was written"),
    ] {
        let end = place.run(&[
            "run",
            "-w",
            "steady",
            "-t",
            "1",
            "-a",
            &allocators,
            "--blocks",
            "1",
            "--set",
            "steady.live=1000000",
            "--set",
            "steady.operations=2000",
            "--set",
            uses,
            "--cell",
            "steady@1/b00/scribbler",
        ]);
        assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
        let outcome = end.stdout.lines().last().unwrap();
        assert!(
            outcome.starts_with("outcome: wrong-result: ") && outcome.contains(says),
            "{outcome}"
        );
    }
}
