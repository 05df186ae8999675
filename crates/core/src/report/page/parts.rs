//! Where the time of an operation goes, a bar for each allocator in each case: a table that needs
//! no script.

use super::section::{PartsBar, PartsChart, Section};
use super::series_legend::SeriesLegend;
use super::views::{self, PlacedRow};
use crate::analyse::{Table, TableRow};
use crate::report::units::{self, PrintedUnit};

pub fn section(legend: &SeriesLegend) -> Section {
    let cases = legend.cases(Table::times_operations);
    let cases = views::grouped(&cases, |&(_, case)| {
        (case.workload.as_str(), case.threads, case.work.as_slice())
    });
    let charts = cases.iter().filter_map(|cases| chart(legend, cases));
    Section {
        id: "parts".into(),
        heading: "Where the time goes".into(),
        text: vec![
            "The time of one operation, medians over processes. Harness: what the null allocator takes. Kernel: system time \
             above that, for page faults and system calls. Rest: the allocator's own code, cache misses and waiting."
                .into(),
        ],
        parts: charts.collect(),
        ..Section::default()
    }
}

fn chart(legend: &SeriesLegend, cases: &[views::Placed]) -> Option<PartsChart> {
    let mut rows = views::rows(cases);
    rows.retain(|placed| placed.row.parts.is_some());
    let total_ns = |placed: &PlacedRow| placed.row.time().spread.median;
    rows.sort_by(|a, b| total_ns(a).total_cmp(&total_ns(b)));
    let unit = units::time(total_ns(rows.first()?));
    let most_ns = total_ns(rows.last()?);
    Some(PartsChart {
        workload: cases[0].1.workload.clone(),
        heading: views::heading(cases[0].1),
        unit: unit.name,
        bars: rows
            .iter()
            .filter_map(|placed| {
                let parts_ns = parts_ns(placed.row)?;
                Some(PartsBar {
                    entry: legend.entry(placed.subject.name),
                    name: placed.subject.name.to_owned() + &legend.suffix(placed.subject.run),
                    total: unit.digits(total_ns(placed)),
                    widths: parts_ns.map(|ns| (ns / most_ns * 1e4).round() / 100.0),
                    words: words(placed.row, unit)?,
                })
            })
            .collect(),
    })
}

/// Returns the nanoseconds of harness, kernel and rest. As differences of medians, these may be a little below zero.
fn parts_ns(row: &TableRow) -> Option<[f64; 3]> {
    let parts = row.parts?;
    Some([parts.harness_ns, parts.kernel_ns, parts.allocator_ns].map(|ns| ns.max(0.0)))
}

/// `harness 1.20, kernel 0.31, rest 14.2 ns/op; 0.02 faults/op`.
fn words(row: &TableRow, unit: PrintedUnit) -> Option<String> {
    let [harness, kernel, rest] = parts_ns(row)?.map(|ns| unit.digits(ns));
    let faults = units::digits(row.parts?.faults);
    Some(format!(
        "harness {harness}, kernel {kernel}, rest {rest} {}; {faults} faults/op",
        unit.name
    ))
}
