//! Long, tidy CSV with fixed units in the names. A process or row that is not `ok` is a line without numbers, never a gap.

use super::text::plain;
use crate::analyse::failure::detail;
use crate::analyse::{Analysis, Case, Purge, Ratio, Role, Row, State, latest};
use crate::execute::{Iteration, Measurement};
use crate::store::{Purpose, Record};
use serde::Serialize;

/// A line of the raw export: an iteration of a sample, or a process that did not end `ok`.
#[derive(Default, Serialize)]
struct SampleLine {
    cell: String,
    purpose: &'static str,
    workload: String,
    threads: u32,
    allocator: String,
    block: u32,
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
    peak_rss_bytes: Option<u64>,
    requested_peak_bytes: Option<u64>,
    purge: String,
}

/// One line per iteration of each sample, the cold ones too; and one without numbers per process of any purpose that did not
/// end `ok`. `row_outcome` tells whether the row that a good sample belongs to may be used.
pub fn samples(analysis: &Analysis, records: &[Record]) -> String {
    let mut lines = Vec::new();
    for record in latest(records) {
        let head = || head(analysis, record);
        match &record.measurement {
            _ if !record.outcome.is_ok() => lines.push(head()),
            _ if record.purpose != Purpose::Sample => {}
            Some(measurement) if !measurement.iterations.is_empty() => {
                let iterations = measurement.iterations.iter().enumerate();
                lines.extend(
                    iterations.map(|(place, iteration)| {
                        sample_line(head(), measurement, place, iteration)
                    }),
                );
            }
            _ => lines.push(head()),
        }
    }
    write(&lines)
}

fn head(analysis: &Analysis, record: &Record) -> SampleLine {
    SampleLine {
        cell: plain(&record.cell),
        purpose: match record.purpose {
            Purpose::Control => "control",
            Purpose::Calibration => "calibration",
            Purpose::Check => "check",
            Purpose::Sample => "sample",
        },
        workload: plain(&record.workload),
        threads: record.threads,
        allocator: plain(&record.allocator),
        block: record.block,
        position: record.position,
        seed: record.seed,
        started: plain(&record.started),
        outcome: record.outcome.word(),
        detail: plain(&detail(&record.outcome)),
        row_outcome: row_outcome(analysis, record),
        ..SampleLine::default()
    }
}

/// Empty for a record that belongs to no row.
fn row_outcome(analysis: &Analysis, record: &Record) -> String {
    let case = analysis
        .cases
        .iter()
        .find(|c| (&c.workload, c.threads) == (&record.workload, record.threads));
    let row = case.and_then(|case| {
        case.rows
            .iter()
            .find(|row| row.allocator == record.allocator)
    });
    row.map(|row| outcome(row).to_owned()).unwrap_or_default()
}

fn sample_line(
    head: SampleLine,
    measurement: &Measurement,
    place: usize,
    iteration: &Iteration,
) -> SampleLine {
    SampleLine {
        iteration: Some(place),
        cold: Some(iteration.cold),
        wall_ns: Some(iteration.wall_ns),
        purge_ns: Some(iteration.purge_ns),
        user_ns: Some(iteration.user_ns),
        sys_ns: Some(iteration.sys_ns),
        minor_faults: Some(iteration.minor_faults),
        ops: Some(iteration.ops),
        baseline_rss_bytes: Some(measurement.baseline_rss_bytes),
        peak_rss_bytes: Some(measurement.peak_rss_bytes),
        requested_peak_bytes: Some(measurement.requested_peak_bytes),
        purge: plain(&measurement.purge),
        ..head
    }
}

/// A line of the table export.
#[derive(Default, Serialize)]
struct RowLine {
    workload: String,
    threads: u32,
    oversubscribed: bool,
    counts_purge: bool,
    allocator: String,
    tier: String,
    role: &'static str,
    outcome: &'static str,
    detail: String,
    leaves: String,
    purge: &'static str,
    samples: Option<usize>,
    unusable_samples: Option<usize>,
    planned_blocks: u32,
    ns_per_op: Option<f64>,
    ns_per_op_min: Option<f64>,
    ns_per_op_max: Option<f64>,
    ns_per_op_without_purge: Option<f64>,
    purge_share: Option<f64>,
    mops_per_s: Option<f64>,
    mops_per_s_min: Option<f64>,
    mops_per_s_max: Option<f64>,
    cpu_ns_per_op: Option<f64>,
    cpu_ns_per_op_min: Option<f64>,
    cpu_ns_per_op_max: Option<f64>,
    ratio: Option<f64>,
    ratio_low: Option<f64>,
    ratio_high: Option<f64>,
    ratio_pairs: Option<usize>,
    cpu_ratio: Option<f64>,
    cpu_ratio_low: Option<f64>,
    cpu_ratio_high: Option<f64>,
    cpu_ratio_pairs: Option<usize>,
    peak_rss_bytes: Option<f64>,
    overhead: Option<f64>,
    floor_share: Option<f64>,
    figures: String,
}

