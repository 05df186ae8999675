//! The input of github-action-benchmark for custom tools. It has one direction per file, so times
//! and memory are in one and rates in the other.

use super::{ExportedRow, Foreign, told};
use crate::analyse::{Analysis, Spread};
use crate::report::text::count;
use crate::report::units::digits;
use serde::Serialize;

/// It compares entries of the same name, so the name includes the figure.
#[derive(Serialize)]
struct Figure {
    name: String,
    unit: &'static str,
    value: f64,
    /// Shown behind the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<String>,
    /// Shown as a tooltip.
    extra: String,
}

/// For `tool: customSmallerIsBetter`.
pub fn smaller_is_better(analysis: &Analysis) -> Foreign {
    list(analysis, |entry| {
        let numbers = entry.numbers;
        let mut figures = vec![spread(entry, "time", "ns/op", numbers.ns_per_op, 1.0)];
        figures.extend(
            numbers
                .cpu_ns_per_op
                .map(|cpu| spread(entry, "CPU time", "ns/op", cpu, 1.0)),
        );
        figures.extend(
            numbers
                .memory
                .map(|memory| figure(entry, "peak RSS", "bytes", memory.peak_rss_bytes)),
        );
        figures
    })
}

/// For `tool: customBiggerIsBetter`.
pub fn bigger_is_better(analysis: &Analysis) -> Foreign {
    list(analysis, |entry| {
        vec![spread(
            entry,
            "throughput",
            "ops/s",
            entry.numbers.mops_per_s,
            1e6,
        )]
    })
}

fn list(analysis: &Analysis, figures: impl Fn(&ExportedRow) -> Vec<Figure>) -> Foreign {
    told(analysis, |entry| Some(figures(entry)))
        .file(|rows| rows.into_iter().flatten().collect::<Vec<_>>())
}

fn figure(entry: &ExportedRow, what: &str, unit: &'static str, value: f64) -> Figure {
    let extra = format!("median of {}", count(entry.numbers.samples, "process"));
    Figure {
        name: format!("{}: {what}", entry.name),
        unit,
        value,
        range: None,
        extra,
    }
}

fn spread(
    entry: &ExportedRow,
    what: &str,
    unit: &'static str,
    spread: Spread,
    size: f64,
) -> Figure {
    let range = format!(
        "{} to {}",
        digits(spread.min * size),
        digits(spread.max * size)
    );
    Figure {
        range: Some(range),
        ..figure(entry, what, unit, spread.median * size)
    }
}
