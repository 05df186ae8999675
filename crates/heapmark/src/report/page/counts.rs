//! How often events occurred per operation, in a run that counted them.

use super::dot_plot::{self, Dot};
use super::section::{Data, Plot, Section};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed};
use super::{axes, number};
use crate::analyse::Table;
use crate::report::text::plain;
use crate::report::units;

const COLUMNS: [&str; 9] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "event",
    "events_per_op",
    "events_per_op_min",
    "events_per_op_max",
    "ratio",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed<Table>> = legend.all(|told| &told.analysis.counts);
    Section {
        id: "counts",
        heading: "Counts".into(),
        text: vec!["Events for each operation. Fewer are often, but not always, less time.".into()],
        views: views::by_threads(&cases, &COLUMNS, |cases, heading, data| {
            plots(legend, cases, heading, data)
        }),
        ..Section::default()
    }
}

/// One for each event that was counted.
fn plots(
    legend: &SeriesLegend,
    cases: &[Placed<Table>],
    heading: &str,
    data: &mut Data,
) -> Vec<Plot> {
    let mut events: Vec<&str> = Vec::new();
    for cell in cases
        .iter()
        .flat_map(|(_, case)| &case.rows)
        .flat_map(|row| &row.cells)
    {
        if !events.contains(&cell.metric.key) {
            events.push(cell.metric.key);
        }
    }
    events
        .into_iter()
        .map(|event| plot(legend, cases, event, heading, data))
        .collect()
}

fn plot(
    legend: &SeriesLegend,
    cases: &[Placed<Table>],
    event: &str,
    heading: &str,
    data: &mut Data,
) -> Plot {
    let what = event.replace('_', " ");
    let mut dots = Vec::new();
    for (run, case) in cases {
        for row in &case.rows {
            let Some(cell) = row.cell(event) else {
                continue;
            };
            let counted = cell.spread;
            data.row([
                (run + 1).into(),
                plain(&case.workload).into(),
                case.threads.into(),
                plain(&row.allocator).into(),
                event.into(),
                number(counted.median),
                number(counted.min),
                number(counted.max),
                cell.ratio.map(|ratio| ratio.ratio).into(),
            ]);
            let words = format!("{} {what} per operation", units::digits(counted.median));
            dots.push(Dot {
                run: *run,
                name: &row.allocator,
                value: counted.median,
                interval: None,
                words,
            });
        }
    }
    let axis = axes::values(
        &format!("{what} per operation"),
        &dot_plot::extent(&dots),
        units::digits,
    );
    dot_plot::plot(legend, format!("{heading}: {what}"), dots, axis)
}
