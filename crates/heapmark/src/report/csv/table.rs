//! The derived export of every kind of run: a line per metric of each row.

use super::write;
use crate::analyse::{Table, TableCell, TableRow};
use crate::report::text::plain;
use serde::Serialize;

/// A metric of a row, or a row without any.
#[derive(Default, Serialize)]
struct MetricLine {
    workload: String,
    threads: u32,
    allocator: String,
    metric: &'static str,
    label: String,
    unit: &'static str,
    median: Option<f64>,
    min: Option<f64>,
    max: Option<f64>,
    n: Option<u64>,
    ratio: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: &'static str,
    outcome: String,
}

/// One line per metric of each row; one without numbers for a row that has none.
pub fn tables(tables: &[Table]) -> String {
    let mut all = Vec::new();
    for table in tables {
        all.extend(table.rows.iter().flat_map(|row| lines(table, row)));
    }
    write(&all)
}

fn lines(table: &Table, row: &TableRow) -> Vec<MetricLine> {
    let head = |outcome| MetricLine {
        workload: plain(&table.workload),
        threads: table.threads,
        allocator: plain(&row.allocator),
        outcome,
        ..MetricLine::default()
    };
    match &row.failed {
        Some(failed) => vec![head(plain(&failed.summary()))],
        None if row.cells.is_empty() => vec![head("missing".into())],
        None => row
            .cells
            .iter()
            .map(|cell| line(head("ok".into()), cell))
            .collect(),
    }
}

fn line(head: MetricLine, cell: &TableCell) -> MetricLine {
    let interval = cell.ratio.and_then(|ratio| ratio.interval);
    MetricLine {
        metric: cell.metric.key,
        label: plain(&cell.label),
        unit: cell.metric.unit.word(),
        median: Some(cell.spread.median),
        min: Some(cell.spread.min),
        max: Some(cell.spread.max),
        n: Some(cell.n),
        ratio: cell.ratio.map(|ratio| ratio.ratio),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
        verdict: cell
            .verdict
            .map_or("", |verdict| verdict.word_of(cell.metric)),
        ..head
    }
}
