//! What hardening costs: time and memory over the share of misuses that an allocator detects.

use super::section::{Data, Entry, Plot, Section, View};
use super::series_legend::{SeriesLegend, in_chart};
use super::views;
use super::{axes, figure};
use crate::analyse::HardeningCost;
use crate::report::hardening::{self, MEANING};
use crate::report::units;
use serde_json::json;

pub fn section(legend: &SeriesLegend) -> Section {
    let mut view = View {
        workload: None,
        plots: Vec::new(),
        data: Data::default(),
    };
    let mut tables = Vec::new();
    for (run, legend_run) in legend.runs.iter().enumerate() {
        let costs = legend_run.analysis.hardening_costs();
        for one in &costs {
            let (low, high) = one.interval.unzip();
            view.data.row(json!({
                "run": run + 1,
                "allocator": one.allocator,
                "detected": one.detected,
                "misuses": one.misuses,
                "time_ratio": one.time,
                "time_ratio_low": low,
                "time_ratio_high": high,
                "memory_ratio": one.memory,
            }));
        }
        let base = &legend_run.analysis.baseline;
        view.plots.extend(of_times(legend, run, base, &costs));
        view.plots.extend(of_memory(legend, run, base, &costs));
        let sheet = hardening::sheet(&legend_run.analysis).map(|mut sheet| {
            sheet.notes.clear();
            sheet.heading += &legend.suffix(run);
            sheet
        });
        tables.extend(sheet);
    }
    if view.plots.is_empty() {
        return Section::default();
    }
    let text = "Right is more that is detected, down is less time or memory. The line through a marker is its 95 % interval; the \
                line at 1 is the baseline.";
    Section {
        text: vec![text.into(), MEANING.into()],
        views: vec![view],
        ..Section::of_tables("hardening", "What hardening costs", tables)
    }
}

/// An allocator in a chart.
struct Point<'a> {
    one: &'a HardeningCost<'a>,
    ratio: f64,
    interval: Option<(f64, f64)>,
    words: String,
}

fn of_times(
    legend: &SeriesLegend,
    run: usize,
    baseline: &str,
    costs: &[HardeningCost],
) -> Option<Plot> {
    let points = costs.iter().map(|one| Point {
        one,
        ratio: one.time,
        interval: one.interval,
        words: hardening::time(one),
    });
    plot(legend, run, "time", baseline, points.collect())
}

fn of_memory(
    legend: &SeriesLegend,
    run: usize,
    baseline: &str,
    costs: &[HardeningCost],
) -> Option<Plot> {
    let points = costs.iter().filter_map(|one| {
        Some(Point {
            one,
            ratio: one.memory?,
            interval: None,
            words: hardening::memory(one),
        })
    });
    plot(legend, run, "memory", baseline, points.collect())
}

/// Returns a chart; `None` with fewer than two points, which compare nothing.
fn plot(
    legend: &SeriesLegend,
    run: usize,
    what: &str,
    baseline: &str,
    points: Vec<Point>,
) -> Option<Plot> {
    if points.len() < 2 {
        return None;
    }
    let mut shown = Vec::new();
    let mut traces = Vec::new();
    for point in points {
        let subject = Entry {
            run,
            name: point.one.allocator,
        };
        let label = legend.label(subject);
        let detected = units::percent(point.one.detected);
        let words = format!(
            "<b>{label}</b><br>{detected} detected<br>{what} / {}: {}",
            in_chart(baseline),
            point.words
        );
        let places = [(point.one.detected, point.ratio, words)];
        let mut drawn = views::scatter(&label, "markers", places);
        let (low, high) = point.interval.unwrap_or((point.ratio, point.ratio));
        shown.extend([low, point.ratio, high]);
        if let Some(ends) = point.interval {
            drawn["error_y"] = figure::intervals([(point.ratio, ends)]);
        }
        traces.push(legend.trace(subject, drawn));
    }
    let over = format!("{what} / {}", in_chart(baseline));
    let title = format!("{what} / {baseline}{}", legend.suffix(run));
    let plot = Plot::new(
        title,
        traces,
        axes::shares("misuses detected"),
        axes::ratios(&over, &shown),
    );
    Some(plot.with_line_at_one("y"))
}
