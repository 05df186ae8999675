//! `heapmark export` of a real run, read by those it is for: DuckDB, Google Benchmark's compare.py, and, where a tool cannot be
//! had without the rest of it, types that allow what its documents say and nothing else.

use crate::support::{End, Place};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Where Debian's package puts it.
const COMPARE: &str = "/usr/share/benchmark/compare.py";

const HONEST: [&str; 2] = ["churn@1/glibc", "churn@1/honest"];

/// A run of two allocators that are well and one that crashes.
fn place() -> &'static Place {
    static PLACE: OnceLock<Place> = OnceLock::new();
    PLACE.get_or_init(|| {
        let place = Place::new();
        let word = |name: &str| format!("{name}={}", place.fake(name).display());
        let allocators = format!("glibc,{},{}", word("honest"), word("crasher"));
        let end = place.run_small("run", &["--blocks", "6", "-a", &allocators]);
        assert_eq!(end.code, Some(4), "{}{}", end.stdout, end.stderr);
        place
    })
}

/// A file of the run in a format.
fn exported(format: &str) -> PathBuf {
    // Tests run at once.
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    let file = place().at(&format!(
        "{}.{format}",
        CALLS.fetch_add(1, Ordering::Relaxed)
    ));
    let end = place().run(&[
        "export",
        "run",
        "--to",
        format,
        "-o",
        file.to_str().unwrap(),
    ]);
    assert_eq!(end.code, Some(0), "{format}: {}", end.stderr);
    let note =
        format!("1 of 3 rows left out: {format} cannot represent them; csv-rows has the reasons\n");
    let holds_all = format == "csv-samples";
    assert_eq!(end.stderr, if holds_all { String::new() } else { note });
    file
}

fn read<T: DeserializeOwned>(format: &str) -> T {
    serde_json::from_slice(&fs::read(exported(format)).unwrap()).unwrap()
}

/// What the tables say of the rows that are well, by name.
fn rows() -> BTreeMap<String, BTreeMap<String, String>> {
    let rows = place()
        .rows("run")
        .into_iter()
        .filter(|row| row["outcome"] == "ok");
    rows.map(|row| {
        (
            format!(
                "{}@{}/{}",
                row["workload"], row["threads"], row["allocator"]
            ),
            row,
        )
    })
    .collect()
}

fn number(row: &BTreeMap<String, String>, column: &str) -> f64 {
    row[column]
        .parse()
        .unwrap_or_else(|why| panic!("{column}: {why}"))
}

/// Sums and quotients of the same numbers in another order.
fn same(ours: f64, theirs: f64) -> bool {
    (ours - theirs).abs() <= 1e-9 * theirs.abs()
}

/// A Python that has what requirements.txt asks for.
fn python() -> PathBuf {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    let make = || {
        let wanted = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports/requirements.txt");
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("exports-python");
        let _alone = crate::support::alone("exports-python");
        let (python, installed) = (folder.join("bin/python3"), folder.join("requirements.txt"));
        if fs::read(&installed).ok() != fs::read(&wanted).ok() {
            let brings = "scripts/setup.sh test brings python3 and python3-venv";
            finished(
                Command::new("python3")
                    .args(["-m", "venv", "--clear"])
                    .arg(&folder),
                brings,
            );
            let pip = [
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
                "--only-binary",
                ":all:",
                "-r",
            ];
            finished(
                Command::new(&python).args(pip).arg(&wanted),
                "the packages come from PyPI",
            );
            fs::copy(&wanted, &installed).unwrap();
        }
        python
    };
    PYTHON.get_or_init(make).clone()
}

/// What a command that must end well wrote to stdout.
fn finished(command: &mut Command, hint: &str) -> String {
    let end = End::of(
        command
            .output()
            .unwrap_or_else(|why| panic!("{command:?}: {why}: {hint}")),
    );
    assert_eq!(
        end.code,
        Some(0),
        "{command:?}: {hint}\n{}{}",
        end.stdout,
        end.stderr
    );
    end.stdout
}

/// https://bencher.dev/docs/reference/bencher-metric-format/
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Metric {
    value: f64,
    lower_value: Option<f64>,
    upper_value: Option<f64>,
}

#[test]
fn bencher_can_track_it() {
    let all: BTreeMap<String, BTreeMap<String, Metric>> = read("bmf");
    assert_eq!(all.keys().map(String::as_str).collect::<Vec<_>>(), HONEST);
    for (name, row) in rows() {
        let latency = &all[&name]["latency"];
        assert!(same(latency.value, number(&row, "ns_per_op")), "{name}");
        assert!(
            same(latency.lower_value.unwrap(), number(&row, "ns_per_op_min")),
            "{name}"
        );
        assert!(
            same(latency.upper_value.unwrap(), number(&row, "ns_per_op_max")),
            "{name}"
        );
        assert!(
            same(
                all[&name]["throughput"].value,
                number(&row, "mops_per_s") * 1e6
            ),
            "{name}"
        );
        assert!(
            same(all[&name]["peak-rss"].value, number(&row, "peak_rss_bytes")),
            "{name}"
        );
    }
}

