//! The effect of more threads.

use super::axes;
use super::pareto::rate;
use super::section::{Data, Plot, Section, Trace};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, PlacedRow};
use crate::analyse::Case;
use crate::report::text::{count, plain};
use plotly::Scatter;
use plotly::common::{HoverInfo, Mode};
use std::collections::BTreeSet;

const COLUMNS: [&str; 7] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "mops_per_s",
    "mops_per_s_min",
    "mops_per_s_max",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(Case::times_operations);
    Section::of_views(
        "scaling",
        "Scaling over threads",
        "Operations of all threads together, medians over processes; both scales are logarithmic. A line that rises as \
         steeply as the grey one doubles with the threads; one that is flat gains nothing; one that falls loses.",
        views::by_workload(&cases, &COLUMNS, |cases, data| plot(legend, cases, data)),
    )
}

fn plot(legend: &SeriesLegend, cases: &[Placed<Case>], data: &mut Data) -> Option<Plot> {
    let counts: BTreeSet<u32> = cases.iter().map(|(_, case)| case.threads).collect();
    let counts = Vec::from_iter(counts);
    if counts.len() < 2 {
        return None;
    }
    let points = views::ranked(cases);
    for PlacedRow {
        run,
        case,
        row,
        numbers,
    } in &points
    {
        data.row((
            run + 1,
            plain(&case.workload),
            case.threads,
            plain(&row.allocator),
            numbers.mops_per_s.median,
            numbers.mops_per_s.min,
            numbers.mops_per_s.max,
        ));
    }
    let lines = views::grouped(&points, |point| (point.run, &point.row.allocator));
    let rates: Vec<f64> = lines
        .iter()
        .flatten()
        .map(|point| point.numbers.mops_per_s.median)
        .collect();
    let mut traces: Vec<Trace> = lines.into_iter().map(|line| trace(legend, line)).collect();
    traces.extend(proportional(&counts, &rates));
    let y_axis = axes::logarithmic("operations per second", &rates, rate);
    let title = plain(&cases[0].1.workload);
    (!points.is_empty()).then(|| Plot::new(title, traces, axes::threads(&counts), y_axis))
}

/// An allocator of a run over thread counts.
fn trace(legend: &SeriesLegend, mut line: Vec<PlacedRow>) -> Trace {
    line.sort_by_key(|point| point.case.threads);
    let PlacedRow { run, row, .. } = line[0];
    let label = legend.label(run, &row.allocator);
    let points = line.iter().map(|point| {
        let (spread, threads) = (point.numbers.mops_per_s, point.case.threads);
        let words = format!(
            "<b>{label}</b>, {}<br>{} ({} to {})",
            count(threads as usize, "thread"),
            rate(spread.median),
            rate(spread.min),
            rate(spread.max)
        );
        (f64::from(threads), spread.median, words)
    });
    let drawn = views::scatter(&label, Mode::LinesMarkers, points);
    legend.trace(run, &row.allocator, drawn)
}

/// A line that doubles with the threads, through the middle of the chart.
fn proportional(counts: &[u32], rates: &[f64]) -> Option<Trace> {
    let (first, last) = (f64::from(*counts.first()?), f64::from(*counts.last()?));
    let middle = rates.iter().map(|rate| rate.ln()).sum::<f64>() / rates.len() as f64;
    let of_one = middle.exp() / (first * last).sqrt();
    let drawn = Scatter::new(vec![first, last], vec![of_one * first, of_one * last])
        .name("in proportion")
        .mode(Mode::Lines)
        .hover_info(HoverInfo::Skip);
    Some(Trace {
        entry: None,
        run: 0,
        drawn,
    })
}
