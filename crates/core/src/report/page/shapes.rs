//! Memory over operations, of kernels that take points themselves: what is resident and what is live,
//! both over the most live bytes, between the lines that the tables name.

use super::downsample::{short, thin};
use super::section::{Entry, Plot, Section, Trace};
use super::series_legend::{SeriesLegend, in_chart};
use super::views::{self, Placed, PlacedRow};
use super::{axes, figure};
use crate::analyse::{Role, Table, TableRow};
use crate::metric::{self, FigureRole, MemoryShape};
use crate::report::units;
use crate::store::{Point, Series};
use serde_json::{Value, json};

/// The name of the line of the most live bytes.
const LIVE: &str = "1";
/// The most points of a curve in the chart.
const MOST_POINTS: usize = 400;
/// A curve with at most this many points shows them as markers.
const FEW_POINTS: usize = 30;
/// The logarithmic scale begins at this part of the most live bytes, or above.
const LEAST: f64 = 0.1;
/// The scale reaches beyond what is drawn by this factor.
const MARGIN: f64 = 1.15;
/// Lines that differ by less than this share are drawn as one.
const SAME: f64 = 0.05;

pub fn section(legend: &SeriesLegend) -> Section {
    let mut cases: Vec<Placed> = legend.all(|run| &run.analysis.footprints);
    cases.retain(|(_, case)| has_lines(case));
    Section::of_views(
        "shapes",
        "Memory over operations",
        "Resident heap of one process of each allocator over the most bytes that are live (fan-in, relay: that can be), at the \
             points that the workload names (of several in one place the highest); the dotted curve is what is live. 1: nothing is wasted. No \
             reuse: no byte that was freed is ever used again, which is the worst that an allocator can show. Packing: one \
             that exists, with all lifetimes known. The scale is logarithmic.",
        views::by_threads(&cases, |cases, heading, data| {
            let mut curves = Vec::new();
            for placed in views::rows(cases) {
                let Some(curve) = Curve::of(legend, placed) else {
                    continue;
                };
                let highest = curve.points().map(|(_, heap, _)| heap);
                let mut numbers = json!({
                        "process": curve.series.cell,
                        "points": curve.series.points.len(),
                        "most_live_bytes": curve.most_live as u64,
                        "highest_ratio": highest.fold(0.0, f64::max),
                });
                for (_, key) in lines() {
                    numbers[key] = json!(curve.row.median(key));
                }
                views::add_row(data, curve.subject, placed.case, numbers);
                curves.push(curve);
            }
            plot(legend, heading, &curves)
        }),
    )
}

/// The lines besides the one of the most live bytes, each with its name and its metric.
fn lines() -> impl Iterator<Item = (&'static str, &'static str)> {
    metric::figures()
        .filter(|metric| metric.role() == Some(FigureRole::Line))
        .filter_map(|metric| Some((metric.column()?, metric.key)))
}

/// Whether the memory of a case is drawn between lines.
pub fn has_lines(case: &Table) -> bool {
    lines().any(|(_, key)| case.rows.iter().any(|row| row.cell(key).is_some()))
}

/// A point of a chart: its place along the axis, its height, and its tooltip.
type Place = (f64, f64, String);

/// The curve of one process of an allocator.
struct Curve<'a> {
    subject: Entry<'a>,
    row: &'a TableRow,
    series: &'a Series,
    /// The process's memory before the first operation that does not belong to the allocator.
    before_bytes: u64,
    most_live: f64,
}

impl<'a> Curve<'a> {
    fn of(
        legend: &'a SeriesLegend,
        PlacedRow { subject, case, row }: PlacedRow<'a>,
    ) -> Option<Curve<'a>> {
        let run = legend.runs[subject.run].run;
        let series = run.series_of(case, subject.name)?;
        let measurement = run
            .records
            .iter()
            .find(|record| record.cell == series.cell)?
            .measurement
            .as_ref()?;
        let most_live = measurement.requested_peak_bytes as f64;
        (most_live > 0.0).then_some(Curve {
            subject,
            row,
            series,
            before_bytes: measurement
                .footprint
                .as_ref()?
                .begin
                .without_harness()
                .saturating_sub(measurement.held_before_bytes),
            most_live,
        })
    }

    /// Each point with its resident heap and its live bytes, over the most live bytes.
    fn points(&self) -> impl Iterator<Item = (&'a Point, f64, f64)> {
        let before_bytes = self.before_bytes;
        let most_live = self.most_live;
        self.series.points.iter().map(move |point| {
            let heap = point.rss_bytes.saturating_sub(before_bytes);
            let live = point.requested_live_bytes.unwrap_or(0);
            (point, heap as f64 / most_live, live as f64 / most_live)
        })
    }
}

