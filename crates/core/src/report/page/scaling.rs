//! The effect of more threads.

use super::section::{Data, Plot, Section, Trace};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, PlacedRow};
use super::{axes, figure};
use crate::analyse::Table;
use crate::report::text::count;
use crate::report::units;
use serde_json::json;
use std::collections::BTreeSet;

/// The least number of thread counts for a curve: two points show no trend, and are in the matrix.
const LEAST_COUNTS: usize = 3;

pub fn section(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(Table::times_operations);
    Section::of_views(
        "scaling",
        "Scaling over threads",
        "Operations of all threads together, medians over processes; both scales are logarithmic. A line that rises as \
         steeply as the grey one doubles with the threads; one that is flat gains nothing; one that falls loses.",
        views::by_workload(&cases, |cases, workload, data| {
            plot(legend, cases, workload, data)
        }),
    )
}

fn plot(legend: &SeriesLegend, cases: &[Placed], workload: &str, data: &mut Data) -> Option<Plot> {
    let counts: BTreeSet<u32> = cases.iter().map(|(_, case)| case.threads).collect();
    let counts = Vec::from_iter(counts);
    if counts.len() < LEAST_COUNTS {
        return None;
    }
    let points = views::ranked(cases);
    for point in &points {
        let spread = point.row.rate();
        views::add_row(
            data,
            point.subject,
            point.case,
            json!({
                "mops_per_s": spread.median,
                "mops_per_s_min": spread.min,
                "mops_per_s_max": spread.max,
            }),
        );
    }
    let mut lines = views::grouped(&points, |point| point.subject);
    let rates: Vec<f64> = lines.iter().flatten().map(PlacedRow::rate).collect();
    let traces = lines
        .iter_mut()
        .map(|line| {
            line.sort_by_key(|point| point.case.threads);
            line_over_threads(legend, line, |point| {
                let spread = point.row.rate();
                let [median, low, high] = [spread.median, spread.min, spread.max].map(rate);
                let threads = f64::from(point.case.threads);
                (
                    threads,
                    spread.median,
                    format!("{median} ({low} to {high})"),
                )
            })
        })
        .chain(proportional(&counts, &rates))
        .collect();
    let y_axis = axes::logarithmic("operations per second", &rates, rate);
    (!rates.is_empty())
        .then(|| Plot::new(workload, traces, axes::counts("threads", &counts), y_axis))
}

/// The line of an allocator over thread counts. `point` gives a row's place and the words about it.
pub fn line_over_threads(
    legend: &SeriesLegend,
    line: &[PlacedRow],
    point: impl Fn(&PlacedRow) -> (f64, f64, String),
) -> Trace {
    let subject = line[0].subject;
    let label = legend.label(subject);
    let points = line.iter().map(|row| {
        let (x, y, words) = point(row);
        let threads = count(row.case.threads, "thread");
        (x, y, format!("<b>{label}</b>, {threads}<br>{words}"))
    });
    legend.trace(subject, views::scatter(&label, "lines+markers", points))
}

/// `48.1 Mops/s`, of millions of operations per second.
pub fn rate(mops: f64) -> String {
    units::rate(mops).text(mops)
}

/// A line that doubles with the threads, through the middle of the chart.
fn proportional(counts: &[u32], rates: &[f64]) -> Option<Trace> {
    let first = f64::from(*counts.first()?);
    let last = f64::from(*counts.last()?);
    let middle = rates.iter().map(|rate| rate.ln()).sum::<f64>() / rates.len() as f64;
    let of_one = middle.exp() / (first * last).sqrt();
    let heights = [of_one * first, of_one * last];
    let drawn = figure::scatter("in proportion", "lines", [first, last], heights);
    Some(Trace::new(None, 0, drawn))
}
