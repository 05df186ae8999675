//! Every sample as measured, the basis of medians and intervals.

use super::downsample::{short, thin};
use super::section::{Data, Entry, Plot, Section, Trace};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, PlacedRow};
use super::{axes, figure};
use crate::analyse::Timed;
use crate::report::units;
use serde_json::json;

/// The most points of a page; a row has its share of them, and never more than [`MOST_OF_ROW`].
const MOST_POINTS: usize = 20_000;
const MOST_OF_ROW: usize = 200;
const LEAST_OF_ROW: usize = 10;

pub fn section(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(|case| !case.paced);
    let rows: usize = cases.iter().map(|(_, case)| case.rows.len()).sum();
    let most = (MOST_POINTS / rows.max(1)).clamp(LEAST_OF_ROW, MOST_OF_ROW);
    Section::of_views(
        "samples",
        "Single samples",
        "One mark per measured process; hollow ones ran while something else disturbed the machine, in every attempt. Two heaps \
         of marks are two modes: then the median describes neither. Where there are many, the picture shows some of them with \
         both ends; heapmark export --to csv-samples has all.",
        views::by_threads(&cases, |cases, heading, data| {
            [plot(legend, cases, heading, most, data)]
        }),
    )
}

fn plot(
    legend: &SeriesLegend,
    cases: &[Placed],
    heading: &str,
    most: usize,
    data: &mut Data,
) -> Plot {
    let mut rows = views::rows(cases);
    rows.sort_by(|a, b| {
        let median = |placed: &PlacedRow| placed.row.time().spread.median;
        median(a).total_cmp(&median(b))
    });
    let mut ends = Vec::new();
    let mut traces = Vec::new();
    for placed in &rows {
        let spread = placed.row.time().spread;
        ends.extend([spread.min, spread.max]);
        let mut times: Vec<&Timed> = placed.row.times.iter().collect();
        times.sort_by(|a, b| a.ns_per_op.total_cmp(&b.ns_per_op));
        let values: Vec<f64> = times.iter().map(|timed| timed.ns_per_op).collect();
        let kept = thin(&values, most);
        views::add_row(
            data,
            placed.subject,
            placed.case,
            json!({
                "samples": times.len(),
                "disturbed": times.iter().filter(|timed| timed.disturbed).count(),
                "stalled": times.iter().filter(|timed| timed.stalled).count(),
                "ns_per_op_min": spread.min,
                "ns_per_op_median": spread.median,
                "ns_per_op_max": spread.max,
                "shown": kept.len(),
            }),
        );
        let (hollow, full): (Vec<&Timed>, Vec<&Timed>) = kept
            .iter()
            .map(|place| times[*place])
            .partition(|timed| timed.disturbed);
        let subject = placed.subject;
        traces.extend(trace(legend, subject, "circle", &full));
        traces.extend(trace(legend, subject, "circle-open", &hollow));
    }
    let what = match (&cases[0].1.command, cases[0].1.took_turns) {
        (Some(_), true) => "CPU time",
        (Some(_), false) => "wall time",
        (None, _) => "time per operation",
    };
    let x_axis = axes::values(what, &ends, units::duration);
    Plot::new(heading, traces, x_axis, axes::names())
}

fn trace(legend: &SeriesLegend, subject: Entry, symbol: &str, times: &[&Timed]) -> Option<Trace> {
    let label = legend.label(subject);
    let points = times.iter().map(|timed| {
        let words = format!(
            "{}, block {}",
            units::duration(timed.ns_per_op),
            timed.block
        );
        (short(timed.ns_per_op), label.clone(), words)
    });
    let drawn = figure::with_symbol(views::scatter(&label, "markers", points), symbol);
    (!times.is_empty()).then(|| legend.trace(subject, drawn))
}
