//! The derived export: the rows of all tables.

use super::{outcome, write};
use crate::analyse::{Analysis, Case, Purge, Ratio, Role, Row, State, Verdict};
use crate::report::text::{join, plain};
use serde::Serialize;

/// A line of the table export.
#[derive(Default, Serialize)]
struct RowLine {
    workload: String,
    threads: u32,
    oversubscribed: bool,
    counts_purge: bool,
    allocator: String,
    tier: String,
    role: Option<Role>,
    outcome: &'static str,
    detail: String,
    left_to_libc: String,
    findings: String,
    purge: Option<Purge>,
    blocks: Option<usize>,
    samples: Option<usize>,
    unusable_samples: Option<usize>,
    stalled_samples: Option<usize>,
    stalled_by: String,
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
    memory_ratio: Option<f64>,
    memory_ratio_low: Option<f64>,
    memory_ratio_high: Option<f64>,
    mean_footprint_bytes: Option<f64>,
    gib_seconds: Option<f64>,
    floor_share: Option<f64>,
    net_ns_per_op: Option<f64>,
    verdict: &'static str,
    cpu_verdict: &'static str,
    modes: String,
    figures: String,
}

/// The rows of all tables. Medians, unless a name states otherwise; figures as `name=value`,
/// separated by semicolons.
pub fn rows(analysis: &Analysis) -> String {
    let mut lines = Vec::new();
    for case in &analysis.cases {
        let of_row = |row| line(case, row, analysis.planned_blocks);
        lines.extend(case.rows.iter().map(of_row));
    }
    write(&lines)
}

fn line(case: &Case, row: &Row, planned_blocks: u32) -> RowLine {
    let head = RowLine {
        workload: plain(&case.workload),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        counts_purge: case.counts_purge,
        allocator: plain(&row.allocator),
        tier: plain(&row.tier),
        role: Some(row.role),
        outcome: outcome(row),
        detail: match &row.state {
            State::Failed(failed) => plain(&failed.summary()),
            State::Measured(_) | State::Missing { .. } => String::new(),
        },
        left_to_libc: plain(&row.left_to_libc.join(" ")),
        findings: plain(&row.findings.join("; ")),
        purge: Some(row.purge),
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
    let low = |ratio: Option<Ratio>| Some(ratio?.interval?.0);
    let high = |ratio: Option<Ratio>| Some(ratio?.interval?.1);
    let stalled = numbers.stalled.as_ref();
    let figures: Vec<String> = numbers
        .figures
        .iter()
        .map(|(name, value)| format!("{}={value}", plain(name)))
        .collect();
    RowLine {
        blocks: Some(numbers.blocks),
        samples: Some(numbers.samples),
        unusable_samples: Some(numbers.unusable),
        stalled_samples: Some(stalled.map_or(0, |stalled| stalled.samples)),
        stalled_by: stalled.map_or_else(String::new, |stalled| join(&stalled.by, ";")),
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
        ratio_low: low(numbers.ratio),
        ratio_high: high(numbers.ratio),
        ratio_pairs: numbers.ratio.map(|ratio| ratio.pairs),
        cpu_ratio: numbers.cpu_ratio.map(|ratio| ratio.ratio),
        cpu_ratio_low: low(numbers.cpu_ratio),
        cpu_ratio_high: high(numbers.cpu_ratio),
        cpu_ratio_pairs: numbers.cpu_ratio.map(|ratio| ratio.pairs),
        peak_rss_bytes: numbers.memory.map(|memory| memory.peak_rss_bytes),
        overhead: numbers.memory.and_then(|memory| memory.overhead),
        memory_ratio: numbers.memory_ratio.map(|ratio| ratio.ratio),
        memory_ratio_low: low(numbers.memory_ratio),
        memory_ratio_high: high(numbers.memory_ratio),
        mean_footprint_bytes: numbers.mean_footprint.map(|mean| mean.bytes.median),
        gib_seconds: numbers.mean_footprint.map(|mean| mean.gib_seconds.median),
        floor_share: numbers.floor_share,
        net_ns_per_op: numbers.net_ns_per_op,
        verdict: numbers.verdict.map_or("", Verdict::word),
        cpu_verdict: numbers.cpu_verdict.map_or("", Verdict::word),
        modes: numbers
            .modes
            .map(|m| format!("{} ({});{} ({})", m.low, m.low_count, m.high, m.high_count))
            .unwrap_or_default(),
        figures: figures.join(";"),
        ..head
    }
}
