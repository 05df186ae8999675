//! The effect of more threads.

use super::pareto::rate;
use super::section::{Data, Plot, Section, Trace};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed};
use super::{axes, number};
use crate::analyse::{Case, Role, Spread};
use crate::report::text::{count, plain};
use plotly::common::{HoverInfo, Mode};
use plotly::{Layout, Scatter};

const COLUMNS: [&str; 7] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "mops_per_s",
    "mops_per_s_min",
    "mops_per_s_max",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed<Case>> = legend.all(|told| &told.analysis.cases);
    let cases: Vec<Placed<Case>> = cases
        .into_iter()
        .filter(|(_, case)| case.times_operations())
        .collect();
    Section {
        id: "scaling",
        heading: "Scaling over threads".into(),
        text: vec![
            "Operations of all threads together, medians over processes; both scales are logarithmic. A line that rises as \
             steeply as the grey one doubles with the threads; one that is flat gains nothing; one that falls loses."
                .into(),
        ],
        views: views::by_workload(&cases, &COLUMNS, |cases, data| plot(legend, cases, data).into_iter().collect()),
        ..Section::default()
    }
}

/// An allocator of a run over thread counts.
struct ScalingLine<'a> {
    run: usize,
    name: &'a str,
    points: Vec<(u32, Spread)>,
}

fn plot(legend: &SeriesLegend, cases: &[Placed<Case>], data: &mut Data) -> Option<Plot> {
    let mut counts: Vec<u32> = cases.iter().map(|(_, case)| case.threads).collect();
    counts.sort_unstable();
    counts.dedup();
    if counts.len() < 2 {
        return None;
    }
    let mut lines: Vec<ScalingLine> = Vec::new();
    for (run, case) in cases {
        for row in case
            .rows
            .iter()
            .filter(|row| !matches!(row.role, Role::Floor | Role::AaCopy))
        {
            let Some(numbers) = row.numbers() else {
                continue;
            };
            let point = (case.threads, numbers.mops_per_s);
            match lines
                .iter_mut()
                .find(|line| (line.run, line.name) == (*run, row.allocator.as_str()))
            {
                Some(line) => line.points.push(point),
                None => lines.push(ScalingLine {
                    run: *run,
                    name: &row.allocator,
                    points: vec![point],
                }),
            }
            data.row([
                (run + 1).into(),
                plain(&case.workload).into(),
                case.threads.into(),
                plain(&row.allocator).into(),
                number(numbers.mops_per_s.median),
                number(numbers.mops_per_s.min),
                number(numbers.mops_per_s.max),
            ]);
        }
    }
    let rates: Vec<f64> = lines
        .iter()
        .flat_map(|line| line.points.iter().map(|(_, rate)| rate.median))
        .collect();
    let mut traces: Vec<Trace> = lines.iter_mut().map(|line| trace(legend, line)).collect();
    traces.extend(proportional(&counts, &rates));
    let layout = Layout::new()
        .x_axis(axes::threads(&counts))
        .y_axis(axes::logarithmic("operations per second", &rates, rate));
    (!lines.is_empty()).then(|| Plot {
        title: plain(&cases[0].1.workload),
        traces,
        layout,
    })
}

fn trace(legend: &SeriesLegend, ScalingLine { run, name, points }: &mut ScalingLine) -> Trace {
    points.sort_by_key(|(threads, _)| *threads);
    let label = legend.label(*run, name);
    let hover = |(threads, spread): &(u32, Spread)| {
        let threads = count(*threads as usize, "thread");
        format!(
            "<b>{label}</b>, {threads}<br>{} ({} to {})",
            rate(spread.median),
            rate(spread.min),
            rate(spread.max)
        )
    };
    let (x, y) = points
        .iter()
        .map(|(threads, spread)| (f64::from(*threads), spread.median))
        .unzip();
    let drawn = Scatter::new(x, y)
        .name(&label)
        .mode(Mode::LinesMarkers)
        .hover_info(HoverInfo::Text)
        .hover_text_array(points.iter().map(hover).collect::<Vec<_>>());
    Trace {
        entry: legend.entry(name),
        run: *run,
        drawn,
    }
}

/// A line that doubles with the threads, through the middle of the chart.
fn proportional(counts: &[u32], rates: &[f64]) -> Option<Trace> {
    let (first, last) = (f64::from(*counts.first()?), f64::from(*counts.last()?));
    let middle = rates.iter().map(|rate| rate.ln()).sum::<f64>() / rates.len() as f64;
    let of_one = middle.exp() / (first * last).sqrt();
    let drawn = Scatter::new(vec![first, last], vec![of_one * first, of_one * last])
        .name("in proportion")
        .mode(Mode::Lines)
        .hover_info(HoverInfo::Skip);
    Some(Trace {
        entry: None,
        run: 0,
        drawn,
    })
}
