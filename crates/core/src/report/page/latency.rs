//! How long single calls took: the tails that a mean hides.

use super::axes;
use super::section::{Data, Plot, Section};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, PlacedRow};
use crate::report::latency::{self, PERCENTILES};
use crate::report::units;
use serde_json::json;

pub fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed> = legend.all(|run| &run.analysis.latency);
    let views = views::by_threads(&cases, |cases, heading, data| {
        let names = cases.iter().flat_map(|(_, case)| latency::functions(case));
        let mut plots = Vec::new();
        for name in views::distinct(names) {
            let title = format!("{heading}: {name}");
            plots.push(plot(legend, cases, title, name, data));
        }
        plots
    });
    Section::of_views(
        "latency",
        "Latency of single calls",
        "So many of 100 calls took at most so long; the scale is logarithmic. The null allocator does nothing: its line is the \
             clock, and its tail what the machine does to any program. Where fewer than ten calls lie beyond, there is no point.",
        views,
    )
}

fn plot(
    legend: &SeriesLegend,
    cases: &[Placed],
    title: String,
    function: &str,
    data: &mut Data,
) -> Plot {
    let mut traces = Vec::new();
    let mut shown_ns = Vec::new();
    for PlacedRow { subject, case, row } in views::rows(cases) {
        let Some(longest) = row.of_function(function, "max_ns") else {
            continue;
        };
        let mut numbers = json!({"function": function, "timed_calls": longest.n});
        let label = legend.label(subject);
        let mut points = Vec::new();
        for (_, place, key) in PERCENTILES {
            let ns = row.call_ns(function, key);
            numbers[key] = json!(ns);
            if let Some(ns) = ns.filter(|ns| *ns > 0) {
                let ns = ns as f64;
                let tooltip = format!("<b>{label}</b><br>{place}: {}", units::duration(ns));
                shown_ns.push(ns);
                points.push((place, ns, tooltip));
            }
        }
        views::add_row(data, subject, case, numbers);
        let drawn = views::scatter(&label, "lines+markers", points);
        traces.push(legend.trace(subject, drawn));
    }
    let times = axes::logarithmic("time of a call", &shown_ns, units::duration);
    let places = axes::ordered(PERCENTILES.map(|(_, place, _)| place.to_owned()).to_vec());
    Plot::new(title, traces, places, times)
}
