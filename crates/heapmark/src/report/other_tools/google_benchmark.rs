//! The JSON of Google Benchmark: a repetition per process, and their aggregates, so that its
//! `compare.py` can test for a difference.

use super::{ExportedRow, Foreign, told};
use crate::analyse::{Analysis, processes};
use crate::execute::Measurement;
use crate::metric::Process;
use crate::report::text::plain;
use crate::store::{Record, RunFile};
use heapmark_stats::{mean, median, standard_deviation};
use serde::Serialize;
use serde_json::{Map, Value, json};

#[derive(Serialize)]
struct GoogleBenchmarkFile {
    context: Map<String, Value>,
    benchmarks: Vec<Benchmark>,
}

#[derive(Clone, Serialize)]
struct Benchmark {
    name: String,
    family_index: usize,
    per_family_instance_index: usize,
    run_name: String,
    run_type: &'static str,
    repetitions: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition_index: Option<usize>,
    threads: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregate_unit: Option<&'static str>,
    iterations: u64,
    real_time: f64,
    cpu_time: f64,
    time_unit: &'static str,
    items_per_second: f64,
}

/// An aggregate's name and function.
type Aggregate = (&'static str, fn(&[f64]) -> Option<f64>);

const AGGREGATES: [Aggregate; 3] = [
    ("mean", mean),
    ("median", median),
    ("stddev", standard_deviation),
];

/// Times per operation. The format requires CPU time, so a row is left out if some process has
/// none.
pub fn google_benchmark(run: &RunFile, analysis: &Analysis, records: &[Record]) -> Foreign {
    let processes = processes(run, records);
    let rows = told(analysis, |entry| benchmarks(entry, entry.own(&processes)));
    rows.file(|rows| GoogleBenchmarkFile {
        context: context(run),
        benchmarks: rows.into_iter().flatten().collect(),
    })
}

/// The machine in words, as in `run.json`, and the keys that readers of the format look for.
fn context(run: &RunFile) -> Map<String, Value> {
    let words = run
        .machine
        .iter()
        .map(|(key, value)| (plain(key), json!(plain(value))));
    let own = [
        ("date", &run.started),
        ("executable", &format!("heapmark {}", run.heapmark)),
        ("suite", &run.suite),
        ("preset", &run.preset),
    ];
    let cpus = run
        .machine
        .get("usable_cpus")
        .and_then(|cpus| cpus.parse::<u32>().ok());
    let cpus = cpus.map(|cpus| ("num_cpus".to_owned(), json!(cpus)));
    words
        .chain(own.map(|(key, value)| (key.to_owned(), json!(plain(value)))))
        .chain(cpus)
        .collect()
}

fn benchmarks(
    entry: &ExportedRow,
    processes: &[(&Measurement, Process)],
) -> Option<Vec<Benchmark>> {
    let repetition = |(place, (measurement, process)): (usize, &(&Measurement, Process))| {
        Some(Benchmark {
            name: entry.name.clone(),
            family_index: entry.place.0,
            per_family_instance_index: entry.place.1,
            run_name: entry.name.clone(),
            run_type: "iteration",
            repetitions: processes.len(),
            repetition_index: Some(place),
            threads: entry.case.threads,
            aggregate_name: None,
            aggregate_unit: None,
            iterations: measurement
                .measured()
                .map(|iteration| iteration.ops)
                .fold(0, u64::saturating_add),
            real_time: process.ns_per_op,
            cpu_time: process.cpu_ns_per_op?,
            time_unit: "ns",
            items_per_second: process.mops_per_s * 1e6,
        })
    };
    let mut all = processes
        .iter()
        .enumerate()
        .map(repetition)
        .collect::<Option<Vec<_>>>()?;
    let aggregates: Vec<Benchmark> = AGGREGATES
        .iter()
        .filter_map(|one| aggregate(&all, one))
        .collect();
    all.extend(aggregates);
    Some(all)
}

/// `None` if it cannot be computed, as from one repetition.
fn aggregate(all: &[Benchmark], (name, of): &Aggregate) -> Option<Benchmark> {
    let over = |value: fn(&Benchmark) -> f64| of(&all.iter().map(value).collect::<Vec<_>>());
    let first = all.first().filter(|_| all.len() > 1)?;
    Some(Benchmark {
        name: format!("{}_{name}", first.run_name),
        run_type: "aggregate",
        repetition_index: None,
        aggregate_name: Some(name),
        aggregate_unit: Some("time"),
        iterations: all.len() as u64,
        real_time: over(|one| one.real_time)?,
        cpu_time: over(|one| one.cpu_time)?,
        items_per_second: over(|one| one.items_per_second)?,
        ..first.clone()
    })
}
