//! The page of a history: a line over releases for each metric, with a mark at each change.

use super::{by_metric, changes, conclusion, direction, notes};
use crate::folder::History;
use crate::series::{LevelChange, Series, Told, VersionPoint};
use heapmark_core::analyse::{Verdict, distinct};
use heapmark_core::report::document::Sheet;
use heapmark_core::report::machine::machine_name;
use heapmark_core::report::page::head::Head;
use heapmark_core::report::page::section::{Data, Plot, Section, Trace, View};
use heapmark_core::report::page::series_legend::{LegendEntry, in_chart};
use heapmark_core::report::page::{axes, figure, lay_out};
use heapmark_core::report::text::join;
use heapmark_core::report::units::{self, bounds};
use heapmark_core::store::Run;
use serde_json::json;

/// The history as a page.
pub fn page(history: &History, told: &Told, runs: &[Run]) -> String {
    let what = history.of_what();
    let dates: Vec<&str> = runs
        .iter()
        .map(|run| run.head.started.split('T').next().unwrap_or_default())
        .collect();
    let head = Head {
        verdict: conclusion(history, told),
        machine: join(
            distinct(runs.iter().map(|run| machine_name(&run.head.machine))),
            "; ",
        ),
        says: format!("heapmark history, measured {}", join(distinct(dates), ", ")),
        ..Head::default()
    };
    let entries = [LegendEntry {
        name: what.to_owned(),
        companion: false,
    }];
    let lines = notes(told, runs).into_iter().map(|note| vec![note]);
    let sections = vec![
        Section::of_tables("changes", "Changes", [changes(told)]),
        lines_over_releases(history, told),
        Section::of_tables("values", "All values", by_metric(history, told)),
        Section::of_tables(
            "notes",
            "How far to trust it",
            [Sheet::of_text("", &["note"], lines)],
        ),
    ];
    let title = format!("heapmark history: {what}");
    lay_out(&title, &[head], &entries, vec![what.to_owned()], sections)
}

fn lines_over_releases(history: &History, results: &Told) -> Section {
    let workload = |series: &Series| series.case.split('@').next().unwrap_or_default().to_owned();
    let workloads = distinct(results.series.iter().map(workload));
    let views = workloads.into_iter().map(|name| {
        let mut data = Data::default();
        let of_workload = results
            .series
            .iter()
            .filter(|series| workload(series) == name);
        View {
            plots: of_workload
                .map(|series| plot(history, results, series, &mut data))
                .collect(),
            workload: Some(name),
            data,
        }
    });
    Section::of_views(
        "lines",
        "Over releases",
        "A line for each metric, the oldest release first, with 95 % intervals or ranges; a mark with the change where two neighbours \
         differ by more than chance and more than the threshold. Releases without numbers have no mark.",
        views.collect(),
    )
}

fn plot(history: &History, results: &Told, series: &Series, data: &mut Data) -> Plot {
    let name = |point: &VersionPoint| in_chart(&point.version);
    for point in &series.points {
        let (low, high) = point.ends().unzip();
        let mut steps = series.steps.iter();
        let step = steps.find(|step| step.to == point.version);
        data.row(json!({
            "case": series.case,
            "metric": series.metric.key,
            "version": point.version,
            "value": point.value,
            "over_reference": point.ratio.map(|ratio| ratio.ratio),
            "low": low,
            "high": high,
            "over_previous": step.map(|step| step.ratio.ratio),
            "verdict": step.map(|step| step.verdict.word_of(series.metric)),
        }));
    }
    let heights: Vec<f64> = series.points.iter().map(VersionPoint::height).collect();
    let ends = |point: &VersionPoint| point.ends().unwrap_or((point.height(), point.height()));
    let words = series.points.iter().map(|point| {
        let within = point.ends().filter(|_| series.is_relative()).map(bounds);
        let height = match series.is_relative() {
            true => units::ratio(point.height()),
            false => units::value(series.metric.unit, point.height()),
        };
        format!(
            "<b>{}</b><br>{height} {}",
            name(point),
            within.unwrap_or_default()
        )
    });
    let names: Vec<String> = series.points.iter().map(name).collect();
    let line = figure::scatter(series.metric.noun, "lines+markers", names, &heights);
    let mut line = figure::with_hover_text(line, Vec::from_iter(words));
    let points = series.points.iter();
    line["error_y"] = figure::intervals(points.map(|point| (point.height(), ends(point))));
    let marked: Vec<(&VersionPoint, &LevelChange)> = series
        .changes()
        .filter_map(|step| {
            let mut points = series.points.iter();
            Some((points.find(|point| point.version == step.to)?, step))
        })
        .collect();
    let label = |step: &LevelChange| {
        let sign = if step.verdict == Verdict::Slower {
            "▲"
        } else {
            "▼"
        };
        let size = match step.ratio.ratio {
            ratio if ratio.is_finite() => format!("{}x ", units::ratio(ratio)),
            _ => String::new(),
        };
        format!("{sign} {size}{}", direction(step, series.metric))
    };
    let hover = |(_, step): &(&VersionPoint, &LevelChange)| {
        format!(
            "{} to {}: {}",
            in_chart(&step.from),
            in_chart(&step.to),
            label(step)
        )
    };
    let names: Vec<String> = marked.iter().map(|(point, _)| name(point)).collect();
    let at: Vec<f64> = marked.iter().map(|(point, _)| point.height()).collect();
    let labels: Vec<String> = marked.iter().map(|(_, step)| label(step)).collect();
    let marks = figure::scatter("changes", "markers+text", names, at);
    let marks = figure::with_text(marks, &labels, "top center");
    let marks = figure::with_hover_text(marks, Vec::from_iter(marked.iter().map(hover)));
    let mut traces = vec![Trace::new(Some(0), 0, line)];
    if !marked.is_empty() {
        traces.push(Trace::new(None, 0, marks));
    }
    let extent: Vec<f64> = series
        .points
        .iter()
        .flat_map(|point| [ends(point).0, ends(point).1])
        .chain(heights)
        .collect();
    let y = match series.is_relative() {
        true => axes::ratios(
            &format!("{} / {}", series.metric.noun, in_chart(&history.reference)),
            &extent,
        ),
        false => axes::values(series.metric.noun, &extent, |value| {
            units::value(series.metric.unit, value)
        }),
    };
    let versions = history
        .versions
        .iter()
        .map(|version| in_chart(&version.name));
    let title = format!("{}: {}", series.case, super::title(series.metric, results));
    Plot::new(title, traces, axes::ordered(versions.collect()), y)
}
