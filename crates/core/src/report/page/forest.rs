//! Each allocator's time over the baseline's, with its interval, case by case.

use super::dot_plot::{self, Dot};
use super::section::{Data, Section};
use super::series_legend::{SeriesLegend, in_chart};
use super::views::{self, Placed, PlacedRow};
use crate::analyse::Role;
use crate::report::sheet;
use serde_json::json;

pub fn section(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(|case| !case.whole_process || case.command.is_some());
    let of_cases = views::by_threads(&cases, |cases, heading, data| {
        let dots = of_cases(cases, data);
        // The baseline alone has nothing to be compared with.
        let compared = dots
            .iter()
            .any(|dot| dot.interval.is_some() || dot.value != 1.0);
        let baselines = views::distinct(cases.iter().map(|(_, case)| case.baseline.as_str()));
        let baseline = match baselines[..] {
            [one] => one,
            _ => "the run's baseline",
        };
        compared.then(|| dot_plot::ratios(legend, heading.to_owned(), dots, baseline))
    });
    Section::of_views(
        "ratio",
        "Time against the baseline",
        "Left of 1 is faster. The line through a dot is its 95 % interval: where it crosses 1, this run cannot tell. \
         Half and twice are equally far from 1.",
        of_cases,
    )
}

fn of_cases<'a>(cases: &[Placed<'a>], data: &mut Data) -> Vec<Dot<'a>> {
    let mut dots = Vec::new();
    for PlacedRow { subject, case, row } in views::rows(cases) {
        let Some(ratio) = row.time().ratio.filter(|_| row.role != Role::Floor) else {
            continue;
        };
        let word = sheet::verdict(row, "ns_per_op").to_string();
        let (low, high) = ratio.interval.unzip();
        views::add_row(
            data,
            subject,
            case,
            json!({
                "ratio": ratio.ratio,
                "ratio_low": low,
                "ratio_high": high,
                "pairs": ratio.pairs,
                "verdict": word,
            }),
        );
        dots.push(Dot {
            subject,
            value: ratio.ratio,
            interval: ratio.interval,
            words: format!("{} {word}", in_chart(&sheet::time_ratio(row).to_string())),
        });
    }
    dots
}
