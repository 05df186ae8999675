//! The JSON of hyperfine: a command per row, a run per process. Times are those of the measured phase, not of the process, unless the row
//! is a whole process: start-up and checks are not part of a result here. Processes that took turns have CPU time, since their wall time
//! includes the turns of the other side.

use super::{ExportedRow, Foreign, told};
use crate::analyse::{Analysis, Spread, processes};
use crate::execute::{Iteration, Measurement};
use crate::metric::Process;
use crate::report::text::plain;
use crate::store::{Record, RunFile};
use heapmark_stats::{mean, standard_deviation};
use serde_json::{Value, json};

/// Processes of a case do the same work under every allocator, so their times can be compared.
pub fn hyperfine(run: &RunFile, analysis: &Analysis, records: &[Record]) -> Foreign {
    let processes = processes(run, records);
    told(
        analysis,
        |entry| command(entry, entry.own(&processes)),
        |commands| json!({"results": commands}),
    )
}

/// The entry of a row, with its times in seconds.
fn command(entry: &ExportedRow, processes: &[Process]) -> Option<Value> {
    let seconds_of = |measurement: &Measurement, ns: fn(&Iteration) -> u64| {
        let all: f64 = measurement.measured().map(|one| ns(one) as f64).sum();
        // Several processes may have taken the turns.
        let runs = measurement.turns.as_ref().map_or(1, |turns| turns.runs);
        all / f64::from(runs.max(1)) / 1e9
    };
    let seconds = |ns: fn(&Iteration) -> u64| -> Vec<f64> {
        let measurements = processes.iter().map(|process| process.measurement);
        measurements.map(|one| seconds_of(one, ns)).collect()
    };
    let time = |measurement: &Measurement| match measurement.turns {
        Some(_) => seconds_of(measurement, |one| one.user_ns + one.sys_ns),
        None => seconds_of(measurement, |one| one.wall_ns),
    };
    let times = processes.iter().map(|process| time(process.measurement));
    let times: Vec<f64> = times.collect();
    let Spread { median, min, max } = Spread::of(&times)?;
    let mut command = json!({
        "command": entry.name,
        "mean": mean(&times)?,
        // Null for a single run.
        "stddev": standard_deviation(&times),
        "median": median,
        "user": mean(&seconds(|iteration| iteration.user_ns))?,
        "system": mean(&seconds(|iteration| iteration.sys_ns))?,
        "min": min,
        "max": max,
        "times": times,
    });
    let memory = processes
        .iter()
        .map(|process| process.measurement.peak_rss_bytes);
    // A process that did not report its memory has no number, rather than 0.
    let memory = memory.map(|bytes| (bytes > 0).then_some(bytes));
    if let Some(memory) = memory.collect::<Option<Vec<_>>>() {
        command["memory_usage_byte"] = memory.into();
    }
    // A row with a process that ended in another way has no numbers.
    let facts = entry.case.command.as_ref();
    let exit = facts.and_then(|facts| facts.exit.as_ref());
    let code: u8 = exit.and_then(|(code, _)| code.parse().ok()).unwrap_or(0);
    command["exit_codes"] = vec![code; times.len()].into();
    command["parameters"] = json!({
        "allocator": plain(&entry.row.allocator),
        "threads": entry.case.threads.to_string(),
        "workload": plain(&entry.case.workload),
    });
    Some(command)
}
