//! Memory over time: what a process held, beside what was asked for.

use super::axes;
use super::cast::Cast;
use super::section::{Data, Plot, Section, Trace};
use super::thin::{short, thin};
use super::views::{self, Placed};
use crate::analyse::{Case, Role, Row};
use crate::report::text::plain;
use crate::report::units;
use crate::store::{Point, Series};
use plotly::common::{HoverInfo, Mode};
use plotly::layout::RangeMode;
use plotly::{Layout, Scatter};

/// Points of a curve in the picture.
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

pub(super) fn section(cast: &Cast) -> Section {
    let cases: Vec<Placed<Case>> = cast.all(|told| &told.analysis.cases);
    Section {
        id: "memory",
        heading: "Memory over time".into(),
        text: vec![
            "Resident set of one process of each allocator; the grey line is what the program had asked for and not given back. The \
             distance between them is what the allocator holds for itself. Points may be thinned, peaks stay; series/ in the run's \
             directory has them all, and other measures of memory."
                .into(),
        ],
        views: views::by_threads(&cases, &COLUMNS, |cases, heading, data| {
            let told: Vec<(usize, &Row, &Series)> = cases.iter().flat_map(|(run, case)| told(cast, *run, case)).collect();
            told.iter().for_each(|(run, row, series)| write(data, *run, row, series));
            plot(cast, heading, &told).into_iter().collect()
        }),
        ..Section::default()
    }
}

/// Rows with numbers and what one process of each held.
fn told<'a>(cast: &'a Cast, run: usize, case: &'a Case) -> Vec<(usize, &'a Row, &'a Series)> {
    let of_row = |row: &Row| {
        let own = |series: &&Series| {
            series.allocator == row.allocator && series.workload == case.workload && series.threads == case.threads
        };
        cast.runs[run].run.series.iter().find(own)
    };
    // Companions are asked for the same and would only cover the others.
    let ranked = case.rows.iter().filter(|row| !matches!(row.role, Role::Floor | Role::Shadow));
    let rows = ranked.filter(|row| row.numbers().is_some());
    rows.filter_map(|row| Some((run, row, of_row(row)?))).collect()
}

fn write(data: &mut Data, run: usize, row: &Row, series: &Series) {
    let most = |value: fn(&Point) -> Option<u64>| series.points.iter().filter_map(value).max();
    data.row([
        (run + 1).into(),
        plain(&series.workload).into(),
        series.threads.into(),
        plain(&row.allocator).into(),
        plain(&series.cell).into(),
        series.points.len().into(),
        most(|point| Some(point.rss_bytes)).into(),
        most(|point| point.total_dynamic_bytes).into(),
        most(|point| point.requested_live_bytes).into(),
    ]);
}

fn plot(cast: &Cast, heading: &str, told: &[(usize, &Row, &Series)]) -> Option<Plot> {
    let peak = told.iter().flat_map(|(_, _, series)| &series.points).map(|point| point.rss_bytes).max()?;
    let unit = units::size(peak as f64);
    let curve = |series: &Series, value: fn(&Point) -> Option<u64>| {
        let points = series.points.iter().filter_map(|point| Some((point.time_ns, value(point)? as f64)));
        let (times, bytes): (Vec<u64>, Vec<f64>) = points.unzip();
        let kept = thin(&bytes, MOST_POINTS).into_iter();
        let (x, y) = kept.map(|place| (short(times[place] as f64 / 1e6), short(bytes[place] / unit.size))).unzip();
        Scatter::new(x, y).mode(Mode::Lines)
    };
    let mut traces: Vec<Trace> = Vec::new();
    // All allocators are asked for the same: one line says it.
    let asked =
        told.iter().find(|(_, _, series)| series.points.iter().any(|point| point.requested_live_bytes.is_some()));
    traces.extend(asked.map(|(run, _, series)| Trace {
        member: None,
        run: *run,
        drawn: curve(series, |point| point.requested_live_bytes).name("asked for").hover_info(HoverInfo::All),
    }));
    traces.extend(told.iter().map(|(run, row, series)| {
        Trace {
            member: cast.member(&row.allocator),
            run: *run,
            drawn: curve(series, |point| Some(point.rss_bytes))
                .name(cast.label(*run, &row.allocator))
                .hover_info(HoverInfo::All),
        }
    }));
    let layout = Layout::new()
        .x_axis(axes::titled("ms since the start of the process").range_mode(RangeMode::ToZero))
        .y_axis(axes::titled(&format!("resident set, {}", unit.name)).range_mode(RangeMode::ToZero));
    Some(Plot { title: heading.to_owned(), traces, layout })
}