/// The rows of all tables. Medians, unless a name says otherwise; figures as `name=value`, parted by semicolons.
pub fn rows(analysis: &Analysis) -> String {
    let of_case = |case| rows_of(case, analysis.planned_blocks);
    write(&analysis.cases.iter().flat_map(of_case).collect::<Vec<_>>())
}

fn rows_of(case: &Case, planned_blocks: u32) -> Vec<RowLine> {
    case.rows
        .iter()
        .map(|row| row_line(case, row, planned_blocks))
        .collect()
}

fn row_line(case: &Case, row: &Row, planned_blocks: u32) -> RowLine {
    let head = RowLine {
        workload: plain(&case.workload),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        counts_purge: case.counts_purge,
        allocator: plain(&row.allocator),
        tier: plain(&row.tier),
        role: match row.role {
            Role::Baseline => "baseline",
            Role::Candidate => "candidate",
            Role::Floor => "floor",
        },
        outcome: outcome(row),
        detail: match &row.state {
            State::Failed(failed) => plain(&failed.summary()),
            State::Measured(_) | State::Missing { .. } => String::new(),
        },
        leaves: plain(&row.leaves.join(" ")),
        purge: match row.purge {
            Purge::Unknown => "unknown",
            Purge::None => "none",
            Purge::Configured => "configured",
            Purge::Called => "called",
        },
        samples: matches!(row.state, State::Missing { .. }).then_some(0),
        unusable_samples: match row.state {
            State::Missing { unusable } => Some(unusable),
            State::Measured(_) | State::Failed(_) => None,
        },
        planned_blocks,
        ..RowLine::default()
    };
    let Some(numbers) = row.numbers() else {
        return head;
    };
    let low = |ratio: &Option<Ratio>| Some(ratio.as_ref()?.interval?.0);
    let high = |ratio: &Option<Ratio>| Some(ratio.as_ref()?.interval?.1);
    let figures: Vec<String> = numbers
        .figures
        .iter()
        .map(|(name, value)| format!("{}={value}", plain(name)))
        .collect();
    RowLine {
        samples: Some(numbers.samples),
        unusable_samples: Some(numbers.unusable),
        ns_per_op: Some(numbers.ns_per_op.median),
        ns_per_op_min: Some(numbers.ns_per_op.min),
        ns_per_op_max: Some(numbers.ns_per_op.max),
        ns_per_op_without_purge: numbers.ns_per_op_without_purge,
        purge_share: numbers.purge_share,
        mops_per_s: Some(numbers.mops_per_s.median),
        mops_per_s_min: Some(numbers.mops_per_s.min),
        mops_per_s_max: Some(numbers.mops_per_s.max),
        cpu_ns_per_op: numbers.cpu_ns_per_op.map(|spread| spread.median),
        cpu_ns_per_op_min: numbers.cpu_ns_per_op.map(|spread| spread.min),
        cpu_ns_per_op_max: numbers.cpu_ns_per_op.map(|spread| spread.max),
        ratio: numbers.ratio.map(|ratio| ratio.ratio),
        ratio_low: low(&numbers.ratio),
        ratio_high: high(&numbers.ratio),
        ratio_pairs: numbers.ratio.map(|ratio| ratio.pairs),
        cpu_ratio: numbers.cpu_ratio.map(|ratio| ratio.ratio),
        cpu_ratio_low: low(&numbers.cpu_ratio),
        cpu_ratio_high: high(&numbers.cpu_ratio),
        cpu_ratio_pairs: numbers.cpu_ratio.map(|ratio| ratio.pairs),
        peak_rss_bytes: numbers.memory.map(|memory| memory.peak_rss_bytes),
        overhead: numbers.memory.and_then(|memory| memory.overhead),
        floor_share: numbers.floor_share,
        figures: figures.join(";"),
        ..head
    }
}

/// `ok`, the word of the first failure, or `missing`.
fn outcome(row: &Row) -> &'static str {
    match &row.state {
        State::Measured(_) => "ok",
        State::Failed(failed) => failed.word(),
        State::Missing { .. } => "missing",
    }
}

/// The header comes from the fields; of an empty list only nothing can be written.
fn write(lines: &[impl Serialize]) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer
            .serialize(line)
            .expect("memory takes any line of plain fields");
    }
    let bytes = writer.into_inner().expect("memory needs no flushing");
    String::from_utf8(bytes).expect("every field is UTF-8")
}
