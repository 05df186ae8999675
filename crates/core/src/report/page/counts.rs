//! How often events occurred per operation, in a run that counted them.

use super::axes;
use super::dot_plot::{self, Dot};
use super::section::{Data, Plot, Section};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, PlacedRow};
use crate::report::units;
use serde_json::json;

pub fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed> = legend.all(|run| &run.analysis.counts);
    let views = views::by_threads(&cases, |cases, heading, data| {
        let cells = cases
            .iter()
            .flat_map(|(_, case)| &case.rows)
            .flat_map(|row| &row.cells);
        let mut plots = Vec::new();
        for event in views::distinct(cells.map(|cell| cell.metric.key)) {
            plots.push(plot(legend, cases, event, heading, data));
        }
        plots
    });
    Section::of_views(
        "counts",
        "Counts",
        "Events for each operation. Fewer are often, but not always, less time.",
        views,
    )
}

/// The chart of one event.
fn plot(
    legend: &SeriesLegend,
    cases: &[Placed],
    event: &str,
    heading: &str,
    data: &mut Data,
) -> Plot {
    let what = event.replace('_', " ");
    let mut dots = Vec::new();
    for PlacedRow { subject, case, row } in views::rows(cases) {
        let Some(cell) = row.cell(event) else {
            continue;
        };
        let counted = cell.spread;
        views::add_row(
            data,
            subject,
            case,
            json!({
                "event": event,
                "events_per_op": counted.median,
                "events_per_op_min": counted.min,
                "events_per_op_max": counted.max,
                "ratio": cell.ratio.map(|ratio| ratio.ratio),
            }),
        );
        dots.push(Dot {
            subject,
            value: counted.median,
            interval: None,
            words: format!("{} {what} per operation", units::digits(counted.median)),
        });
    }
    let title = format!("{what} per operation");
    let axis = axes::values(&title, &dot_plot::extent(&dots), units::digits);
    dot_plot::plot(legend, format!("{heading}: {what}"), dots, axis)
}
