//! Each allocator's time over the baseline's, with its interval: over all cases, then case by case.

use super::dot_plot::{self, Dot};
use super::number;
use super::section::{Data, Section, View};
use super::series_legend::SeriesLegend;
use super::views::{self, Placed};
use crate::analyse::{Case, Role};
use crate::report::sheet;
use crate::report::text::plain;

const COLUMNS: [&str; 9] = [
    "run",
    "workload",
    "threads",
    "allocator",
    "ratio",
    "ratio_low",
    "ratio_high",
    "pairs",
    "verdict",
];

pub(super) fn section(legend: &SeriesLegend) -> Section {
    let cases: Vec<Placed<Case>> = legend.all(|told| &told.analysis.cases);
    let cases: Vec<Placed<Case>> = cases
        .into_iter()
        .filter(|(_, case)| !case.whole_process || case.command.is_some())
        .collect();
    let mut views: Vec<View> = overall(legend).into_iter().collect();
    views.extend(views::by_threads(
        &cases,
        &COLUMNS,
        |cases, heading, data| {
            let dots = of_cases(cases, data);
            // The baseline alone has nothing to be compared with.
            let compared = dots
                .iter()
                .any(|dot| dot.interval.is_some() || dot.value != 1.0);
            if compared {
                vec![dot_plot::ratios(
                    legend,
                    heading.to_owned(),
                    dots,
                    &cases[0].1.baseline,
                )]
            } else {
                Vec::new()
            }
        },
    ));
    Section {
        id: "ratio",
        heading: "Time against the baseline".into(),
        text: vec![
            "Left of 1 is faster. The line through a dot is its 95 % interval: where it crosses 1, this run cannot tell. \
             Half and twice are equally far from 1."
                .into(),
        ],
        views,
        ..Section::default()
    }
}

fn of_cases<'a>(cases: &[Placed<'a, Case>], data: &mut Data) -> Vec<Dot<'a>> {
    let mut dots = Vec::new();
    for (run, case) in cases {
        for row in case.rows.iter().filter(|row| row.role != Role::Floor) {
            let Some((numbers, ratio)) = row.numbers().and_then(|n| Some((n, n.ratio?))) else {
                continue;
            };
            let word = sheet::verdict(numbers.verdict);
            let words = format!("{} {word}", sheet::ratio(row, Some(&ratio)));
            dots.push(Dot {
                run: *run,
                name: &row.allocator,
                value: ratio.ratio,
                interval: ratio.interval,
                words,
            });
            data.row([
                (run + 1).into(),
                plain(&case.workload).into(),
                case.threads.into(),
                plain(&row.allocator).into(),
                number(ratio.ratio),
                ratio.interval.map(|(low, _)| low).into(),
                ratio.interval.map(|(_, high)| high).into(),
                ratio.pairs.into(),
                word.into(),
            ]);
        }
    }
    dots
}

/// The geometric mean over all cases of a run, if there are several.
fn overall(legend: &SeriesLegend) -> Option<View> {
    let mut data = Data::new(&[
        "run",
        "allocator",
        "ratio",
        "ratio_low",
        "ratio_high",
        "cases",
    ]);
    let mut dots = Vec::new();
    for (run, told) in legend.runs.iter().enumerate() {
        for (one, (_, words)) in told
            .analysis
            .overall
            .iter()
            .zip(sheet::overall(&told.analysis))
        {
            dots.push(Dot {
                run,
                name: &one.allocator,
                value: one.ratio,
                interval: one.interval,
                words,
            });
            data.row([
                (run + 1).into(),
                plain(&one.allocator).into(),
                number(one.ratio),
                one.interval.map(|(low, _)| low).into(),
                one.interval.map(|(_, high)| high).into(),
                one.cases.into(),
            ]);
        }
    }
    let told = legend
        .runs
        .iter()
        .find(|told| !told.analysis.overall.is_empty())?;
    let title = plain(&sheet::overall_heading(&told.analysis));
    Some(View {
        workload: None,
        plots: vec![dot_plot::ratios(
            legend,
            title,
            dots,
            &told.analysis.baseline,
        )],
        data,
    })
}
