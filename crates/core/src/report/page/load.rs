//! Latency over load: requests that are due at times, beside the same requests in a closed loop.

use super::axes;
use super::section::{Data, Plot, Section, View};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, PlacedRow};
use crate::analyse::TableRow;
use crate::metric::{FigureRole, key_in};
use crate::report::{text, units};
use heapmark_stats::median;
use serde_json::json;

/// The name of the first place on the axis of loads.
const CLOSED: &str = "closed loop";

/// The percentiles that are drawn, with their names.
const PERCENTILES: [(&str, f64); 3] = [("median", 50.0), ("99 %", 99.0), ("99.9 %", 99.9)];

pub fn section(legend: &SeriesLegend) -> Section {
    // Every case with a factor also runs without the factor.
    let cases = legend.cases(|case| case.times_operations() && case.factor.is_none());
    let mut view = View {
        workload: None,
        plots: Vec::new(),
        data: Data::default(),
    };
    for cases in views::grouped(&cases, |(_, case)| case.threads) {
        let plots = of_threads(legend, &cases, &mut view.data);
        view.plots.extend(plots);
    }
    Section::of_views(
        "load",
        "Latency over load",
        "So many of 100 requests ended at most so long after they were due, at times that are drawn before. The load is their number over \
             that of a closed loop of the baseline. On the left the same requests in a closed loop, where each begins when the last one \
             has ended: there a stall delays one request, in an open loop all that are due meanwhile. The null allocator does nothing: its \
             tail is what the machine does to any program. Medians over processes; the scale is logarithmic.",
        if view.plots.is_empty() {
            Vec::new()
        } else {
            vec![view]
        },
    )
}

/// The figures of a percentile: of the open and of the closed loop.
fn keys(percentile: f64) -> [&'static str; 2] {
    [
        FigureRole::OpenPercentile(percentile),
        FigureRole::ClosedPercentile(percentile),
    ]
    .map(key_in)
}

/// The load of a row, if its requests are due at given times.
fn load(row: &TableRow) -> Option<f64> {
    row.median(key_in(FigureRole::Load))
}

/// The charts of a thread count, the least load first.
fn of_threads(legend: &SeriesLegend, cases: &[Placed], data: &mut Data) -> Vec<Plot> {
    let mut rows = views::rows(cases);
    rows.retain(|placed| load(placed.row).is_some());
    rows.sort_by(|one, other| {
        let [one, other] = [one, other].map(|placed| load(placed.row).unwrap_or_default());
        one.total_cmp(&other)
    });
    let Some(first) = rows.first() else {
        return Vec::new();
    };
    for placed in &rows {
        let mut numbers = json!({ key_in(FigureRole::Load): load(placed.row) });
        for (_, percentile) in PERCENTILES {
            for key in keys(percentile) {
                numbers[key] = json!(placed.row.median(key));
            }
        }
        views::add_row(data, placed.subject, placed.case, numbers);
    }
    let threads = text::count(first.case.threads, "thread");
    let loads = rows.iter().filter_map(|placed| load(placed.row));
    let mut places = vec![CLOSED.to_owned()];
    places.extend(views::distinct(loads.map(units::percent)));
    let lines = views::grouped(&rows, |row| row.subject);
    let plot = |(name, percentile)| {
        let [open, closed] = keys(percentile);
        let mut traces = Vec::new();
        let mut shown_ns = Vec::new();
        for line in &lines {
            let subject = line[0].subject;
            let label = legend.label(subject);
            let point = |place: &str, ns: f64| {
                let words = format!("<b>{label}</b>, {place}<br>{name}: {}", units::duration(ns));
                (place.to_owned(), ns, words)
            };
            let closed_ns = median(&times(line, closed).map(|(_, ns)| ns).collect::<Vec<f64>>());
            let alone = closed_ns.map(|ns| point(CLOSED, ns));
            let at_loads = times(line, open).map(|(load, ns)| point(&units::percent(load), ns));
            let at_loads: Vec<_> = at_loads.collect();
            for (mode, points) in [
                ("markers", Vec::from_iter(alone)),
                ("lines+markers", at_loads),
            ] {
                shown_ns.extend(points.iter().map(|(_, ns, _)| *ns));
                traces.push(legend.trace(subject, views::scatter(&label, mode, points)));
            }
        }
        let title = format!("{name} of requests, {threads}");
        let times = axes::logarithmic("time of a request", &shown_ns, units::duration);
        Plot::new(title, traces, axes::ordered(places.clone()), times)
    };
    PERCENTILES.map(plot).into()
}

/// Load and time in nanoseconds of each row that has this metric.
fn times<'l>(line: &'l [PlacedRow], key: &'l str) -> impl Iterator<Item = (f64, f64)> {
    line.iter().filter_map(move |placed| {
        let ns = placed.row.median(key).filter(|ns| *ns > 0.0)?;
        Some((load(placed.row)?, ns))
    })
}
