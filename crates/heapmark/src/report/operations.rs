//! The columns of a case whose operations are counted.

use super::sheet::{Spare, TableColumns, cpu_ratio, user_ratio, verdict};
use super::{factor, text, units};
use crate::analyse::{Analysis, Case, Numbers, Role, Row, Verdict};

/// Columns of a workload that serves requests.
const REQUESTS: [(&str, &str, Spare); 7] = [
    ("cold", "cold_request_ns", Spare::Stays),
    ("warm", "warm_request_ns", Spare::Stays),
    ("p50", "open_p50_ns", Spare::Late),
    ("p99", JUDGED_LATENCY, Spare::Stays),
    ("p99.9", "open_p99_9_ns", Spare::Stays),
    ("max", "open_max_ns", Spare::Early),
    ("p99.9 closed", "closed_p99_9_ns", Spare::Stays),
];
/// What rows are judged by, beside their time.
const JUDGED_LATENCY: &str = "open_p99_ns";

/// Whether a row has latencies of requests that are due, which are the answer then.
pub fn any_latency(analysis: &Analysis) -> bool {
    let mut numbers = analysis.rows().filter_map(Row::numbers);
    numbers.any(|numbers| numbers.cell(JUDGED_LATENCY).is_some())
}

/// `; p50 480 ns, p99 3.20 us`: those that a row without columns has.
pub fn latencies(numbers: &Numbers) -> String {
    let told = REQUESTS.iter().filter_map(|(title, key, _)| {
        let ns = numbers.figures.get(*key)?;
        Some(format!("{title} {}", units::duration(*ns)))
    });
    text::enclosed("; ", &text::list(told), "")
}

/// `A/A: the copy's p99 is 1.02 of glibc's`, and whether that is called a difference.
pub fn copy_latency(case: &Case) -> Option<String> {
    let copy = case.rows.iter().find(|row| row.role == Role::AaCopy)?;
    let cell = copy.numbers()?.cell(JUDGED_LATENCY)?;
    let ratio = units::digits(cell.ratio?.ratio);
    let differs = match cell.verdict {
        None | Some(Verdict::Same | Verdict::Unclear { .. }) => "",
        _ => ": different, so nothing is claimed by it here",
    };
    Some(format!(
        "A/A: the copy's p99 is {ratio} of {}'s{differs}",
        case.baseline
    ))
}

pub fn columns(table: &mut TableColumns<'_>, case: &Case) {
    if case.paced {
        return held(table);
    }
    let smallest = |value: fn(&Numbers) -> f64| {
        table
            .rows
            .iter()
            .map(|(_, n)| value(n))
            .fold(f64::INFINITY, f64::min)
    };
    let time = units::time(smallest(|n| n.time.spread.median));
    let rate = units::rate(smallest(|n| n.rate().median));
    table.column(time.name, |_, n| time.digits(n.time.spread.median));
    table
        .column(rate.name, |_, n| rate.digits(n.rate().median))
        .spare = Spare::Early;
    if table.rows.iter().any(|(_, n)| n.time.ratio.is_some()) {
        table.judged(&case.baseline);
        factor::columns(table, case);
        table.column("CPU", cpu_ratio);
        table
            .words("by CPU", |_, n| verdict(n.verdict("cpu_ns_per_op")))
            .spare = Spare::Early;
        table.column("user", user_ratio).spare = Spare::Early;
    }
    for (title, key, spare) in REQUESTS {
        let of = |n: &Numbers| n.figures.get(key).copied();
        if table.rows.iter().any(|(_, n)| of(n).is_some()) {
            let time = |n: &Numbers| of(n).map_or("-".into(), units::duration);
            table.column(title, |_, n| time(n)).spare = spare;
        }
        if key == JUDGED_LATENCY && table.rows.iter().any(|(_, n)| n.verdict(key).is_some()) {
            table.words("by p99", |_, n| verdict(n.verdict(key))).spare = Spare::Early;
        }
    }
    held(table);
    if table.rows.iter().any(|(_, n)| n.floor_share.is_some()) {
        let share = |n: &Numbers| n.floor_share.map(units::percent);
        table
            .column("floor", |_, n| share(n).unwrap_or_default())
            .spare = Spare::Early;
        let parts = |n: &Numbers| {
            let parts = n.parts?;
            let all = [parts.harness_ns, parts.kernel_ns, parts.allocator_ns];
            Some(all.map(|ns| time.digits(ns)).join(" + "))
        };
        table
            .column("floor + kernel + rest", |_, n| parts(n).unwrap_or_default())
            .spare = Spare::Late;
    }
}

/// Memory, at its peak and over time.
fn held(table: &mut TableColumns<'_>) {
    table.memory();
    if table
        .rows
        .iter()
        .any(|(_, n)| n.cell("mean_footprint_bytes").is_some())
    {
        table.metric("mean footprint", "mean_footprint_bytes", units::bytes);
        table.metric("GiB*s", "gib_seconds", units::digits);
    }
}
