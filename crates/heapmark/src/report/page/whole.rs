//! Whole processes: how long each row took, with the CPU time of all its threads, and its longest
//! pause.

use super::dot_plot::{self, Dot};
use super::section::{Data, Plot, Section, Trace};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed};
use super::{axes, number};
use crate::analyse::{Case, Row, Whole};
use crate::report::text::plain;
use crate::report::{units, whole};
use plotly::common::{HoverInfo, Marker, MarkerSymbol, Mode, Orientation};
use plotly::{Bar, Layout, Scatter};

const COLUMNS: [&str; 10] = [
    "run",
    "workload",
    "threads",
    "row",
    "wall_ns",
    "cpu_ns",
    "peak_rss_bytes",
    "longest_pause_ns",
    "longest_step_ns",
    "startup_ns",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed<Case>> = legend.all(|told| &told.analysis.cases);
    let cases: Vec<Placed<Case>> = cases
        .into_iter()
        .filter(|(_, case)| case.whole_process)
        .collect();
    let driven = |case: &Case| {
        case.command
            .as_ref()
            .is_some_and(|tried| tried.client.is_some())
    };
    let bar = if cases.iter().any(|(_, case)| driven(case)) {
        "A bar is the time of the client, from its start to its end; the diamond is the CPU time of the server meanwhile."
    } else {
        "A bar is the time from the start of the process to its end; the diamond is the CPU time of all its threads, and of \
         processes that it waited for."
    };
    Section {
        id: "whole",
        heading: "Whole processes".into(),
        text: vec![
            format!("{bar} A diamond beyond the bar is work on other cores."),
            "Pauses are those that a runtime or a program reports: one that reports none may still have some.".into(),
        ],
        views: views::by_threads(&cases, &COLUMNS, |cases, heading, data| plots(legend, cases, heading, data)),
        ..Section::default()
    }
}

fn plots(
    legend: &SeriesLegend,
    cases: &[Placed<Case>],
    heading: &str,
    data: &mut Data,
) -> Vec<Plot> {
    let mut rows: Vec<(usize, &Row, &Whole)> = Vec::new();
    for (run, case) in cases {
        rows.extend(
            case.rows
                .iter()
                .filter_map(|row| Some((*run, row, row.numbers()?.whole.as_ref()?))),
        );
    }
    rows.sort_by(|(_, _, a), (_, _, b)| a.wall_ns.median.total_cmp(&b.wall_ns.median));
    for (run, row, whole) in &rows {
        data.row([
            (run + 1).into(),
            plain(&cases[0].1.workload).into(),
            cases[0].1.threads.into(),
            plain(&row.allocator).into(),
            number(whole.wall_ns.median),
            whole.cpu_ns.map(|cpu| cpu.median).into(),
            peak_rss_bytes(row).into(),
            whole.longest_pause_ns.into(),
            whole.longest_step_ns.into(),
            whole.startup_ns.into(),
        ]);
    }
    let bars = rows
        .iter()
        .flat_map(|(run, row, whole)| bars(legend, *run, row, whole))
        .collect();
    let layout = Layout::new()
        .x_axis(axes::titled("seconds"))
        .y_axis(axes::names());
    let pauses: Vec<Dot> = rows
        .iter()
        .filter_map(|(run, row, whole)| pause(*run, row, whole))
        .collect();
    let axis = axes::values("longest pause", &dot_plot::extent(&pauses), units::duration);
    let peaks: Vec<Dot> = rows
        .iter()
        .filter_map(|(run, row, _)| peak(*run, row))
        .collect();
    let memory = axes::values("peak RSS", &dot_plot::extent(&peaks), units::bytes);
    vec![
        Plot {
            title: heading.to_owned(),
            traces: bars,
            layout,
        },
        dot_plot::plot(legend, format!("{heading}: peak RSS"), peaks, memory),
        dot_plot::plot(legend, format!("{heading}: longest pause"), pauses, axis),
    ]
}

fn bars(legend: &SeriesLegend, run: usize, row: &Row, whole: &Whole) -> Vec<Trace> {
    let (label, entry) = (sized(legend, run, row), legend.entry(&row.allocator));
    let cpu = whole.cpu_ns.map(|cpu| cpu.median);
    let words = cpu.map_or(String::new(), |cpu| {
        format!(", CPU {}", units::duration(cpu))
    });
    let words = format!(
        "<b>{label}</b><br>{}{words}",
        units::duration(whole.wall_ns.median)
    );
    let bar = Bar::new(vec![whole.wall_ns.median / 1e9], vec![label.clone()])
        .name(&label)
        .orientation(Orientation::Horizontal)
        .hover_info(HoverInfo::Text)
        .hover_text(words.clone());
    let mut traces = vec![Trace {
        entry,
        run,
        drawn: bar,
    }];
    traces.extend(cpu.map(|cpu| {
        let diamond = Scatter::new(vec![cpu / 1e9], vec![label.clone()])
            .name(&label)
            .mode(Mode::Markers)
            .marker(Marker::new().symbol(MarkerSymbol::DiamondOpen))
            .hover_info(HoverInfo::Text)
            .hover_text(words);
        Trace {
            entry,
            run,
            drawn: diamond as Box<dyn plotly::Trace>,
        }
    }));
    traces
}

/// With the size of its problem, if it differs from the chart's.
fn sized(legend: &SeriesLegend, run: usize, row: &Row) -> String {
    let size = whole::sizes(row).map_or(String::new(), |sizes| format!(" ({sizes})"));
    legend.label(run, &format!("{}{size}", row.allocator))
}

fn peak_rss_bytes(row: &Row) -> Option<f64> {
    Some(row.numbers()?.memory?.peak_rss_bytes)
}

fn peak(run: usize, row: &Row) -> Option<Dot<'_>> {
    let bytes = peak_rss_bytes(row)?;
    Some(Dot {
        run,
        name: &row.allocator,
        value: bytes,
        interval: None,
        words: units::bytes(bytes),
    })
}

fn pause<'a>(run: usize, row: &'a Row, whole: &Whole) -> Option<Dot<'a>> {
    let ns = whole.longest_pause_ns.filter(|ns| *ns > 0.0)?;
    Some(Dot {
        run,
        name: &row.allocator,
        value: ns,
        interval: None,
        words: units::duration(ns),
    })
}
