//! Throughput against memory: high rates with little memory.

use super::axes;
use super::scaling::{line_over_threads, rate};
use super::section::{Data, Plot, Section};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, PlacedRow};
use crate::analyse::{Memory, Table};
use crate::report::units;
use serde_json::json;

pub fn section(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(Table::times_operations);
    Section::of_views(
        "pareto",
        "Throughput and memory",
        "Right is faster, down is smaller: nothing beats an allocator that has no other to the right of it and below. One \
         marker per thread count, joined in their order. Overhead is memory held beyond what was asked for; where a workload \
         asks for too little to tell, the peak resident set stands instead.",
        views::by_workload(&cases, |cases, workload, data| {
            plot(legend, cases, workload, data)
        }),
    )
}

fn plot(legend: &SeriesLegend, cases: &[Placed], workload: &str, data: &mut Data) -> Option<Plot> {
    let mut points = views::ranked(cases);
    points.retain(|point| point.row.memory().is_some());
    let memories: Vec<Memory> = points
        .iter()
        .filter_map(|point| point.row.memory())
        .collect();
    for (point, memory) in points.iter().zip(&memories) {
        views::add_row(
            data,
            point.subject,
            point.case,
            json!({
                "mops_per_s": point.rate(),
                "overhead": memory.overhead,
                "peak_rss_bytes": memory.peak_rss_bytes,
            }),
        );
    }
    // Overhead and peak RSS cannot share one axis.
    let overheads = memories
        .iter()
        .all(|memory| memory.overhead.is_some_and(|overhead| overhead > 0.0));
    let height = |memory: &Memory| {
        memory
            .overhead
            .filter(|_| overheads)
            .unwrap_or(memory.peak_rss_bytes)
    };
    let heights: Vec<f64> = memories.iter().map(height).collect();
    let (word, y_axis): (fn(f64) -> String, _) = if overheads {
        (
            units::times,
            axes::values("overhead", &heights, units::times),
        )
    } else {
        (units::bytes, axes::sizes("peak RSS", &heights))
    };
    let lines = views::grouped(&points, |point| point.subject);
    let traces = lines.iter().map(|line| {
        line_over_threads(legend, line, |point| {
            let held = point.row.memory().as_ref().map_or(0.0, height);
            let words = format!("{}, {}", rate(point.rate()), word(held));
            (point.rate(), held, words)
        })
    });
    let rates: Vec<f64> = points.iter().map(PlacedRow::rate).collect();
    let x_axis = axes::values("operations per second", &rates, rate);
    (lines.len() > 1).then(|| Plot::new(workload, traces.collect(), x_axis, y_axis))
}
