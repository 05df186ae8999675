//! The raw export: the measurements of every process, nothing derived.

use super::outcome;
use crate::analyse::Analysis;
use crate::analyse::failure::detail;
use crate::report::text::plain;
use crate::store::{Purpose, Record};
use anyhow::Result;
use serde::Serialize;
use serde_json::json;
use std::io::Write;

/// A line of the raw export: an iteration of a sample, or a process that did not end `ok`.
#[derive(Default, Serialize)]
struct SampleLine {
    cell: String,
    purpose: String,
    workload: String,
    threads: u32,
    allocator: String,
    block: u32,
    part: u32,
    attempt: u32,
    counts: bool,
    position: u32,
    seed: u64,
    started: String,
    outcome: &'static str,
    detail: String,
    row_outcome: String,
    iteration: Option<usize>,
    cold: Option<bool>,
    wall_ns: Option<u64>,
    purge_ns: Option<u64>,
    user_ns: Option<u64>,
    sys_ns: Option<u64>,
    minor_faults: Option<u64>,
    ops: Option<u64>,
    baseline_rss_bytes: Option<u64>,
    held_before_bytes: Option<u64>,
    peak_rss_bytes: Option<u64>,
    requested_peak_bytes: Option<u64>,
    purge: String,
    took_turns: Option<bool>,
}

/// Returns one line per iteration of each sample, including cold ones, and one line without numbers per process of any purpose that did not
/// end `ok`. `row_outcome` is the outcome of the sample's row. Only an `ok` row may be used, and only its processes that count: of several
/// attempts at a part, one counts.
pub fn samples(
    analysis: &Analysis,
    records: impl Iterator<Item = Result<Record>>,
    out: impl Write,
) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    for record in records {
        lines(analysis, &record?)
            .iter()
            .try_for_each(|line| writer.serialize(line))?;
    }
    Ok(writer.flush()?)
}

/// The lines of one process, as values.
fn lines(analysis: &Analysis, record: &Record) -> Vec<SampleLine> {
    let head = || head(analysis, record);
    match &record.measurement {
        _ if !record.outcome.is_ok() => vec![head()],
        _ if record.purpose != Purpose::Sample => Vec::new(),
        Some(measurement) if !measurement.iterations.is_empty() => measurement
            .iterations
            .iter()
            .enumerate()
            .map(|(place, iteration)| SampleLine {
                iteration: Some(place),
                cold: Some(iteration.cold),
                wall_ns: Some(iteration.wall_ns),
                purge_ns: Some(iteration.purge_ns),
                user_ns: Some(iteration.user_ns),
                sys_ns: Some(iteration.sys_ns),
                minor_faults: Some(iteration.minor_faults),
                ops: Some(iteration.ops),
                baseline_rss_bytes: Some(measurement.baseline_rss_bytes),
                held_before_bytes: Some(measurement.held_before_bytes),
                peak_rss_bytes: Some(measurement.peak_rss_bytes),
                requested_peak_bytes: Some(measurement.requested_peak_bytes),
                purge: plain(&measurement.purge),
                took_turns: Some(measurement.turns.is_some()),
                ..head()
            })
            .collect(),
        _ => vec![head()],
    }
}

fn head(analysis: &Analysis, record: &Record) -> SampleLine {
    SampleLine {
        cell: plain(&record.cell),
        purpose: plain(json!(record.purpose).as_str().unwrap_or_default()),
        workload: plain(&record.workload),
        threads: record.threads,
        allocator: plain(&record.allocator),
        block: record.block,
        part: record.part,
        attempt: record.attempt,
        counts: !analysis.interference.discarded.contains(&record.cell),
        position: record.position,
        seed: record.seed,
        started: plain(&record.started),
        outcome: record.outcome.word(),
        detail: plain(&detail(&record.outcome)),
        row_outcome: row_outcome(analysis, record),
        ..SampleLine::default()
    }
}

/// Returns the outcome of a record's row; empty without such a row.
fn row_outcome(analysis: &Analysis, record: &Record) -> String {
    let case = analysis
        .cases
        .iter()
        .find(|case| record.is_of(&case.workload, case.threads));
    case.into_iter()
        .flat_map(|case| &case.rows)
        .find(|row| row.allocator == record.allocator)
        .map_or("", outcome)
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::analyse;
    use crate::analyse::fake_run::FakeRun;
    use crate::observe::interference::Interference;

    #[test]
    fn a_line_says_whether_its_wall_time_has_the_turns_of_another() {
        let lab = FakeRun::new(&["glibc"], &["larson"], 1).fill(|_, _, _| 20.0);
        let took_turns = |lab: &FakeRun| {
            let analysis = analyse(&lab.run, &lab.records);
            let record = lab.records.last().unwrap();
            lines(&analysis, record).pop().unwrap().took_turns
        };
        assert_eq!(took_turns(&lab), Some(false));
        assert_eq!(took_turns(&lab.in_turns()), Some(true));
    }

    #[test]
    fn of_two_attempts_the_one_that_was_disturbed_does_not_count() {
        let mut lab = FakeRun::new(&["glibc"], &["larson"], 1).fill(|_, _, _| 20.0);
        let first = lab.cell("larson@2/b00/glibc");
        let with_others = |share: f64| Interference {
            wall_ns: 10_000_000_000,
            foreign_cpu_share: Some(share),
            cpus: Some(2),
            ..Interference::default()
        };
        first.interference = Some(with_others(0.9));
        let again = Record {
            attempt: 1,
            cell: "larson@2/b00~1/glibc".into(),
            interference: Some(with_others(0.0)),
            ..first.clone()
        };
        lab.records.push(again);
        let analysis = analyse(&lab.run, &lab.records);
        let all = lab.records.iter().map(|record| lines(&analysis, record));
        let found: Vec<(u32, bool)> = all
            .flatten()
            .filter(|line| line.cell.contains("/b00"))
            .map(|line| (line.attempt, line.counts))
            .collect();
        assert!(found.contains(&(0, false)) && found.contains(&(1, true)));
        assert!(
            found
                .iter()
                .all(|(attempt, counts)| (*attempt == 1) == *counts)
        );
    }
}
