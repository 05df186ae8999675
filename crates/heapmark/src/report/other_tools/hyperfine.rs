//! The JSON of hyperfine: a command per row, a run per process. Times are those of the measured
//! phase, not of the process, unless the row is a whole process: start-up and checks are not part
//! of a result here.

use super::{ExportedRow, Foreign, told};
use crate::analyse::{Analysis, Spread, processes};
use crate::execute::{Iteration, Measurement};
use crate::metric::Process;
use crate::report::text::plain;
use crate::store::{Record, RunFile};
use heapmark_stats::{mean, median, standard_deviation};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Serialize)]
struct HyperfineFile {
    results: Vec<HyperfineCommand>,
}

/// In seconds.
#[derive(Serialize)]
struct HyperfineCommand {
    command: String,
    mean: f64,
    /// Null for a single run.
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory_usage_byte: Option<Vec<u64>>,
    exit_codes: Vec<i32>,
    parameters: BTreeMap<&'static str, String>,
}

/// Processes of a case do the same work under every allocator, so their times can be compared.
pub fn hyperfine(run: &RunFile, analysis: &Analysis, records: &[Record]) -> Foreign {
    let processes = processes(run, records);
    told(analysis, |entry| command(entry, entry.own(&processes)))
        .file(|results| HyperfineFile { results })
}

fn command(entry: &ExportedRow, processes: &[(&Measurement, Process)]) -> Option<HyperfineCommand> {
    let seconds = |ns: fn(&Iteration) -> u64| -> Vec<f64> {
        let sum = |(measurement, _): &(&Measurement, Process)| {
            measurement
                .measured()
                .map(|iteration| ns(iteration) as f64)
                .sum::<f64>()
                / 1e9
        };
        processes.iter().map(sum).collect()
    };
    let times = seconds(|iteration| iteration.wall_ns);
    let Spread { min, max, .. } = Spread::of(&times)?;
    let memory = processes
        .iter()
        .map(|(measurement, _)| measurement.peak_rss_bytes);
    Some(HyperfineCommand {
        command: entry.name.clone(),
        mean: mean(&times)?,
        stddev: standard_deviation(&times),
        median: median(&times)?,
        user: mean(&seconds(|iteration| iteration.user_ns))?,
        system: mean(&seconds(|iteration| iteration.sys_ns))?,
        min,
        max,
        // A process that did not report it has none, instead of 0.
        memory_usage_byte: memory.map(|bytes| (bytes > 0).then_some(bytes)).collect(),
        // A process that ended otherwise leaves its row without numbers.
        exit_codes: vec![0; times.len()],
        parameters: BTreeMap::from([
            ("workload", plain(&entry.case.workload)),
            ("threads", entry.case.threads.to_string()),
            ("allocator", plain(&entry.row.allocator)),
        ]),
        times,
    })
}
