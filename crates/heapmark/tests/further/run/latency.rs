//! Runs that time single calls, through the built binary: every call is counted once, a stall shows where it belongs, and
//! nothing of such a run is a result of throughput.

use crate::support::{End, Place, SMALL, of_purpose, samples, word};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;

/// A run of calls that are timed, of single attempts: what the machine does meanwhile is not what is tested here.
fn run(place: &Place, flags: &[&str]) -> End {
    place.run(&[&["run", "-o", "run", "--no-repeat"], flags].concat())
}

/// The same of the small job.
fn run_small(place: &Place, flags: &[&str]) -> End {
    run(place, &[&SMALL[..], flags].concat())
}

/// Calls by function as the file in `latency/` has them.
fn counts_in_file(place: &Place, run: &str, cell: &str) -> BTreeMap<String, u64> {
    let file = place
        .at(run)
        .join("latency")
        .join(format!("{}.csv", cell.replace('/', "_")));
    let mut counts = BTreeMap::new();
    for line in csv::Reader::from_path(file)
        .unwrap()
        .deserialize::<(String, u64, u64, u64)>()
    {
        let (function, from_ns, to_ns, count) = line.unwrap();
        assert!(from_ns <= to_ns && count > 0);
        *counts.entry(function).or_insert(0) += count;
    }
    counts
}

/// Calls by function as the kernel did them.
fn calls(record: &Value) -> BTreeMap<String, u64> {
    serde_json::from_value(record["measurement"]["calls"].clone()).unwrap()
}

/// Timed calls by function as the record tells.
fn timed(record: &Value) -> BTreeMap<String, u64> {
    let functions = record["measurement"]["latency"]["functions"]
        .as_array()
        .unwrap();
    functions
        .iter()
        .map(|calls| {
            (
                word(calls, "function").to_string(),
                calls["count"].as_u64().unwrap(),
            )
        })
        .collect()
}

/// `--to csv-latency`, by allocator and function.
fn exported(place: &Place, run: &str) -> BTreeMap<(String, String), BTreeMap<String, String>> {
    let text = place.run(&["export", run, "--to", "csv-latency"]).stdout;
    let lines =
        csv::Reader::from_reader(text.as_bytes()).into_deserialize::<BTreeMap<String, String>>();
    lines
        .map(Result::unwrap)
        .map(|line| ((line["allocator"].clone(), line["function"].clone()), line))
        .collect()
}

#[test]
fn with_every_call_timed_the_counts_are_exactly_the_calls_that_the_kernels_did() {
    let place = Place::new();
    // All five functions, threads that are never joined, warm-ups and clean-ups of all kinds.
    let workloads = "churn,cross-vector,memory,larson,scatter-2,scatter-legacy-1,zalloc,speed-malloc-realloc-free-calloc";
    let flags = [
        "--latency",
        "1",
        "-w",
        workloads,
        "-t",
        "1,3",
        "-a",
        "glibc",
        "--no-floor",
        "--blocks",
        "1",
    ];
    let small = [
        "--target-ms",
        "2",
        "--set",
        "churn.objects=5000",
        "--set",
        "cross-vector.volume=1000000",
        "--set",
        "memory.objects=2000",
        "--set",
        "memory.round=2000",
        "--set",
        "larson.rounds=5",
        "--set",
        "speed*.objects=2000",
        "--set",
        "scatter*.loops=4",
    ];
    let end = run(&place, &[&flags[..], &small].concat());
    assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);

    let records = samples(&place.at("run"));
    assert_eq!(of_purpose(&records, "sample").len(), 0);
    let own = of_purpose(&records, "latency");
    // `memory` says itself how many threads it has.
    assert_eq!(own.len(), 7 * 2 + 1);
    let mut functions: Vec<String> = Vec::new();
    for record in own {
        let cell = word(record, "cell");
        assert_eq!(timed(record), calls(record), "{cell}");
        assert_eq!(counts_in_file(&place, "run", cell), calls(record), "{cell}");
        assert!(
            record["measurement"]["iterations"]
                .as_array()
                .unwrap()
                .iter()
                .all(|one| one["cold"] == false),
            "{cell}"
        );
        functions.extend(calls(record).into_keys());
    }
    functions.sort();
    functions.dedup();
    assert_eq!(
        functions,
        ["calloc", "free", "malloc", "posix_memalign", "realloc"]
    );
}

