//! Every sample as measured, the basis of medians and intervals.

use super::downsample::{short, thin};
use super::section::{Data, Plot, Section, Trace};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed};
use super::{axes, number};
use crate::analyse::{Case, Numbers, Row, Timed};
use crate::report::text::plain;
use crate::report::units;
use plotly::common::{HoverInfo, Marker, MarkerSymbol, Mode};
use plotly::{Layout, Scatter};

/// The most points of a page; a row has its share of them, and never more than [`MOST_OF_ROW`].
const MOST_POINTS: usize = 20_000;
const MOST_OF_ROW: usize = 200;
const LEAST_OF_ROW: usize = 10;

const COLUMNS: [&str; 11] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "samples",
    "disturbed",
    "stalled",
    "ns_per_op_min",
    "ns_per_op_median",
    "ns_per_op_max",
    "shown",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed<Case>> = legend.all(|told| &told.analysis.cases);
    let cases: Vec<Placed<Case>> = cases.into_iter().filter(|(_, case)| !case.paced).collect();
    let rows: usize = cases.iter().map(|(_, case)| case.rows.len()).sum();
    let most = (MOST_POINTS / rows.max(1)).clamp(LEAST_OF_ROW, MOST_OF_ROW);
    Section {
        id: "samples",
        heading: "Single samples".into(),
        text: vec![
            "One mark per measured process; hollow ones ran while something else disturbed the machine, in every attempt. Two heaps \
             of marks are two modes: then the median describes neither. Where there are many, the picture shows some of them with \
             both ends; heapmark export --to csv-samples has all."
                .into(),
        ],
        views: views::by_threads(&cases, &COLUMNS, |cases, heading, data| plot(legend, cases, heading, most, data)),
        ..Section::default()
    }
}

fn plot(
    legend: &SeriesLegend,
    cases: &[Placed<Case>],
    heading: &str,
    most: usize,
    data: &mut Data,
) -> Vec<Plot> {
    let mut rows: Vec<(usize, &Row, &Numbers)> = Vec::new();
    for (run, case) in cases {
        rows.extend(
            case.rows
                .iter()
                .filter_map(|row| Some((*run, row, row.numbers()?))),
        );
    }
    rows.sort_by(|(_, _, a), (_, _, b)| a.ns_per_op.median.total_cmp(&b.ns_per_op.median));
    let ends: Vec<f64> = rows
        .iter()
        .flat_map(|(_, _, n)| [n.ns_per_op.min, n.ns_per_op.max])
        .collect();
    let mut traces = Vec::new();
    for (run, row, numbers) in rows {
        let mut times: Vec<&Timed> = numbers.times.iter().collect();
        times.sort_by(|a, b| a.ns_per_op.total_cmp(&b.ns_per_op));
        let kept = thin(
            &times
                .iter()
                .map(|timed| timed.ns_per_op)
                .collect::<Vec<_>>(),
            most,
        );
        data.row([
            (run + 1).into(),
            plain(&cases[0].1.workload).into(),
            cases[0].1.threads.into(),
            plain(&row.allocator).into(),
            times.len().into(),
            times.iter().filter(|timed| timed.disturbed).count().into(),
            times.iter().filter(|timed| timed.stalled).count().into(),
            number(numbers.ns_per_op.min),
            number(numbers.ns_per_op.median),
            number(numbers.ns_per_op.max),
            kept.len().into(),
        ]);
        for disturbed in [false, true] {
            let own = || {
                kept.iter()
                    .map(|place| times[*place])
                    .filter(|timed| timed.disturbed == disturbed)
            };
            traces.extend(
                (own().count() > 0)
                    .then(|| trace(legend, run, row, disturbed, &own().collect::<Vec<_>>())),
            );
        }
    }
    let what = if cases[0].1.command.is_some() {
        "wall time"
    } else {
        "time per operation"
    };
    let layout = Layout::new()
        .x_axis(axes::values(what, &ends, units::duration))
        .y_axis(axes::names());
    vec![Plot {
        title: heading.to_owned(),
        traces,
        layout,
    }]
}

fn trace(legend: &SeriesLegend, run: usize, row: &Row, disturbed: bool, times: &[&Timed]) -> Trace {
    let label = legend.label(run, &row.allocator);
    let hover = |timed: &&Timed| {
        format!(
            "{}, block {}",
            units::duration(timed.ns_per_op),
            timed.block
        )
    };
    let x = times.iter().map(|timed| short(timed.ns_per_op)).collect();
    let drawn = Scatter::new(x, times.iter().map(|_| label.clone()).collect::<Vec<_>>())
        .name(&label)
        .mode(Mode::Markers)
        .hover_info(HoverInfo::Text)
        .hover_text_array(times.iter().map(hover).collect::<Vec<_>>())
        .marker(Marker::new().symbol(if disturbed {
            MarkerSymbol::CircleOpen
        } else {
            MarkerSymbol::Circle
        }));
    Trace {
        entry: legend.entry(&row.allocator),
        run,
        drawn,
    }
}
