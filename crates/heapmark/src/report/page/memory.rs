//! Memory over time: held bytes beside requested bytes.

use super::axes;
use super::downsample::{short, thin};
use super::section::{Data, Plot, Section, Trace, View};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed, SortedCase};
use crate::analyse::{Case, FootprintCase, Role};
use crate::report::text::plain;
use crate::report::units::{self, PrintedUnit};
use crate::store::{Point, Series};
use plotly::common::{HoverInfo, Mode};
use plotly::layout::RangeMode;
use plotly::{Layout, Scatter};

/// The most points of a curve in the chart.
const MOST_POINTS: usize = 400;

const COLUMNS: [&str; 9] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "process",
    "points",
    "peak_rss_bytes",
    "peak_total_dynamic_bytes",
    "peak_requested_live_bytes",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let timed: Vec<Placed<Case>> = legend.all(|told| &told.analysis.cases);
    let followed: Vec<Placed<FootprintCase>> = legend.all(|told| &told.analysis.footprints);
    Section {
        id: "memory",
        heading: "Memory over time".into(),
        text: vec![
            "Resident set of one process of each allocator; the grey line is what the program had requested and not yet freed. The \
             distance between them is what the allocator holds for itself. Replays in strict order are drawn along what was allocated, since their \
             time means nothing. Points may be thinned, peaks stay; series/ in the run's \
             directory has them all, and other measures of memory."
                .into(),
        ],
        views: views(legend, &timed, names).into_iter().chain(views(legend, &followed, followed_names)).collect(),
        ..Section::default()
    }
}

/// The A/A copy and the floor request the same and would only cover the others.
fn names(case: &Case) -> Vec<&str> {
    let ranked = case
        .rows
        .iter()
        .filter(|row| !matches!(row.role, Role::Floor | Role::AaCopy));
    ranked
        .filter(|row| row.numbers().is_some())
        .map(|row| row.allocator.as_str())
        .collect()
}

fn followed_names(case: &FootprintCase) -> Vec<&str> {
    case.rows
        .iter()
        .filter(|row| row.footprints.is_some())
        .map(|row| row.allocator.as_str())
        .collect()
}

fn views<T: SortedCase>(
    legend: &SeriesLegend,
    cases: &[Placed<T>],
    names: fn(&T) -> Vec<&str>,
) -> Vec<View> {
    views::by_threads(cases, &COLUMNS, |cases, heading, data| {
        let told: Vec<(usize, &Series)> = cases
            .iter()
            .flat_map(|(run, case)| {
                names(case)
                    .into_iter()
                    .filter_map(|name| Some((*run, of_row(legend, *run, *case, name)?)))
            })
            .collect();
        told.iter()
            .for_each(|(run, series)| write(data, *run, series));
        plot(legend, heading, &told).into_iter().collect()
    })
}

/// The memory of one process of a row.
fn of_row<'a>(
    legend: &'a SeriesLegend,
    run: usize,
    case: &impl SortedCase,
    name: &str,
) -> Option<&'a Series> {
    let own = |series: &&Series| {
        series.allocator == name
            && series.workload == case.workload()
            && series.threads == case.threads()
    };
    legend.runs[run].run.series.iter().find(own)
}

fn write(data: &mut Data, run: usize, series: &Series) {
    let most = |value: fn(&Point) -> Option<u64>| series.points.iter().filter_map(value).max();
    data.row([
        (run + 1).into(),
        plain(&series.workload).into(),
        series.threads.into(),
        plain(&series.allocator).into(),
        plain(&series.cell).into(),
        series.points.len().into(),
        most(|point| Some(point.rss_bytes)).into(),
        most(|point| point.total_dynamic_bytes).into(),
        most(|point| point.requested_live_bytes).into(),
    ]);
}

fn plot(legend: &SeriesLegend, heading: &str, told: &[(usize, &Series)]) -> Option<Plot> {
    let points = || told.iter().flat_map(|(_, series)| &series.points);
    let unit = units::size(points().map(|point| point.rss_bytes).max()? as f64);
    let along = Along::of(points());
    let curve = |series: &Series, value: fn(&Point) -> Option<u64>| {
        let points = series
            .points
            .iter()
            .filter_map(|point| Some((along.place(point), value(point)? as f64)));
        let (places, bytes): (Vec<f64>, Vec<f64>) = points.unzip();
        let kept = thin(&bytes, MOST_POINTS).into_iter();
        let (x, y) = kept
            .map(|kept| (short(places[kept]), short(bytes[kept] / unit.size)))
            .unzip();
        Scatter::new(x, y).mode(Mode::Lines)
    };
    let mut traces: Vec<Trace> = Vec::new();
    // All allocators get the same requests: one line shows them.
    let asked = told.iter().find(|(_, series)| {
        series
            .points
            .iter()
            .any(|point| point.requested_live_bytes.is_some())
    });
    traces.extend(asked.map(|(run, series)| {
        Trace {
            entry: None,
            run: *run,
            drawn: curve(series, |point| point.requested_live_bytes)
                .name("asked for")
                .hover_info(HoverInfo::All),
        }
    }));
    traces.extend(told.iter().map(|(run, series)| {
        Trace {
            entry: legend.entry(&series.allocator),
            run: *run,
            drawn: curve(series, |point| Some(point.rss_bytes))
                .name(legend.label(*run, &series.allocator))
                .hover_info(HoverInfo::All),
        }
    }));
    let layout = Layout::new()
        .x_axis(axes::titled(&along.title()).range_mode(RangeMode::ToZero))
        .y_axis(
            axes::titled(&format!("resident set, {}", unit.name)).range_mode(RangeMode::ToZero),
        );
    Some(Plot {
        title: heading.to_owned(),
        traces,
        layout,
    })
}

/// The horizontal axis of a curve.
enum Along {
    Time,
    /// In a replay in strict order: time there includes the sampling, while this is the same for
    /// all allocators.
    Allocated(PrintedUnit),
}

impl Along {
    fn of<'a>(points: impl Iterator<Item = &'a Point>) -> Along {
        let allocated: Option<Vec<u64>> = points.map(|point| point.allocated_bytes).collect();
        let most = allocated.and_then(|allocated| allocated.into_iter().max());
        most.map_or(Along::Time, |most| {
            Along::Allocated(units::size(most as f64))
        })
    }

    fn place(&self, point: &Point) -> f64 {
        match self {
            Along::Time => point.time_ns as f64 / 1e6,
            Along::Allocated(unit) => point.allocated_bytes.unwrap_or_default() as f64 / unit.size,
        }
    }

    fn title(&self) -> String {
        match self {
            Along::Time => "ms since the start of the process".into(),
            Along::Allocated(unit) => format!("{} allocated so far", unit.name),
        }
    }
}
