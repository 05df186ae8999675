//! The derived export of a run that timed single calls.

use super::write;
use crate::analyse::{Analysis, Called, LatencyCase, LatencyRow};
use crate::report::text::plain;
use serde::Serialize;

/// A function of a row, or a row without numbers.
#[derive(Default, Serialize)]
struct LatencyLine {
    workload: String,
    threads: u32,
    oversubscribed: bool,
    allocator: String,
    tier: String,
    outcome: &'static str,
    detail: String,
    every: u32,
    clock: String,
    timer_least_ns: Option<u64>,
    timer_median_ns: Option<f64>,
    processes: Option<usize>,
    function: String,
    timed_calls: Option<u64>,
    p50_ns: Option<u64>,
    p90_ns: Option<u64>,
    p99_ns: Option<u64>,
    p99_9_ns: Option<u64>,
    p99_99_ns: Option<u64>,
    max_ns: Option<u64>,
    max_bytes: Option<u64>,
    max_at_ns: Option<u64>,
    max_cell: String,
}

/// One line per function of each row; one without numbers for a row that has none.
pub fn latency(analysis: &Analysis) -> String {
    let mut all = Vec::new();
    for case in &analysis.latency {
        all.extend(case.rows.iter().flat_map(|row| lines(case, row)));
    }
    write(&all)
}

fn lines(case: &LatencyCase, row: &LatencyRow) -> Vec<LatencyLine> {
    let head = |outcome, detail, processes| LatencyLine {
        workload: plain(&case.workload),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        allocator: plain(&row.allocator),
        tier: plain(&row.tier),
        outcome,
        detail,
        every: case.every,
        processes,
        ..LatencyLine::default()
    };
    match &row.failed {
        Some(failed) => vec![head(failed.word(), plain(&failed.summary()), None)],
        None if row.processes == 0 => vec![head("missing", String::new(), Some(0))],
        None => row
            .functions
            .iter()
            .map(|called| line(head("ok", String::new(), Some(row.processes)), case, called))
            .collect(),
    }
}

fn line(head: LatencyLine, case: &LatencyCase, called: &Called) -> LatencyLine {
    let timer = case.timer.as_ref();
    let clocks = timer.into_iter().flat_map(|timer| &timer.clocks);
    let clocks: Vec<String> = clocks.map(|clock| plain(clock)).collect();
    LatencyLine {
        clock: clocks.join(" "),
        timer_least_ns: timer.map(|timer| timer.least_ns),
        timer_median_ns: timer.map(|timer| timer.median_ns),
        function: plain(&called.function),
        timed_calls: Some(called.count),
        p50_ns: called.p50_ns,
        p90_ns: called.p90_ns,
        p99_ns: called.p99_ns,
        p99_9_ns: called.p99_9_ns,
        p99_99_ns: called.p99_99_ns,
        max_ns: Some(called.longest.ns),
        max_bytes: called.longest.bytes,
        max_at_ns: Some(called.longest.at_ns),
        max_cell: plain(&called.longest_cell),
        ..head
    }
}
