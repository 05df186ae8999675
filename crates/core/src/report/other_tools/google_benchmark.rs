//! The JSON of Google Benchmark: a repetition per process, and their aggregates, so that its
//! `compare.py` can test for a difference.

use super::{ExportedRow, Foreign, told};
use crate::analyse::{Analysis, processes};
use crate::metric::Process;
use crate::report::text::plain;
use crate::store::{Record, RunFile};
use heapmark_stats::{mean, median, standard_deviation};
use serde_json::{Map, Value, json};

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
    told(
        analysis,
        |entry| benchmarks(entry, entry.own(&processes)),
        |rows: Vec<Vec<Value>>| json!({"context": context(run), "benchmarks": rows.concat()}),
    )
}

/// The machine in words, as in `run.json`, and the keys that readers of the format look for.
fn context(run: &RunFile) -> Map<String, Value> {
    let mut context = Map::new();
    for (key, value) in &run.machine {
        context.insert(plain(key), plain(value).into());
    }
    for (key, value) in [
        ("date", &run.started),
        ("executable", &format!("heapmark {}", run.heapmark)),
        ("suite", &run.suite),
        ("preset", &run.preset),
    ] {
        context.insert(key.into(), plain(value).into());
    }
    let cpus = run.machine.get("usable_cpus");
    if let Some(Ok(cpus)) = cpus.map(|cpus| cpus.parse::<u32>()) {
        context.insert("num_cpus".into(), cpus.into());
    }
    context
}

fn benchmarks(entry: &ExportedRow, processes: &[Process]) -> Option<Vec<Value>> {
    let repetitions = processes.len();
    let mut all = Vec::new();
    let mut values = Vec::new();
    for (place, process) in processes.iter().enumerate() {
        let ops = process
            .measurement
            .measured()
            .map(|iteration| iteration.ops);
        let cpu_ns = process.cpu_ns_per_op()?;
        let ops_per_s = process.mops_per_s() * 1e6;
        values.push([process.ns_per_op(), cpu_ns, ops_per_s]);
        all.push(json!({
            "name": entry.name,
            "family_index": entry.place.0,
            "per_family_instance_index": entry.place.1,
            "run_name": entry.name,
            "run_type": "iteration",
            "repetitions": repetitions,
            "repetition_index": place,
            "threads": entry.case.threads,
            "iterations": ops.fold(0, u64::saturating_add),
            "real_time": process.ns_per_op(),
            "cpu_time": cpu_ns,
            "time_unit": "ns",
            "items_per_second": ops_per_s,
        }));
    }
    // With one repetition, some aggregates cannot be computed, and the others say nothing.
    for (name, of) in AGGREGATES.into_iter().filter(|_| repetitions > 1) {
        let over = |place: usize| of(&Vec::from_iter(values.iter().map(|values| values[place])));
        if let (Some(ns), Some(cpu_ns), Some(ops_per_s)) = (over(0), over(1), over(2)) {
            all.push(json!({
                "name": format!("{}_{name}", entry.name),
                "family_index": entry.place.0,
                "per_family_instance_index": entry.place.1,
                "run_name": entry.name,
                "run_type": "aggregate",
                "repetitions": repetitions,
                "threads": entry.case.threads,
                "aggregate_name": name,
                "aggregate_unit": "time",
                "iterations": repetitions,
                "real_time": ns,
                "cpu_time": cpu_ns,
                "time_unit": "ns",
                "items_per_second": ops_per_s,
            }));
        }
    }
    Some(all)
}
