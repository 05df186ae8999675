//! The columns of a case whose operations are counted.

use super::sheet::{Spare, TableColumns, cpu_ratio, user_ratio, verdict};
use super::{aged, units};
use crate::analyse::{Case, MeanFootprint, Numbers};

/// Columns of a workload that serves requests.
const REQUESTS: [(&str, &str); 2] = [("cold", "cold_request_ns"), ("warm", "warm_request_ns")];

pub(super) fn columns(table: &mut TableColumns<'_>, case: &Case) {
    if case.paced {
        return held(table);
    }
    let smallest = |value: fn(&Numbers) -> f64| {
        let values = table.rows.iter().map(|(_, n)| value(n));
        values.fold(f64::INFINITY, f64::min)
    };
    let time = units::time(smallest(|n| n.ns_per_op.median));
    let rate = units::rate(smallest(|n| n.mops_per_s.median));
    table.column(time.name, |_, n| time.digits(n.ns_per_op.median));
    table
        .column(rate.name, |_, n| rate.digits(n.mops_per_s.median))
        .spare = Spare::Early;
    if table.rows.iter().any(|(_, n)| n.ratio.is_some()) {
        table.judged(&case.baseline);
        aged::columns(table);
        table.column("CPU", cpu_ratio);
        table.words("by CPU", |_, n| verdict(n.cpu_verdict)).spare = Spare::Early;
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
    if table.rows.iter().any(|(_, n)| n.mean_footprint.is_some()) {
        let told = |n: &Numbers, text: fn(MeanFootprint) -> String| {
            n.mean_footprint.map_or_else(|| "-".into(), text)
        };
        table.column("mean footprint", |_, n| {
            told(n, |mean| units::bytes(mean.bytes.median))
        });
        table.column("GiB*s", |_, n| {
            told(n, |mean| units::digits(mean.gib_seconds.median))
        });
    }
}
