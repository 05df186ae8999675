//! Whole processes: how long each row took, with the CPU time of all its threads, and its longest
//! pause.

use super::dot_plot::{self, Dot};
use super::section::{Data, Entry, Plot, Section, Trace};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, PlacedRow};
use super::{axes, figure};
use crate::analyse::Table;
use crate::report::{units, whole};
use serde_json::json;

pub fn section(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(|case| case.whole_process);
    let has_client = |case: &Table| {
        let tried = case.command.as_ref();
        tried.is_some_and(|tried| tried.client.is_some())
    };
    let of_client = "is the time of the client, from its start to its end; the diamond is the CPU time of the server meanwhile.";
    let of_process = "is the time from the start of the process to its end; the diamond is the CPU time of all its threads, and of \
         processes that it waited for.";
    let clients = cases.iter().filter(|(_, case)| has_client(case)).count();
    let bar = match clients {
        0 => format!("A bar {of_process}"),
        all if all == cases.len() => format!("A bar {of_client}"),
        _ => format!("A bar {of_process} Of a server that a client drives, it {of_client}"),
    };
    let mut section = Section::of_views(
        "whole",
        "Whole processes",
        &format!("{bar} A diamond beyond the bar is work on other cores."),
        views::by_threads(&cases, |cases, heading, data| {
            plots(legend, cases, heading, data)
        }),
    );
    section.text.push(
        "Pauses are those that a runtime or a program reports: one that reports none may still have some.".into(),
    );
    section
}

fn plots(legend: &SeriesLegend, cases: &[Placed], heading: &str, data: &mut Data) -> [Plot; 3] {
    let mut rows: Vec<(PlacedRow, f64)> = views::rows(cases)
        .into_iter()
        .filter_map(|placed| Some((placed, placed.row.median("wall_ns")?)))
        .collect();
    rows.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut traces = Vec::new();
    let mut peaks = Vec::new();
    let mut pauses = Vec::new();
    for (placed, wall_ns) in rows {
        let median = |key| placed.row.median(key);
        let subject = placed.subject;
        let cpu_ns = median("cpu_ns");
        let peak_rss_bytes = median("peak_rss_bytes");
        data.row(json!({
            "run": subject.run + 1,
            "workload": placed.case.workload,
            "threads": placed.case.threads,
            "row": subject.name,
            "wall_ns": wall_ns,
            "cpu_ns": cpu_ns,
            "peak_rss_bytes": peak_rss_bytes,
            "longest_pause_ns": median("longest_pause_ns"),
            "longest_step_ns": median("longest_step_ns"),
            "startup_ns": median("startup_ns"),
        }));
        traces.extend(bars(legend, placed, wall_ns, cpu_ns));
        let dot = |value: f64, words: fn(f64) -> String| Dot {
            subject,
            value,
            interval: None,
            words: words(value),
        };
        peaks.extend(peak_rss_bytes.map(|bytes| dot(bytes, units::bytes)));
        let pause_ns = median("longest_pause_ns").filter(|ns| *ns > 0.0);
        pauses.extend(pause_ns.map(|ns| dot(ns, units::duration)));
    }
    let dots = |title: &str, dots: Vec<Dot>, word: fn(f64) -> String| {
        let axis = axes::values(title, &dot_plot::extent(&dots), word);
        dot_plot::plot(legend, format!("{heading}: {title}"), dots, axis)
    };
    [
        Plot::new(heading, traces, axes::titled("seconds"), axes::names()),
        dots("peak RSS", peaks, units::bytes),
        dots("longest pause", pauses, units::duration),
    ]
}

fn bars(
    legend: &SeriesLegend,
    PlacedRow { subject, row, .. }: PlacedRow,
    wall_ns: f64,
    cpu_ns: Option<f64>,
) -> Vec<Trace> {
    // The name includes the size of the row's problem, if that differs from the chart's.
    let size = whole::sizes(row)
        .map(|sizes| format!(" ({sizes})"))
        .unwrap_or_default();
    let name = &format!("{}{size}", row.allocator);
    let label = legend.label(Entry { name, ..subject });
    let mut words = format!("<b>{label}</b><br>{}", units::duration(wall_ns));
    if let Some(cpu_ns) = cpu_ns {
        words += &format!(", CPU {}", units::duration(cpu_ns));
    }
    let bar = figure::horizontal(figure::bars(&label, [wall_ns / 1e9], [&label]));
    let mut traces = vec![legend.trace(subject, figure::with_hover_text(bar, &words))];
    if let Some(cpu_ns) = cpu_ns {
        let diamond = figure::scatter(&label, "markers", [cpu_ns / 1e9], [&label]);
        let diamond = figure::with_symbol(diamond, "diamond-open");
        traces.push(legend.trace(subject, figure::with_hover_text(diamond, words)));
    }
    traces
}
