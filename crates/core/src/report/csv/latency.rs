//! The derived export of a run that timed single calls.

use super::{CsvColumns, write};
use crate::analyse::{Analysis, LongestCall, Table, TableRow};
use crate::report::text::join;
use serde_json::{Value, json};

const COLUMNS: CsvColumns = &[
    ("workload", "/workload"),
    ("threads", "/threads"),
    ("oversubscribed", "/oversubscribed"),
    ("allocator", "/row/allocator"),
    ("tier", "/row/tier"),
    ("outcome", "/outcome"),
    ("detail", "/detail"),
    ("every", "/every"),
    ("clock", "/clock"),
    ("timer_least_ns", "/timer/least_ns"),
    ("timer_median_ns", "/timer/median_ns"),
    ("processes", "/processes"),
    ("function", "/longest/function"),
    ("timed_calls", "/longest/timed_calls"),
    ("p50_ns", "/p50_ns"),
    ("p90_ns", "/p90_ns"),
    ("p99_ns", "/p99_ns"),
    ("p99_9_ns", "/p99_9_ns"),
    ("p99_99_ns", "/p99_99_ns"),
    ("max_ns", "/longest/ns"),
    ("max_bytes", "/longest/bytes"),
    ("max_at_ns", "/longest/at_ns"),
    ("max_cell", "/longest/cell"),
];

/// One line per function of each row; a row without numbers has a single line.
pub fn latency(analysis: &Analysis) -> String {
    let mut all = Vec::new();
    for case in &analysis.latency {
        all.extend(case.rows.iter().flat_map(|row| lines(case, row)));
    }
    write(COLUMNS, &all)
}

fn lines(table: &Table, row: &TableRow) -> Vec<Value> {
    let (Some(timing), Some(calls)) = (&table.timing, &row.calls) else {
        return Vec::new();
    };
    let (outcome, processes) = match &row.failed {
        Some(failed) => (failed.word(), None),
        None if calls.processes == 0 => ("missing", Some(0)),
        None => ("ok", Some(calls.processes)),
    };
    let line = |longest: Option<&LongestCall>| {
        let timer = timing.timer.as_ref().filter(|_| longest.is_some());
        let mut line = json!({
            "workload": table.workload,
            "threads": table.threads,
            "oversubscribed": table.oversubscribed,
            "row": row,
            "outcome": outcome,
            "detail": row.failed.as_ref().map(|failed| failed.summary()),
            "every": timing.every,
            "clock": timer.map(|timer| join(&timer.clocks, " ")),
            "timer": timer,
            "processes": processes,
            "longest": longest,
        });
        let function = longest.map(|longest| longest.function.as_str());
        for cell in &row.cells {
            if Some(cell.label.as_str()) == function {
                line[cell.metric.key] = json!(cell.spread.median as u64);
            }
        }
        line
    };
    if outcome == "ok" {
        calls.longest.iter().map(|call| line(Some(call))).collect()
    } else {
        vec![line(None)]
    }
}
