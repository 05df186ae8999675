//! Time of a pair of malloc and free over the size of a batch, with a line for each order in which batches are freed.

use super::axes;
use super::section::{Data, Plot, Section, Trace};
use super::series_legend::{SeriesLegend, in_chart};
use super::views::{self, Placed, PlacedRow};
use crate::analyse::Table;
use crate::metric::FigureRole;
use crate::report::text::count;
use crate::report::units;
use serde_json::json;
use std::collections::BTreeSet;

pub fn section(legend: &SeriesLegend) -> Section {
    let mut cases = legend.cases(Table::times_operations);
    cases.retain(|case| {
        views::ranked(&[*case])
            .iter()
            .any(|row| batches(row).len() > 1)
    });
    Section::of_views(
        "batches",
        "Batches by size and order",
        "Time of a pair of malloc and free of each allocator over the blocks of a batch, medians over processes, a line for \
         each order in which a batch is freed. A step is the end of a cache: what was freed beyond it goes further back, and \
         comes from there again. An order above the others is one that the allocator is not made for.",
        // Whichever order is selected, the charts show all orders.
        views::by_workload(&cases, |_, _, data| plots(legend, &cases, data)),
    )
}

/// A chart of each allocator with each number of threads.
fn plots(legend: &SeriesLegend, cases: &[Placed], data: &mut Data) -> Vec<Plot> {
    let rows = views::ranked(cases);
    let charts = views::grouped(&rows, |row| (row.subject, row.case.threads));
    charts
        .iter()
        .map(|orders| plot(legend, orders, data))
        .collect()
}

fn plot(legend: &SeriesLegend, orders: &[PlacedRow], data: &mut Data) -> Plot {
    let subject = orders[0].subject;
    let mut sizes = BTreeSet::new();
    let mut times = Vec::new();
    let mut traces = Vec::new();
    for (place, row) in orders.iter().enumerate() {
        let order = row.case.workload.clone();
        let points = batches(row);
        for (batch, pair_ns) in &points {
            views::add_row(
                data,
                subject,
                row.case,
                json!({ "batch": batch, "pair_ns": pair_ns }),
            );
        }
        sizes.extend(points.iter().map(|(batch, _)| *batch));
        times.extend(points.iter().map(|(_, pair_ns)| *pair_ns));
        let points = points.into_iter().map(|(batch, pair_ns)| {
            let words = format!("batches of {batch}: {}", units::duration(pair_ns));
            let tooltip = format!("<b>{}</b><br>{words}", in_chart(&order));
            (batch, pair_ns, tooltip)
        });
        traces.push(Trace {
            line: Some(place),
            ..legend.trace(
                subject,
                views::scatter(&in_chart(&order), "lines+markers", points),
            )
        });
    }
    let threads = count(orders[0].case.threads, "thread");
    Plot::new(
        format!("{}{}, {threads}", subject.name, legend.suffix(subject.run)),
        traces,
        axes::counts("blocks of a batch", &Vec::from_iter(sizes)),
        axes::values("time of a pair", &times, units::duration),
    )
}

/// The batch sizes for which a row has a time, each with the time of a pair of malloc and free; the smallest size first.
fn batches(placed: &PlacedRow) -> Vec<(u32, f64)> {
    let cells = placed.row.cells.iter();
    let mut times: Vec<(u32, f64)> = cells
        .filter_map(|cell| match cell.metric.role()? {
            FigureRole::Batch(blocks) => Some((blocks, cell.spread.median)),
            _ => None,
        })
        .collect();
    times.sort_by_key(|(batch, _)| *batch);
    times
}