#[test]
fn with_one_call_in_sixteen_timed_about_a_sixteenth_is_counted_of_each_function() {
    let place = Place::new();
    // malloc and free take turns: steps of a fixed length would see one of them only.
    let end = run_small(
        &place,
        &[
            "--latency",
            "-a",
            "glibc",
            "--blocks",
            "1",
            "--set",
            "churn.objects=200000",
        ],
    );
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let records = samples(&place.at("run"));
    let record = of_purpose(&records, "latency")[0];
    for function in ["malloc", "free"] {
        let share = timed(record)[function] as f64 * 16.0 / calls(record)[function] as f64;
        assert!((0.9..1.1).contains(&share), "{function}: {share}");
    }
}

#[test]
fn a_rare_stall_shows_in_the_tail_and_not_in_the_middle() {
    const STALL_NS: u64 = 5_000_000;
    let place = Place::new();
    let staller = format!("glibc,staller={}", place.fake("staller").display());
    let flags = [
        "--latency",
        "1",
        "-a",
        &staller,
        "--blocks",
        "1",
        "--set",
        "churn.objects=120000",
    ];
    let end = run_small(&place, &flags);
    assert_eq!(end.code, Some(0), "{}\n{}", end.stdout, end.stderr);

    let lines = exported(&place, "run");
    let malloc = &lines[&("staller".to_string(), "malloc".to_string())];
    let ns = |column: &str| malloc[column].parse::<u64>().unwrap();
    assert!(
        ns("max_ns") >= STALL_NS && ns("p99_99_ns") >= STALL_NS,
        "{malloc:?}"
    );
    assert!(
        ns("p50_ns") < STALL_NS && ns("p99_ns") < STALL_NS,
        "{malloc:?}"
    );
    assert!((50..=500).contains(&ns("max_bytes")), "{malloc:?}");
    assert_eq!(malloc["max_cell"], "churn@1/b00/staller");
    assert!(
        ns("timer_least_ns") as f64 <= malloc["timer_median_ns"].parse().unwrap(),
        "{malloc:?}"
    );
    // A sleep keeps no other thread from the CPU: of glibc's calls not 1 in 100 is as long.
    assert!(
        lines[&("glibc".to_string(), "malloc".to_string())]["p99_ns"]
            .parse::<u64>()
            .unwrap()
            < STALL_NS
    );

    let (_, table) = end
        .stdout
        .split_once("churn, 1 thread: longest call\n")
        .unwrap();
    let row = table
        .lines()
        .find(|line| line.trim_start().starts_with("staller "))
        .unwrap();
    assert!(
        row.contains(" ms  malloc ") && row.contains("churn@1/b00/staller"),
        "{row}"
    );
}

