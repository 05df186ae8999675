//! The derived export: the rows of all tables.

use super::{CsvColumns, outcome, write};
use crate::analyse::{Analysis, Case, Numbers, Row, State, Verdict};
use crate::report::text::join;
use serde_json::{Value, json};

const COLUMNS: CsvColumns = &[
    ("workload", "/workload"),
    ("threads", "/threads"),
    ("oversubscribed", "/oversubscribed"),
    ("counts_purge", "/counts_purge"),
    ("allocator", "/row/allocator"),
    ("tier", "/row/tier"),
    ("role", "/row/role"),
    ("outcome", "/outcome"),
    ("detail", "/detail"),
    ("left_to_libc", "/left_to_libc"),
    ("findings", "/findings"),
    ("purge", "/row/purge"),
    ("blocks", "/row/state/blocks"),
    ("samples", "/samples"),
    ("unusable_samples", "/row/state/unusable"),
    ("stalled_samples", "/stalled_samples"),
    ("stalled_by", "/stalled_by"),
    ("planned_blocks", "/planned_blocks"),
    ("ns_per_op", "/cells/ns_per_op/spread/median"),
    ("ns_per_op_min", "/cells/ns_per_op/spread/min"),
    ("ns_per_op_max", "/cells/ns_per_op/spread/max"),
    (
        "ns_per_op_without_purge",
        "/cells/ns_per_op_without_purge/spread/median",
    ),
    ("purge_share", "/cells/purge_share/spread/median"),
    ("mops_per_s", "/cells/mops_per_s/spread/median"),
    ("mops_per_s_min", "/cells/mops_per_s/spread/min"),
    ("mops_per_s_max", "/cells/mops_per_s/spread/max"),
    ("cpu_ns_per_op", "/cells/cpu_ns_per_op/spread/median"),
    ("cpu_ns_per_op_min", "/cells/cpu_ns_per_op/spread/min"),
    ("cpu_ns_per_op_max", "/cells/cpu_ns_per_op/spread/max"),
    ("ratio", "/cells/ns_per_op/ratio/ratio"),
    ("ratio_low", "/cells/ns_per_op/ratio/interval/0"),
    ("ratio_high", "/cells/ns_per_op/ratio/interval/1"),
    ("ratio_pairs", "/cells/ns_per_op/ratio/pairs"),
    ("cpu_ratio", "/cells/cpu_ns_per_op/ratio/ratio"),
    ("cpu_ratio_low", "/cells/cpu_ns_per_op/ratio/interval/0"),
    ("cpu_ratio_high", "/cells/cpu_ns_per_op/ratio/interval/1"),
    ("cpu_ratio_pairs", "/cells/cpu_ns_per_op/ratio/pairs"),
    ("peak_rss_bytes", "/cells/peak_rss_bytes/spread/median"),
    ("overhead", "/cells/overhead/spread/median"),
    ("memory_ratio", "/cells/grown_bytes/ratio/ratio"),
    ("memory_ratio_low", "/cells/grown_bytes/ratio/interval/0"),
    ("memory_ratio_high", "/cells/grown_bytes/ratio/interval/1"),
    (
        "mean_footprint_bytes",
        "/cells/mean_footprint_bytes/spread/median",
    ),
    ("gib_seconds", "/cells/gib_seconds/spread/median"),
    ("floor_share", "/row/state/floor_share"),
    ("net_ns_per_op", "/row/state/net_ns_per_op"),
    ("verdict", "/verdict"),
    ("cpu_verdict", "/cpu_verdict"),
    ("modes", "/modes"),
    ("figures", "/figures"),
];

/// The rows of all tables. Medians, unless a name states otherwise; figures as `name=value`,
/// separated by semicolons.
pub fn rows(analysis: &Analysis) -> String {
    let mut lines = Vec::new();
    for case in &analysis.cases {
        lines.extend(
            case.rows
                .iter()
                .map(|row| line(case, row, analysis.planned_blocks)),
        );
    }
    write(COLUMNS, &lines)
}

fn line(case: &Case, row: &Row, planned_blocks: u32) -> Value {
    let numbers = row.numbers();
    let (samples, detail) = match &row.state {
        State::Measured(numbers) => (Some(numbers.samples), None),
        State::Failed(failed) => (None, Some(failed.summary())),
        State::Missing { .. } => (Some(0), None),
    };
    let stalled = numbers.and_then(|numbers| numbers.stalled.as_ref());
    let stalled_samples = stalled.map_or(0, |stalled| stalled.samples);
    let modes = numbers.and_then(|numbers| numbers.modes);
    let cells = numbers.into_iter().flat_map(Numbers::all);
    let verdict = |key: &str| numbers?.verdict(key).map(Verdict::word);
    let figures = numbers.into_iter().flat_map(|numbers| &numbers.figures);
    json!({
        "workload": case.workload,
        "threads": case.threads,
        "oversubscribed": case.oversubscribed,
        "counts_purge": case.counts_purge,
        "row": row,
        "outcome": outcome(row),
        "detail": detail,
        "left_to_libc": row.left_to_libc.join(" "),
        "findings": row.findings.join("; "),
        "samples": samples,
        "cells": Value::Object(cells.map(|cell| (cell.metric.key.to_owned(), json!(cell))).collect()),
        "stalled_samples": numbers.map(|_| stalled_samples),
        "stalled_by": stalled.map(|stalled| join(&stalled.by, ";")),
        "planned_blocks": planned_blocks,
        "verdict": verdict("ns_per_op"),
        "cpu_verdict": verdict("cpu_ns_per_op"),
        "modes": modes.map(|m| {
            format!("{} ({});{} ({})", m.low, m.low_count, m.high, m.high_count)
        }),
        "figures": join(figures.map(|(name, value)| format!("{name}={value}")), ";"),
    })
}
