//! Throughput against memory: high rates with little memory.

use super::axes;
use super::section::{Data, Plot, Section};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, PlacedRow};
use crate::analyse::{Case, Memory};
use crate::report::text::{count, plain};
use crate::report::units;
use plotly::common::Mode;

const COLUMNS: [&str; 7] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "mops_per_s",
    "overhead",
    "peak_rss_bytes",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(Case::times_operations);
    Section::of_views(
        "pareto",
        "Throughput and memory",
        "Right is faster, down is smaller: nothing beats an allocator that has no other to the right of it and below. One \
         marker per thread count, joined in their order. Overhead is memory held beyond what was asked for; where a workload \
         asks for too little to tell, the peak resident set stands instead.",
        views::by_workload(&cases, &COLUMNS, |cases, data| plot(legend, cases, data)),
    )
}

fn plot(legend: &SeriesLegend, cases: &[Placed<Case>], data: &mut Data) -> Option<Plot> {
    let mut points: Vec<(PlacedRow, Memory)> = Vec::new();
    for point in views::ranked(cases) {
        let Some(memory) = point.numbers.memory else {
            continue;
        };
        data.row((
            point.run + 1,
            plain(&point.case.workload),
            point.case.threads,
            plain(&point.row.allocator),
            point.numbers.mops_per_s.median,
            memory.overhead,
            memory.peak_rss_bytes,
        ));
        points.push((point, memory));
    }
    // Both measures cannot share one axis.
    let overheads = points
        .iter()
        .all(|(_, memory)| memory.overhead.is_some_and(|overhead| overhead > 0.0));
    let height = |memory: &Memory| {
        let overhead = memory.overhead.filter(|_| overheads);
        overhead.unwrap_or(memory.peak_rss_bytes)
    };
    let rates: Vec<f64> = points
        .iter()
        .map(|(point, _)| point.numbers.mops_per_s.median)
        .collect();
    let heights: Vec<f64> = points.iter().map(|(_, memory)| height(memory)).collect();
    let word: fn(f64) -> String = if overheads {
        units::times
    } else {
        units::bytes
    };
    let y_axis = if overheads {
        axes::values("overhead", &heights, word)
    } else {
        axes::sizes("peak RSS", &heights)
    };
    let lines = views::grouped(&points, |(point, _)| (point.run, &point.row.allocator));
    let traces = lines.iter().map(|line| {
        let (PlacedRow { run, row, .. }, _) = line[0];
        let label = legend.label(run, &row.allocator);
        let points = line.iter().map(|(point, memory)| {
            let (ops, held) = (point.numbers.mops_per_s.median, height(memory));
            let threads = count(point.case.threads as usize, "thread");
            let words = format!("<b>{label}</b>, {threads}<br>{}, {}", rate(ops), word(held));
            (ops, held, words)
        });
        let drawn = views::scatter(&label, Mode::LinesMarkers, points);
        legend.trace(run, &row.allocator, drawn)
    });
    let x_axis = axes::values("operations per second", &rates, rate);
    let title = plain(&cases[0].1.workload);
    (lines.len() > 1).then(|| Plot::new(title, traces.collect(), x_axis, y_axis))
}

/// `48.1 Mops/s`, of millions of operations per second.
pub(super) fn rate(mops: f64) -> String {
    let unit = units::rate(mops);
    format!("{} {}", units::digits(mops / unit.size), unit.name)
}