#[test]
fn a_run_that_times_calls_has_no_throughput_and_no_verdict() {
    let place = Place::new();
    let end = run_small(&place, &["--latency", "-a", "glibc,null", "--blocks", "10"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let page = fs::read_to_string(place.at("run/report.md")).unwrap();
    for text in [&end.stdout, &page] {
        assert!(
            text.contains("No verdict: this run timed single calls"),
            "{text}"
        );
        assert!(
            !text.contains("/op") && !text.contains("/s ") && !text.contains("fastest"),
            "{text}"
        );
    }
    assert!(page.contains("## churn, 1 thread: malloc"), "{page}");
    assert!(page.contains("| null (floor) |"), "{page}");
    for format in ["csv-samples", "csv-rows"] {
        assert_eq!(
            place.run(&["export", "run", "--to", format]).stdout,
            "",
            "{format}"
        );
    }
    let document: Value =
        serde_json::from_str(&place.run(&["export", "run", "--to", "json"]).stdout).unwrap();
    let analysis = &document["analysis"];
    assert_eq!(
        (
            analysis["cases"].as_array().unwrap().len(),
            word(&analysis["conclusion"], "kind")
        ),
        (0, "not-asked")
    );
    let rows = analysis["latency"][0]["rows"].as_array().unwrap();
    assert!(
        rows.iter().all(|row| row["cells"][0]["metric"] == "p50_ns"
            && row["cells"][0]["spread"]["median"].is_f64()),
        "{rows:?}"
    );
}

#[test]
fn programs_are_unsupported_in_one_line_and_broken_allocators_have_no_tail() {
    let place = Place::new();
    let crasher = format!("glibc,crasher={}", place.fake("crasher").display());
    let flags = [
        "--latency",
        "-w",
        "churn,zalloc-pmdk",
        "-t",
        "1",
        "-a",
        &crasher,
        "--blocks",
        "3",
    ];
    let end = run(
        &place,
        &[
            &flags[..],
            &["--target-ms", "2", "--set", "churn.objects=5000"],
        ]
        .concat(),
    );
    assert_eq!(end.code, Some(4), "{}", end.stderr);
    let why = "a program's calls cannot be watched one by one";
    let said = end
        .stderr
        .lines()
        .filter(|line| line.contains("PMDK:zalloc") && line.contains(why))
        .count();
    assert_eq!(said, 1, "{}", end.stderr);
    let records = samples(&place.at("run"));
    let mine: Vec<&Value> = records
        .iter()
        .filter(|record| record["allocator"] == "PMDK:zalloc")
        .collect();
    assert_eq!(
        (mine.len(), word(&mine[0]["outcome"], "kind")),
        (1, "unsupported")
    );
    let lines = exported(&place, "run");
    let none = |allocator: &str| &lines[&(allocator.to_string(), String::new())];
    assert_eq!(
        (&*none("crasher")["outcome"], &*none("crasher")["max_ns"]),
        ("crash", "")
    );
    assert_eq!(
        (
            &*none("PMDK:zalloc")["outcome"],
            &*none("PMDK:zalloc")["timed_calls"]
        ),
        ("unsupported", "")
    );
    assert_eq!(
        lines[&("glibc".to_string(), "free".to_string())]["processes"],
        "3"
    );
}

#[test]
fn such_a_run_is_planned_resumed_and_looked_at_like_any_other() {
    let place = Place::new();
    let flags = ["--latency=4", "-a", "glibc,null", "--blocks", "2"];
    let planned = run_small(&place, &[&flags[..], &["--dry-run"]].concat());
    assert!(
        planned.stdout.contains("then 4 that time 1 of 4 calls\n"),
        "{}",
        planned.stdout
    );
    assert_eq!(run_small(&place, &flags).code, Some(0));

    // Killed in its last process: neither that one's line nor its counts are whole.
    let file = place.at("run/samples.jsonl");
    let text = fs::read_to_string(&file).unwrap();
    let (kept, last) = text.trim_end().rsplit_once('\n').unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    let counts_of = |cell: &str| {
        let name = format!("{}.csv", cell.replace('/', "_"));
        place.at("run/latency").join(name)
    };
    let cell = word(&last, "cell");
    fs::write(&file, format!("{kept}\n")).unwrap();
    fs::write(counts_of(cell), "function,from_ns\nmal").unwrap();
    assert_eq!(place.run(&["run", "--resume", "run"]).code, Some(0));
    assert!(
        exported(&place, "run")
            .values()
            .all(|line| (&*line["processes"], &*line["every"]) == ("2", "4"))
    );

    let end = place.run(&["run", "--resume", "run", "--cell", "churn@1/b01/glibc"]);
    for key in [
        "latency.every=4",
        "latency.clock=",
        "latency=malloc ",
        "latency=free ",
    ] {
        assert!(
            end.stdout.lines().any(|line| line.starts_with(key)),
            "no {key} in\n{}",
            end.stdout
        );
    }

    // Counts that are changed or gone are missed, not taken for others or for none. A digit more leaves their sum as it was.
    let allocator = word(&last, "allocator").to_string();
    // The part of that process was run again as a whole.
    let counts = counts_of(&cell.replace("/b01/", "/b01~1/"));
    let longer = fs::read_to_string(&counts)
        .unwrap()
        .replacen("malloc,", "malloc,1", 1);
    for content in [Some(longer), None] {
        content
            .map_or_else(
                || fs::remove_file(&counts),
                |content| fs::write(&counts, content),
            )
            .unwrap();
        let end = place.run(&["export", "run", "--to", "csv-latency"]);
        let named = format!(
            "run/latency/{}: gone",
            counts.file_name().unwrap().display()
        );
        assert!(
            end.stderr.starts_with(&named) && end.stderr.lines().count() == 1,
            "{}",
            end.stderr
        );
        assert_eq!(
            exported(&place, "run")[&(allocator.clone(), "malloc".to_string())]["processes"],
            "1"
        );
    }
    let page = place.run(&["export", "run", "--to", "md"]).stdout;
    assert!(
        page.contains(&format!(
            "- **{allocator}: the counts of 1 process are missing**"
        )),
        "{page}"
    );
}

#[test]
fn flags_that_make_no_sense_are_refused_in_words() {
    let place = Place::new();
    for (flags, words) in [
        (&["--latency", "quick"][..], "a suite goes before --latency"),
        (&["--latency", "0"], "expected a number from 1"),
        (&["--latency", "--series", "1ms"], "cannot be used with"),
        (&["--latency", "--precision", "1%"], "cannot be used with"),
    ] {
        let end = run_small(&place, flags);
        assert_eq!(end.code, Some(2), "{flags:?}");
        assert!(end.stderr.contains(words), "{}", end.stderr);
    }
}
