//! The derived export of a run that timed single calls.

use super::{CsvColumns, write};
use crate::analyse::{Analysis, Called, LatencyCase, LatencyRow};
use crate::report::text::join;
use serde_json::{Value, json};

const COLUMNS: CsvColumns = &[
    ("workload", "/workload"),
    ("threads", "/threads"),
    ("oversubscribed", "/oversubscribed"),
    ("allocator", "/allocator"),
    ("tier", "/tier"),
    ("outcome", "/outcome"),
    ("detail", "/detail"),
    ("every", "/every"),
    ("clock", "/clock"),
    ("timer_least_ns", "/timer/least_ns"),
    ("timer_median_ns", "/timer/median_ns"),
    ("processes", "/processes"),
    ("function", "/called/function"),
    ("timed_calls", "/called/count"),
    ("p50_ns", "/called/p50_ns"),
    ("p90_ns", "/called/p90_ns"),
    ("p99_ns", "/called/p99_ns"),
    ("p99_9_ns", "/called/p99_9_ns"),
    ("p99_99_ns", "/called/p99_99_ns"),
    ("max_ns", "/called/longest/ns"),
    ("max_bytes", "/called/longest/bytes"),
    ("max_at_ns", "/called/longest/at_ns"),
    ("max_cell", "/called/longest_cell"),
];

/// One line per function of each row; one without numbers for a row that has none.
pub fn latency(analysis: &Analysis) -> String {
    let mut all = Vec::new();
    for case in &analysis.latency {
        all.extend(case.rows.iter().flat_map(|row| lines(case, row)));
    }
    write(COLUMNS, &all)
}

fn lines(case: &LatencyCase, row: &LatencyRow) -> Vec<Value> {
    let (outcome, processes) = match &row.failed {
        Some(failed) => (failed.word(), None),
        None if row.processes == 0 => ("missing", Some(0)),
        None => ("ok", Some(row.processes)),
    };
    let line = |called: Option<&Called>| {
        let timer = case.timer.as_ref().filter(|_| called.is_some());
        json!({
            "workload": case.workload,
            "threads": case.threads,
            "oversubscribed": case.oversubscribed,
            "allocator": row.allocator,
            "tier": row.tier,
            "outcome": outcome,
            "detail": row.failed.as_ref().map(|failed| failed.summary()),
            "every": case.every,
            "clock": timer.map(|timer| join(&timer.clocks, " ")),
            "timer": timer,
            "processes": processes,
            "called": called,
        })
    };
    if outcome == "ok" {
        row.functions
            .iter()
            .map(|called| line(Some(called)))
            .collect()
    } else {
        vec![line(None)]
    }
}
