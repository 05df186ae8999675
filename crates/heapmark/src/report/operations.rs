//! The columns of a case whose operations are counted.

use super::sheet::{TableColumns, cpu_ratio, memory, memory_title, ratio, verdict};
use super::units;
use crate::analyse::{Case, MeanFootprint, Numbers};

pub(super) fn columns(table: &mut TableColumns<'_>, case: &Case) {
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
    let time = units::time(smallest(|n| n.ns_per_op.median));
    let rate = units::rate(smallest(|n| n.mops_per_s.median));
    table.column(time.name, |_, n| {
        units::digits(n.ns_per_op.median / time.size)
    });
    table.spare(rate.name, |_, n| {
        units::digits(n.mops_per_s.median / rate.size)
    });
    if table.rows.iter().any(|(_, n)| n.ratio.is_some()) {
        table.words(&format!("time / {} [95 %]", case.baseline), |row, n| {
            ratio(row, n.ratio.as_ref())
        });
        table.words("verdict", |_, n| verdict(n.verdict));
        table.column("CPU", |row, n| cpu_ratio(row, n.cpu_ratio.as_ref()));
        table.spare_words("by CPU", |_, n| verdict(n.cpu_verdict));
    }
    held(table);
    if table.rows.iter().any(|(_, n)| n.floor_share.is_some()) {
        table.spare("floor", |_, n| {
            n.floor_share.map(units::percent).unwrap_or_default()
        });
        table.spare("- floor", |_, n| {
            n.net_ns_per_op
                .map(|net| units::digits(net / time.size))
                .unwrap_or_default()
        });
        table.spare("x floor", |_, n| {
            n.floor_share
                .map(|share| units::times(1.0 / share))
                .unwrap_or_default()
        });
    }
}

/// Memory, at its peak and over time.
fn held(table: &mut TableColumns<'_>) {
    table.column(memory_title(&table.rows), |_, n| memory(n));
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
