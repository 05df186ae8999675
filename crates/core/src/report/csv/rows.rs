//! The derived export: the rows of all tables.

use super::{CsvColumns, outcome, write};
use crate::analyse::{Analysis, Failed, Table, TableRow, Verdict};
use crate::report::text::join;
use serde_json::{Value, json};

const COLUMNS: CsvColumns = &[
    ("workload", "/workload"),
    ("threads", "/threads"),
    ("oversubscribed", "/oversubscribed"),
    ("counts_purge", "/counts_purge"),
    ("allocator", "/allocator"),
    ("tier", "/tier"),
    ("role", "/role"),
    ("outcome", "/outcome"),
    ("detail", "/detail"),
    ("left_to_libc", "/left_to_libc"),
    ("findings", "/findings"),
    ("purge", "/purge"),
    ("blocks", "/blocks"),
    ("samples", "/samples"),
    ("unusable_samples", "/unusable_samples"),
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
    ("floor_share", "/floor_share"),
    ("net_ns_per_op", "/net_ns_per_op"),
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

fn line(case: &Table, row: &TableRow, planned_blocks: u32) -> Value {
    // Counts are empty in a row that failed, or that has no numbers.
    let of_ended = |count: usize| row.failed.is_none().then_some(count);
    let of_measured = |count: usize| row.has_run().then_some(count);
    let stalled = row.stalled.as_ref();
    let cells = row.cells.iter();
    let verdict = |key: &str| row.verdict(key).map(Verdict::word);
    json!({
        "workload": case.workload,
        "threads": case.threads,
        "oversubscribed": case.oversubscribed,
        "counts_purge": case.counts_purge,
        "allocator": row.allocator,
        "tier": row.tier,
        "role": row.role,
        "outcome": outcome(row),
        "detail": row.failed.as_ref().map(Failed::summary),
        "left_to_libc": row.left_to_libc.join(" "),
        "findings": row.findings.join("; "),
        "purge": row.purge,
        "blocks": of_measured(row.blocks),
        "samples": of_ended(row.samples),
        "unusable_samples": of_ended(row.unusable),
        "cells": Value::Object(cells.map(|cell| (cell.metric.key.to_owned(), json!(cell))).collect()),
        "stalled_samples": of_measured(stalled.map_or(0, |stalled| stalled.samples)),
        "stalled_by": stalled.map(|stalled| join(&stalled.by, ";")),
        "planned_blocks": planned_blocks,
        "floor_share": row.floor_share,
        "net_ns_per_op": row.net_ns_per_op,
        "verdict": verdict("ns_per_op"),
        "cpu_verdict": verdict("cpu_ns_per_op"),
        "modes": row.modes.map(|m| {
            format!("{} ({});{} ({})", m.low, m.low_count, m.high, m.high_count)
        }),
        "figures": join(row.figures.iter().map(|(name, value)| format!("{name}={value}")), ";"),
    })
}