/// https://github.com/benchmark-action/github-action-benchmark, "customBiggerIsBetter and customSmallerIsBetter".
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(dead_code, reason = "some fields only have to be there, or to be text")]
struct Figure {
    name: String,
    unit: String,
    value: f64,
    range: Option<String>,
    extra: Option<String>,
}

#[test]
fn github_action_benchmark_can_track_it() {
    let (smaller, bigger): (Vec<Figure>, Vec<Figure>) = (read("gha-smaller"), read("gha-bigger"));
    let names: BTreeSet<&str> = smaller
        .iter()
        .chain(&bigger)
        .map(|one| one.name.as_str())
        .collect();
    assert_eq!(
        names.len(),
        smaller.len() + bigger.len(),
        "it compares what has the same name"
    );
    for (name, row) in rows() {
        let find = |list: &[Figure], what: &str, unit: &str| {
            let all = list
                .iter()
                .find(|one| one.name == format!("{name}: {what}"));
            all.filter(|one| one.unit == unit)
                .unwrap_or_else(|| panic!("{name}: {what} in {unit}"))
                .value
        };
        assert!(
            same(find(&smaller, "time", "ns/op"), number(&row, "ns_per_op")),
            "{name}"
        );
        assert!(
            same(
                find(&smaller, "peak RSS", "bytes"),
                number(&row, "peak_rss_bytes")
            ),
            "{name}"
        );
        assert!(
            same(
                find(&bigger, "throughput", "ops/s"),
                number(&row, "mops_per_s") * 1e6
            ),
            "{name}"
        );
    }
}

/// As hyperfine 1.20 writes it with `--export-json`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Hyperfine {
    results: Vec<Timed>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(
    dead_code,
    reason = "some fields only have to be there, or to be numbers"
)]
struct Timed {
    command: String,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    memory_usage_byte: Option<Vec<u64>>,
    exit_codes: Vec<Option<i32>>,
    parameters: BTreeMap<String, String>,
}

#[test]
fn scripts_for_hyperfine_can_read_it() {
    let all: Hyperfine = read("hyperfine");
    assert_eq!(
        all.results
            .iter()
            .map(|one| one.command.as_str())
            .collect::<Vec<_>>(),
        HONEST
    );
    for one in &all.results {
        let lengths = [
            one.times.len(),
            one.exit_codes.len(),
            one.memory_usage_byte.as_ref().unwrap().len(),
        ];
        assert_eq!(lengths, [6; 3], "{}", one.command);
        assert!(
            one.min <= one.median && one.median <= one.max && one.min > 0.0,
            "{}",
            one.command
        );
    }
}

/// What `compare.py` says of two sides, as the JSON it writes.
fn compare(mode: &[&str]) -> (String, Vec<Map<String, Value>>) {
    assert!(
        Path::new(COMPARE).is_file(),
        "no {COMPARE}: scripts/setup.sh test brings it"
    );
    let told = place().at(&format!("compare-{}.json", mode[0]));
    let said = finished(
        Command::new(python())
            .arg(COMPARE)
            .args(["--no-color", "-d"])
            .arg(&told)
            .args(mode),
        "compare.py",
    );
    (
        said,
        serde_json::from_slice(&fs::read(told).unwrap()).unwrap(),
    )
}

#[test]
fn google_benchmarks_compare_py_tests_two_runs() {
    let file = exported("google-benchmark");
    let file = file.to_str().unwrap();
    let (said, all) = compare(&["benchmarks", file, file]);
    let row = all.iter().find(|one| one["name"] == HONEST[0]).unwrap();
    assert_eq!(
        (row["run_type"].as_str(), row["time_unit"].as_str()),
        (Some("iteration"), Some("ns"))
    );
    assert_eq!(row["measurements"].as_array().unwrap().len(), 6);
    assert_eq!(row["utest"]["nr_of_repetitions"], 6, "{said}");
    assert_eq!(
        row["utest"]["time_pvalue"].as_f64(),
        Some(1.0),
        "nothing differs from itself"
    );
    for (name, row) in rows() {
        let median = all
            .iter()
            .find(|one| one["name"] == format!("{name}_median"))
            .unwrap();
        assert_eq!(median["aggregate_name"], "median");
        let time = |of: &str| median["measurements"][0][of].as_f64().unwrap();
        assert!(same(time("real_time"), number(&row, "ns_per_op")), "{name}");
        assert!(
            same(time("cpu_time"), number(&row, "cpu_ns_per_op")),
            "{name}"
        );
    }
}

#[test]
fn google_benchmarks_compare_py_tests_two_allocators_of_a_run() {
    let file = exported("google-benchmark");
    let (said, all) = compare(&["filters", file.to_str().unwrap(), "/glibc", "/honest"]);
    let row = all
        .iter()
        .find(|one| one["name"] == "churn@1[/glibc vs. /honest]")
        .unwrap_or_else(|| panic!("{said}"));
    assert_eq!(
        (
            row["measurements"].as_array().unwrap().len(),
            &row["utest"]["nr_of_repetitions_other"]
        ),
        (6, &6.into())
    );
}

