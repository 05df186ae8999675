//! The derived export: the rows of all tables.

use super::{CsvColumns, outcome, write};
use crate::analyse::{Analysis, Case, Row, State, Verdict};
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
    ("ns_per_op", "/row/state/ns_per_op/median"),
    ("ns_per_op_min", "/row/state/ns_per_op/min"),
    ("ns_per_op_max", "/row/state/ns_per_op/max"),
    (
        "ns_per_op_without_purge",
        "/row/state/ns_per_op_without_purge",
    ),
    ("purge_share", "/row/state/purge_share"),
    ("mops_per_s", "/row/state/mops_per_s/median"),
    ("mops_per_s_min", "/row/state/mops_per_s/min"),
    ("mops_per_s_max", "/row/state/mops_per_s/max"),
    ("cpu_ns_per_op", "/row/state/cpu_ns_per_op/median"),
    ("cpu_ns_per_op_min", "/row/state/cpu_ns_per_op/min"),
    ("cpu_ns_per_op_max", "/row/state/cpu_ns_per_op/max"),
    ("ratio", "/row/state/ratio/ratio"),
    ("ratio_low", "/row/state/ratio/interval/0"),
    ("ratio_high", "/row/state/ratio/interval/1"),
    ("ratio_pairs", "/row/state/ratio/pairs"),
    ("cpu_ratio", "/row/state/cpu_ratio/ratio"),
    ("cpu_ratio_low", "/row/state/cpu_ratio/interval/0"),
    ("cpu_ratio_high", "/row/state/cpu_ratio/interval/1"),
    ("cpu_ratio_pairs", "/row/state/cpu_ratio/pairs"),
    ("peak_rss_bytes", "/row/state/memory/peak_rss_bytes"),
    ("overhead", "/row/state/memory/overhead"),
    ("memory_ratio", "/row/state/memory_ratio/ratio"),
    ("memory_ratio_low", "/row/state/memory_ratio/interval/0"),
    ("memory_ratio_high", "/row/state/memory_ratio/interval/1"),
    (
        "mean_footprint_bytes",
        "/row/state/mean_footprint/bytes/median",
    ),
    (
        "gib_seconds",
        "/row/state/mean_footprint/gib_seconds/median",
    ),
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
        let of_row = |row| line(case, row, analysis.planned_blocks);
        lines.extend(case.rows.iter().map(of_row));
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
        "stalled_samples": numbers.map(|_| stalled_samples),
        "stalled_by": stalled.map(|stalled| join(&stalled.by, ";")),
        "planned_blocks": planned_blocks,
        "verdict": numbers.and_then(|numbers| numbers.verdict).map(Verdict::word),
        "cpu_verdict": numbers.and_then(|numbers| numbers.cpu_verdict).map(Verdict::word),
        "modes": modes.map(|m| {
            format!("{} ({});{} ({})", m.low, m.low_count, m.high, m.high_count)
        }),
        "figures": join(figures.map(|(name, value)| format!("{name}={value}")), ";"),
    })
}
