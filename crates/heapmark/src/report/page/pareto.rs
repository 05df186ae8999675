//! Throughput against memory: high rates with little memory.

use super::section::{Data, Plot, Section, Trace};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed};
use super::{axes, number};
use crate::analyse::{Case, Memory, Numbers, Role, Row};
use crate::report::text::{count, plain};
use crate::report::units;
use plotly::common::{HoverInfo, Mode};
use plotly::{Layout, Scatter};

const COLUMNS: [&str; 7] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "mops_per_s",
    "overhead",
    "peak_rss_bytes",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed<Case>> = legend.all(|told| &told.analysis.cases);
    let cases: Vec<Placed<Case>> = cases
        .into_iter()
        .filter(|(_, case)| case.times_operations())
        .collect();
    Section {
        id: "pareto",
        heading: "Throughput and memory".into(),
        text: vec![
            "Right is faster, down is smaller: nothing beats an allocator that has no other to the right of it and below. One \
             marker per thread count, joined in their order. Overhead is memory held beyond what was asked for; where a workload \
             asks for too little to tell, the peak resident set stands instead."
                .into(),
        ],
        views: views::by_workload(&cases, &COLUMNS, |cases, data| plot(legend, cases, data).into_iter().collect()),
        ..Section::default()
    }
}

/// A point of a row.
struct ParetoPoint<'a> {
    run: usize,
    threads: u32,
    row: &'a Row,
    numbers: &'a Numbers,
    memory: Memory,
}

fn plot(legend: &SeriesLegend, cases: &[Placed<Case>], data: &mut Data) -> Option<Plot> {
    let mut points: Vec<ParetoPoint> = Vec::new();
    for (run, case) in cases {
        let ranked = case
            .rows
            .iter()
            .filter(|row| !matches!(row.role, Role::Floor | Role::AaCopy));
        let numbers = ranked.filter_map(|row| Some((row, row.numbers()?)));
        points.extend(numbers.filter_map(|(row, numbers)| {
            Some(ParetoPoint {
                run: *run,
                threads: case.threads,
                row,
                numbers,
                memory: numbers.memory?,
            })
        }));
    }
    for ParetoPoint {
        run,
        threads,
        row,
        numbers,
        memory,
    } in &points
    {
        data.row([
            (run + 1).into(),
            plain(&cases[0].1.workload).into(),
            (*threads).into(),
            plain(&row.allocator).into(),
            number(numbers.mops_per_s.median),
            memory.overhead.into(),
            number(memory.peak_rss_bytes),
        ]);
    }
    // Both measures cannot share one axis.
    let overheads = points
        .iter()
        .all(|point| point.memory.overhead.is_some_and(|overhead| overhead > 0.0));
    let height = |memory: &Memory| {
        memory
            .overhead
            .filter(|_| overheads)
            .unwrap_or(memory.peak_rss_bytes)
    };
    let rates: Vec<f64> = points
        .iter()
        .map(|point| point.numbers.mops_per_s.median)
        .collect();
    let heights: Vec<f64> = points.iter().map(|point| height(&point.memory)).collect();
    let y_axis = match overheads {
        true => axes::values("overhead", &heights, units::times),
        false => axes::sizes("peak RSS", &heights),
    };
    let entries = views::grouped(
        &points
            .iter()
            .map(|point| (point.run, point))
            .collect::<Vec<_>>(),
        |point| (point.run, point.row.allocator.clone()),
    );
    let traces = entries.iter().map(|points| {
        let (run, first) = points[0];
        let label = legend.label(run, &first.row.allocator);
        let hover = |point: &ParetoPoint| {
            format!(
                "<b>{label}</b>, {}<br>{}, {}",
                count(point.threads as usize, "thread"),
                rate(point.numbers.mops_per_s.median),
                if overheads {
                    units::times(height(&point.memory))
                } else {
                    units::bytes(height(&point.memory))
                }
            )
        };
        let x = points
            .iter()
            .map(|(_, point)| point.numbers.mops_per_s.median)
            .collect();
        let drawn = Scatter::new(
            x,
            points
                .iter()
                .map(|(_, point)| height(&point.memory))
                .collect(),
        )
        .name(&label)
        .mode(Mode::LinesMarkers)
        .hover_info(HoverInfo::Text)
        .hover_text_array(
            points
                .iter()
                .map(|(_, point)| hover(point))
                .collect::<Vec<_>>(),
        );
        Trace {
            entry: legend.entry(&first.row.allocator),
            run,
            drawn,
        }
    });
    let traces: Vec<Trace> = traces.collect();
    let layout = Layout::new()
        .x_axis(axes::values("operations per second", &rates, rate))
        .y_axis(y_axis);
    (traces.len() > 1).then(|| Plot {
        title: plain(&cases[0].1.workload),
        traces,
        layout,
    })
}

/// `48.1 Mops/s`, of millions of operations per second.
pub(super) fn rate(mops: f64) -> String {
    let unit = units::rate(mops);
    format!("{} {}", units::digits(mops / unit.size), unit.name)
}
