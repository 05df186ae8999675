//! The derived export of every kind of run: a line per metric of each row.

use super::{CsvColumns, write};
use crate::analyse::{Table, TableCell, TableRow};
use serde_json::{Value, json};

const COLUMNS: CsvColumns = &[
    ("workload", "/workload"),
    ("threads", "/threads"),
    ("allocator", "/allocator"),
    ("metric", "/cell/metric"),
    ("label", "/cell/label"),
    ("unit", "/unit"),
    ("median", "/cell/spread/median"),
    ("min", "/cell/spread/min"),
    ("max", "/cell/spread/max"),
    ("n", "/cell/n"),
    ("ratio", "/cell/ratio/ratio"),
    ("low", "/cell/ratio/interval/0"),
    ("high", "/cell/ratio/interval/1"),
    ("verdict", "/verdict"),
    ("outcome", "/outcome"),
];

/// One line per metric of each row; a row without numbers has a single line.
pub fn tables(tables: &[Table]) -> String {
    let mut all = Vec::new();
    for table in tables {
        all.extend(table.rows.iter().flat_map(|row| lines(table, row)));
    }
    write(COLUMNS, &all)
}

fn lines(table: &Table, row: &TableRow) -> Vec<Value> {
    let line = |outcome: &str, cell: Option<&TableCell>| {
        json!({
            "workload": table.workload,
            "threads": table.threads,
            "allocator": row.allocator,
            "outcome": outcome,
            "cell": cell,
            "unit": cell.map(|cell| cell.metric.unit.word()),
            "verdict": cell.and_then(|cell| Some(cell.verdict?.word_of(cell.metric))),
        })
    };
    match &row.failed {
        Some(failed) => vec![line(&failed.summary(), None)],
        None if row.cells.is_empty() => vec![line("missing", None)],
        None => row
            .cells
            .iter()
            .map(|cell| line("ok", Some(cell)))
            .collect(),
    }
}
