//! Cases of all runs sorted into views: one per workload, in it a chart per thread count with all
//! runs side by side.

use super::figure;
use super::section::{Data, Entry, Plot, View};
pub use crate::analyse::distinct;
use crate::analyse::{Table, TableRow};
pub use crate::report::heading::heading_of as heading;
use serde::Serialize;
use serde_json::{Value, json};

/// A table, with the index of its run.
pub type Placed<'a> = (usize, &'a Table);

/// A row with numbers, its case, and the run and allocator that it belongs to.
#[derive(Clone, Copy)]
pub struct PlacedRow<'a> {
    pub subject: Entry<'a>,
    pub case: &'a Table,
    pub row: &'a TableRow,
}

impl PlacedRow<'_> {
    /// Millions of operations per second.
    pub fn rate(&self) -> f64 {
        self.row.rate().median
    }
}

/// All rows with numbers.
pub fn rows<'a>(cases: &[Placed<'a>]) -> Vec<PlacedRow<'a>> {
    cases
        .iter()
        .flat_map(|&(run, case)| {
            case.measured().map(move |row| PlacedRow {
                subject: Entry {
                    run,
                    name: &row.allocator,
                },
                case,
                row,
            })
        })
        .collect()
}

/// The rows that rank.
pub fn ranked<'a>(cases: &[Placed<'a>]) -> Vec<PlacedRow<'a>> {
    let mut rows = rows(cases);
    rows.retain(|placed| !placed.row.role.is_companion());
    rows
}

/// Adds the numbers of an allocator in a case.
pub fn add_row(data: &mut Data, subject: Entry, case: &Table, numbers: Value) {
    let mut row = json!({
        "run": subject.run + 1,
        "workload": case.workload,
        "threads": case.threads,
        "allocator": subject.name,
    });
    let numbers = numbers.as_object().expect("numbers name their columns");
    for (column, number) in numbers {
        row[column] = number.clone();
    }
    data.row(row);
}

/// Points of one row, each with its tooltip.
pub fn scatter<X: Serialize, Y: Serialize>(
    label: &str,
    mode: &str,
    points: impl IntoIterator<Item = (X, Y, String)>,
) -> Value {
    let (x, y, tooltips): (Vec<X>, Vec<Y>, Vec<String>) = points.into_iter().collect();
    figure::with_hover_text(figure::scatter(label, mode, x, y), tooltips)
}

/// A view per workload. `draw` makes the charts of one thread count and records their data; empty
/// views and charts are left out. Runs with other parameters, or another command, have charts of
/// their own.
pub fn by_threads<'a, P: IntoIterator<Item = Plot>>(
    cases: &[Placed<'a>],
    draw: impl Fn(&[Placed<'a>], &str, &mut Data) -> P,
) -> Vec<View> {
    by_workload(cases, |cases, _, data| {
        let mut plots = Vec::new();
        for cases in grouped(cases, |&(_, case)| (case.threads, &case.work)) {
            plots.extend(draw(&cases, &heading(cases[0].1), data));
        }
        plots
    })
}

/// A view per workload, with charts over all its thread counts.
pub fn by_workload<'a, P: IntoIterator<Item = Plot>>(
    cases: &[Placed<'a>],
    draw: impl Fn(&[Placed<'a>], &str, &mut Data) -> P,
) -> Vec<View> {
    let mut views = Vec::new();
    for cases in grouped(cases, |(_, case)| case.workload.to_owned()) {
        let workload = cases[0].1.workload.clone();
        let mut data = Data::default();
        let mut plots = Vec::from_iter(draw(&cases, &workload, &mut data));
        plots.retain(|plot| !plot.traces.is_empty());
        if !plots.is_empty() {
            views.push(View {
                workload: Some(workload),
                plots,
                data,
            });
        }
    }
    views
}

/// Groups items with the same key, in the order in which the keys first occur.
pub fn grouped<T: Copy, K: PartialEq>(items: &[T], key: impl Fn(&T) -> K) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| key(&group[0]) == key(item)) {
            Some(group) => group.push(*item),
            None => groups.push(vec![*item]),
        }
    }
    groups
}