/// What `tracks.py` says of a trace.
fn tracks(file: &Path) -> End {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/exports/tracks.py");
    let mut command = Command::new(python());
    End::of(command.arg(script).arg(file).output().unwrap())
}

#[test]
fn memory_over_time_is_a_counter_track_by_perfettos_own_schema() {
    let place = Place::new();
    let end = place.run_small("run", &["--blocks", "1", "-a", "glibc", "--series", "1ms"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let end = place.run(&["export", "run", "--to", "perfetto", "-o", "trace"]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let said = tracks(&place.at("trace"));
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    let told: Vec<Value> = serde_json::from_str(&said.stdout).unwrap();
    let own =
        |track: &&Value| track["process"] == "churn@1/glibc" && track["name"] == "resident set";
    let track = told.iter().find(own).unwrap();
    assert_eq!(track["unit"], "UNIT_SIZE_BYTES");
    let table = fs::read_to_string(place.at("run/series/churn@1_b00_glibc.csv")).unwrap();
    let mut lines = table
        .lines()
        .map(|line| line.split(',').collect::<Vec<_>>());
    let titles = lines.next().unwrap();
    let column = |name: &str| titles.iter().position(|title| *title == name).unwrap();
    let (time, rss) = (column("time_ns"), column("rss_bytes"));
    let points = lines.map(|line| [line[time], line[rss]].map(|word| word.parse().unwrap()));
    let points: Vec<[u64; 2]> = points.collect();
    assert!(!points.is_empty());
    assert_eq!(
        serde_json::from_value::<Vec<[u64; 2]>>(track["points"].clone()).unwrap(),
        points
    );
    // A trace that ends within a message is no trace, and a run without series has none.
    let bytes = fs::read(place.at("trace")).unwrap();
    fs::write(place.at("cut"), &bytes[..bytes.len() - 3]).unwrap();
    assert_eq!(tracks(&place.at("cut")).code, Some(1));
    place.run_small("bare", &["--blocks", "1", "-a", "glibc"]);
    let end = place.run(&["export", "bare", "--to", "perfetto", "-o", "none"]);
    end.is_one_line(2);
}

/// What `one_line.py` says of a table in a folder and the lines of the document, under a Python.
fn one_line(python: &Path, folder: &Path) -> End {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let document = fs::read_to_string(root.join("../../docs/FORMAT.md")).unwrap();
    let is_line = |line: &&str| line.starts_with("import ") && line.contains("table.csv");
    let lines: Vec<&str> = document.lines().filter(is_line).collect();
    assert_eq!(lines.len(), 3, "{lines:?}");
    let script = root.join("tests/exports/one_line.py");
    let mut command = Command::new(python);
    command.arg(script).arg("table.csv").args(lines);
    End::of(command.current_dir(folder).output().unwrap())
}

#[test]
fn the_table_opens_in_one_line_in_what_is_installed() {
    let folder = tempfile::tempdir().unwrap();
    let table = folder.path().join("table.csv");
    let file = table.to_str().unwrap();
    let end = place().run(&["export", "run", "--to", "csv", "-o", file]);
    assert_eq!(end.code, Some(0), "{}", end.stderr);
    let text = fs::read_to_string(&table).unwrap();
    let machine = PathBuf::from("python3");
    let mut read = BTreeSet::new();
    for python in [&python(), &machine] {
        let end = one_line(python, folder.path());
        assert_eq!(end.code, Some(0), "{python:?}: {}", end.stderr);
        let told: Value = serde_json::from_str(&end.stdout).unwrap();
        assert_eq!(told["rows"], text.lines().count() - 1);
        let names = told["read"].as_array().unwrap();
        read.extend(names.iter().map(|name| name.as_str().unwrap().to_owned()));
    }
    for module in ["pandas", "polars", "duckdb"] {
        if !read.contains(module) {
            eprintln!("skipped: {module} is not installed");
        }
    }
    // A line that lacks a value, and a word in a column of numbers, are found.
    let (header, rest) = text.split_once('\n').unwrap();
    let (first, more) = rest.split_once('\n').unwrap();
    let ragged = first.rsplit_once(',').unwrap().0;
    let wordy = first.replacen(",1,", ",one,", 1);
    for (line, why) in [(ragged, "ragged"), (&wordy, "could not convert")] {
        assert_ne!(line, first);
        fs::write(&table, format!("{header}\n{line}\n{more}")).unwrap();
        let end = one_line(&machine, folder.path());
        assert!(
            end.code == Some(1) && end.stderr.contains(why),
            "{}",
            end.stderr
        );
    }
}

#[test]
fn what_no_row_fits_into_is_refused_in_a_line() {
    let end = place().run_small("calls", &["--blocks", "1", "-a", "glibc", "--latency"]);
    assert_eq!(end.code, Some(0), "{}{}", end.stdout, end.stderr);
    let end = place().run(&["export", "calls", "--to", "hyperfine", "-o", "none.json"]);
    let said = "heapmark: no row of this run fits into hyperfine: json has all data of the run\n";
    assert_eq!(
        (
            end.code,
            end.stderr.as_str(),
            place().at("none.json").exists()
        ),
        (Some(2), said, false)
    );
}