fn plot(legend: &SeriesLegend, heading: &str, curves: &[Curve]) -> Option<Plot> {
    let base = (curves.iter())
        .find(|curve| curve.row.role == Role::Baseline)
        .or(curves.first())?;
    let along = Along::of(curves);
    let live = base.points().map(|(point, _, live)| {
        let words = format!("<b>live</b><br>{}", units::bytes(live * base.most_live));
        (along.place(point), short(live), words)
    });
    let live = shown(live.collect());
    let heaps: Vec<(Entry, Vec<Place>)> = (curves.iter())
        .map(|curve| {
            let label = legend.label(curve.subject);
            let points = curve.points().map(|(point, heap, _)| {
                let bytes = units::bytes(heap * curve.most_live);
                let words = format!("<b>{label}</b><br>{}, {bytes}", units::times(heap));
                (along.place(point), short(heap), words)
            });
            (curve.subject, shown(points.collect()))
        })
        .collect();
    let places = || heaps.iter().flat_map(|(_, places)| places).chain(&live);
    let end = places().map(|(place, ..)| *place).fold(0.0, f64::max);
    let named = lines().flat_map(|(name, key)| named_lines(name, key, curves));
    let lines: Vec<(String, f64)> = [(LIVE.to_owned(), 1.0)].into_iter().chain(named).collect();
    let ratios = places().map(|(_, ratio, _)| *ratio);
    let heights: Vec<f64> = (ratios.filter(|ratio| *ratio >= LEAST))
        .chain(lines.iter().map(|(_, ratio)| *ratio))
        .collect();
    let lowest = heights.iter().copied().fold(1.0, f64::min);
    let highest = heights.iter().copied().fold(1.0, f64::max);
    let range = [lowest / MARGIN, highest * MARGIN].map(f64::log10);
    let live = Trace::new(None, base.subject.run, curve_of("live", "lines", &live));
    let heaps = (heaps.iter()).map(|(subject, places)| {
        let mode = if places.len() > FEW_POINTS {
            "lines"
        } else {
            "lines+markers"
        };
        legend.trace(*subject, curve_of(&legend.label(*subject), mode, places))
    });
    let traces = lines
        .into_iter()
        .map(|(words, ratio)| Trace::new(None, base.subject.run, across(&words, end, ratio)))
        .chain([live])
        .chain(heaps)
        .collect();
    Some(Plot::new(
        heading,
        traces,
        axes::from_zero(&along.title()),
        axes::within(
            axes::ratios("resident heap / most live bytes", &heights),
            range,
        ),
    ))
}

/// The points to draw: of several in one place, as before and after frees, the highest; in the last place, all.
fn shown(points: Vec<Place>) -> Vec<Place> {
    let last = points.last().map(|(place, ..)| *place);
    points
        .chunk_by(|one, next| one.0 == next.0)
        .flat_map(|all| {
            let highest = all.iter().max_by(|one, other| one.1.total_cmp(&other.1));
            if Some(all[0].0) == last {
                all.to_vec()
            } else {
                highest.into_iter().cloned().collect()
            }
        })
        .filter(|(_, ratio, _)| *ratio > 0.0)
        .collect()
}

fn curve_of(label: &str, mode: &str, places: &[Place]) -> Value {
    let ratios: Vec<f64> = places.iter().map(|(_, ratio, _)| *ratio).collect();
    let kept = thin(&ratios, MOST_POINTS).into_iter();
    views::scatter(label, mode, kept.map(|kept| places[kept].clone()))
}

/// `no reuse: 8.00x`; or, if the line differs between allocators, the lowest and the highest, as in `no reuse, glibc: 1.38x`.
fn named_lines(name: &str, key: &str, curves: &[Curve]) -> Vec<(String, f64)> {
    let mut all: Vec<(&str, f64)> = (curves.iter())
        .filter_map(|curve| Some((curve.subject.name, curve.row.median(key)?)))
        .collect();
    all.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let (Some(&lowest), Some(&highest)) = (all.first(), all.last()) else {
        return Vec::new();
    };
    if highest.1 / lowest.1 - 1.0 < SAME {
        return vec![(format!("{name}: {}", units::times(highest.1)), highest.1)];
    }
    [lowest, highest]
        .map(|(whose, ratio)| {
            let words = format!("{name}, {}: {}", in_chart(whose), units::times(ratio));
            (words, ratio)
        })
        .into()
}

/// A horizontal line with a text above its start, where even a narrow chart has room.
fn across(words: &str, end: f64, ratio: f64) -> Value {
    // At the line of the most live bytes, the scale has a mark already.
    let written = if words == LIVE { "" } else { words };
    let line = figure::scatter(words, "lines+text", [0.0, end], [short(ratio); 2]);
    figure::with_text(line, &[written.to_owned(), String::new()], "top right")
}

/// What the horizontal axis of a chart shows.
enum Along {
    /// Bytes allocated so far.
    Volume(units::PrintedUnit),
    /// The time, for cases in which time passes without allocations.
    Time,
}

impl Along {
    fn of(curves: &[Curve]) -> Along {
        // In cases with this figure, time passes while nothing is allocated.
        let returned = metric::key_in(FigureRole::Held(MemoryShape::Returned));
        if curves
            .iter()
            .any(|curve| curve.row.cell(returned).is_some())
        {
            return Along::Time;
        }
        let most = curves
            .iter()
            .flat_map(|curve| &curve.series.points)
            .filter_map(|point| point.allocated_bytes)
            .max();
        Along::Volume(units::size(most.unwrap_or(0) as f64))
    }

    fn place(&self, point: &Point) -> f64 {
        short(match self {
            Along::Volume(unit) => point.allocated_bytes.unwrap_or(0) as f64 / unit.size,
            Along::Time => point.time_ns as f64 / 1e9,
        })
    }

    fn title(&self) -> String {
        match self {
            Along::Volume(unit) => format!("{} allocated so far", unit.name),
            Along::Time => "seconds since the first operation".into(),
        }
    }
}
