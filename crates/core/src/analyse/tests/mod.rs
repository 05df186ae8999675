//! The analysis by values: artificial records in, rows and verdicts out.

mod calls;
mod factor;
mod footprint;
mod interference;
mod latency;
mod rows;
mod verdicts;
mod whole;

use super::fake_run::{FakeRun, crash, measurement, noise};
use super::*;
use crate::observe::interference::Interference;
use crate::store::{Purpose, Record};
use std::collections::BTreeMap;

fn row<'a>(analysis: &'a Analysis, allocator: &str) -> &'a TableRow {
    analysis.cases[0]
        .rows
        .iter()
        .find(|row| row.allocator == allocator)
        .unwrap()
}

fn numbers<'a>(analysis: &'a Analysis, allocator: &str) -> &'a TableRow {
    let row = row(analysis, allocator);
    assert!(row.has_run());
    row
}

fn run(lab: &FakeRun) -> Analysis {
    analyse(&lab.run, &lab.records)
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 1e-6
}

/// glibc at 20 ns, everything else at `ns`, with independent noise.
fn against_glibc(ns: f64) -> impl Fn(&str, &str, u32) -> f64 {
    move |workload, allocator, block| {
        let drift = 1.0 + 0.5 * f64::from(block % 4);
        drift
            * noise(&format!("{workload} {allocator}"), block)
            * if allocator == "glibc" { 20.0 } else { ns }
    }
}
