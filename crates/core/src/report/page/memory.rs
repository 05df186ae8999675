//! Memory over time: held bytes beside requested bytes.

use super::downsample::{short, thin};
use super::section::{Entry, Plot, Section, Trace, View};
use super::series_legend::SeriesLegend;
use super::shapes;
use super::views::{self, Placed, PlacedRow};
use super::{axes, figure};
use crate::analyse::TableRow;
use crate::report::units;
use crate::store::{Point, Series};
use serde_json::{Value, json};

/// The most points of a curve in the chart.
const MOST_POINTS: usize = 400;

pub fn section(legend: &SeriesLegend) -> Section {
    let timed = legend.cases(|_| true);
    let mut followed = legend.all(|run| &run.analysis.footprints);
    followed.retain(|(_, case)| !shapes::has_lines(case));
    // The A/A copy and the floor get the same requests, and would only cover the other curves.
    let mut views = of_cases(legend, &timed, |row| !row.role.is_companion());
    let has_peak = |row: &TableRow| row.cell("peak_demand_bytes").is_some();
    views.extend(of_cases(legend, &followed, has_peak));
    Section::of_views(
        "memory",
        "Memory over time",
        "Resident set of one process of each allocator; the grey line is what the program had requested and not yet freed. Along \
             time it is that of one process, which it names: other allocators reach the same requests sooner or later. The \
             distance of a curve from the line of its own process is what the allocator holds for itself, and what the process has \
             besides: its program, and tables of the harness. Replays in strict order are drawn along what was allocated, since their \
             time means nothing. Points may be thinned, peaks stay; series/ in the run's \
             directory has them all, and other measures of memory.",
        views,
    )
}

fn of_cases(
    legend: &SeriesLegend,
    cases: &[Placed],
    is_drawn: impl Fn(&TableRow) -> bool,
) -> Vec<View> {
    views::by_threads(cases, |cases, heading, data| {
        let mut curves = Vec::new();
        for PlacedRow { subject, case, row } in views::rows(cases) {
            let run = legend.runs[subject.run].run;
            let series = run.series_of(case, subject.name);
            if let Some(series) = series.filter(|_| is_drawn(row)) {
                views::add_row(data, subject, case, peaks(series));
                curves.push((subject, series));
            }
        }
        plot(legend, heading, &curves)
    })
}

fn peaks(series: &Series) -> Value {
    let most = |value: fn(&Point) -> Option<u64>| series.points.iter().filter_map(value).max();
    json!({
        "process": series.cell,
        "points": series.points.len(),
        "peak_rss_bytes": most(|point| Some(point.rss_bytes)),
        "peak_total_dynamic_bytes": most(|point| point.total_dynamic_bytes),
        "peak_requested_live_bytes": most(|point| point.requested_live_bytes),
    })
}

fn plot(legend: &SeriesLegend, heading: &str, curves: &[(Entry, &Series)]) -> Option<Plot> {
    let points = || curves.iter().flat_map(|(_, series)| &series.points);
    let unit = units::size(points().map(|point| point.rss_bytes).max()? as f64);
    // In a replay in strict order, curves are drawn over the allocated bytes: the time includes the sampling, while these bytes are the
    // same for all allocators.
    let allocated: Option<Vec<u64>> = points().map(|point| point.allocated_bytes).collect();
    let most = allocated.and_then(|allocated| allocated.into_iter().max());
    let allocated = most.map(|most| units::size(most as f64));
    let place = |point: &Point| match allocated {
        None => point.time_ns as f64 / 1e6,
        Some(unit) => point.allocated_bytes.unwrap_or_default() as f64 / unit.size,
    };
    let along = allocated.map_or("ms since the start of the process".into(), |unit| {
        format!("{} allocated so far", unit.name)
    });
    let curve = |name: &str, series: &Series, value: fn(&Point) -> Option<u64>| {
        let (places, bytes): (Vec<f64>, Vec<f64>) = series
            .points
            .iter()
            .filter_map(|point| Some((place(point), value(point)? as f64)))
            .unzip();
        let kept = thin(&bytes, MOST_POINTS).into_iter();
        let (x, y): (Vec<f64>, Vec<f64>) = kept
            .map(|kept| (short(places[kept]), short(bytes[kept] / unit.size)))
            .unzip();
        figure::with_hover_values(figure::scatter(name, "lines", x, y))
    };
    // All allocators get the same requests, but not at the same times: one line shows them.
    let asked = curves.iter().find(|(_, series)| {
        series
            .points
            .iter()
            .any(|point| point.requested_live_bytes.is_some())
    });
    let asked = asked.map(|(subject, series)| {
        let name = match allocated {
            None => format!("asked for, {}", legend.label(*subject)),
            Some(_) => "asked for".to_owned(),
        };
        let drawn = curve(&name, series, |point| point.requested_live_bytes);
        Trace::new(None, subject.run, drawn)
    });
    let held = curves.iter().map(|(subject, series)| {
        let label = legend.label(*subject);
        let drawn = curve(&label, series, |point| Some(point.rss_bytes));
        legend.trace(*subject, drawn)
    });
    Some(Plot::new(
        heading,
        asked.into_iter().chain(held).collect(),
        axes::from_zero(&along),
        axes::from_zero(&format!("resident set, {}", unit.name)),
    ))
}
