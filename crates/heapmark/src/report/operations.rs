//! The columns of a case whose operations are counted.

use super::sheet::{Spare, TableColumns, cpu_ratio, user_ratio, verdict};
use super::{factor, units};
use crate::analyse::{Case, Numbers};

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
