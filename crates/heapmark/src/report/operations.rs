//! The columns of a case whose operations are counted.

use super::sheet::{Spare, TableColumns, cpu_ratio, user_ratio, verdict};
use super::{factor, units};
use crate::analyse::{Case, Numbers};

/// Columns of a workload that serves requests.
const REQUESTS: [(&str, &str); 2] = [("cold", "cold_request_ns"), ("warm", "warm_request_ns")];

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
    for (title, key) in REQUESTS {
        let of = |n: &Numbers| n.figures.get(key).copied();
        if table.rows.iter().any(|(_, n)| of(n).is_some()) {
            table.column(title, |_, n| of(n).map_or("-".into(), units::duration));
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
