//! How long single calls took: the tails that a mean hides.

use super::axes;
use super::section::{Data, Plot, Section, Trace};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed};
use crate::analyse::latency::Called;
use crate::analyse::{LatencyCase, LatencyRow};
use crate::report::text::plain;
use crate::report::{latency, units};
use plotly::common::{HoverInfo, Mode};
use plotly::{Layout, Scatter};

const COLUMNS: [&str; 11] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "function",
    "timed_calls",
    "p50_ns",
    "p90_ns",
    "p99_ns",
    "p99_9_ns",
    "p99_99_ns",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed<LatencyCase>> = legend.all(|told| &told.analysis.latency);
    Section {
        id: "latency",
        heading: "Latency of single calls".into(),
        text: vec![
            "So many of 100 calls took at most so long; the scale is logarithmic. The null allocator does nothing: its line is the \
             clock, and its tail what the machine does to any program. Where fewer than ten calls lie beyond, there is no point."
                .into(),
        ],
        views: views::by_threads(&cases, &COLUMNS, |cases, heading, data| {
            let mut names: Vec<&str> = Vec::new();
            for name in cases.iter().flat_map(|(_, case)| latency::functions(case)) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            names.iter().map(|name| plot(legend, cases, &format!("{heading}: {}", plain(name)), name, data)).collect()
        }),
        ..Section::default()
    }
}

fn plot(
    legend: &SeriesLegend,
    cases: &[Placed<LatencyCase>],
    title: &str,
    function: &str,
    data: &mut Data,
) -> Plot {
    let mut traces = Vec::new();
    let mut shown_ns = Vec::new();
    for (run, case) in cases {
        for row in &case.rows {
            let Some(called) = row
                .functions()
                .iter()
                .find(|called| called.function == function)
            else {
                continue;
            };
            write(data, *run, case, row, called);
            let told: Vec<(String, f64)> = points(called)
                .into_iter()
                .filter_map(|(name, ns)| Some((name, ns.filter(|ns| *ns > 0)? as f64)))
                .collect();
            shown_ns.extend(told.iter().map(|(_, ns)| *ns));
            traces.push(trace(legend, *run, row, told));
        }
    }
    let layout = Layout::new()
        .x_axis(axes::names())
        .y_axis(axes::logarithmic(
            "time of a call",
            &shown_ns,
            units::duration,
        ));
    Plot {
        title: title.to_owned(),
        traces,
        layout,
    }
}

fn points(called: &Called) -> [(String, Option<u64>); 6] {
    [
        ("50 %", called.p50_ns),
        ("90 %", called.p90_ns),
        ("99 %", called.p99_ns),
        ("99.9 %", called.p99_9_ns),
        ("99.99 %", called.p99_99_ns),
        ("longest", Some(called.longest.ns)),
    ]
    .map(|(name, ns)| (name.to_owned(), ns))
}

fn trace(legend: &SeriesLegend, run: usize, row: &LatencyRow, told: Vec<(String, f64)>) -> Trace {
    let label = legend.label(run, &row.allocator);
    let hover = told
        .iter()
        .map(|(name, ns)| format!("<b>{label}</b><br>{name}: {}", units::duration(*ns)));
    let hover: Vec<String> = hover.collect();
    let (x, y) = told.into_iter().unzip();
    let drawn = Scatter::new(x, y)
        .name(&label)
        .mode(Mode::LinesMarkers)
        .hover_info(HoverInfo::Text)
        .hover_text_array(hover);
    Trace {
        entry: legend.entry(&row.allocator),
        run,
        drawn,
    }
}

fn write(data: &mut Data, run: usize, case: &LatencyCase, row: &LatencyRow, called: &Called) {
    data.row([
        (run + 1).into(),
        plain(&case.workload).into(),
        case.threads.into(),
        plain(&row.allocator).into(),
        plain(&called.function).into(),
        called.count.into(),
        called.p50_ns.into(),
        called.p90_ns.into(),
        called.p99_ns.into(),
        called.p99_9_ns.into(),
        called.p99_99_ns.into(),
    ]);
}
