//! The columns of a case whose rows are whole processes.

use super::document::Cell;
use super::sheet::{SheetOf, over_baseline};
use super::text;
use crate::analyse::{Role, Table, TableRow};

/// Adds the columns of whole processes: times, the ratio and its verdict, memory, pauses and start-up.
pub fn columns(table: &mut SheetOf<TableRow>, case: &Table) {
    table.add("wall s", |row| seconds(row, "wall_ns"));
    table.add("CPU s", |row| seconds(row, "cpu_ns"));
    let busy = |row: &TableRow| Some(row.median("cpu_ns")? / row.median("wall_ns")?);
    table.add("CPU / wall", busy);
    table.judged(&case.baseline);
    table.add("CPU time", |row| over_baseline(row, "cpu_ns_per_op"));
    table.memory();
    let of_some = |row: &TableRow, key| row.cell(key).map_or("n/a".into(), Cell::from);
    table.add("longest pause", |row| match row.median("pauses") {
        Some(0.0) => "none".into(),
        _ => of_some(row, "longest_pause_ns"),
    });
    for (title, key) in [
        ("longest step", "longest_step_ns"),
        ("start-up", "startup_ns"),
    ] {
        table.add(title, |row| of_some(row, key));
    }
}

/// A time, for a column of seconds.
pub fn seconds(row: &TableRow, key: &str) -> Option<f64> {
    Some(row.median(key)? / 1e9)
}

/// A note if another allocator could not have changed the row.
pub fn note(row: &TableRow) -> Option<String> {
    let responds = row.responds_to_malloc()?;
    (row.role == Role::Program && !responds).then(|| "not touched by malloc choice".into())
}

/// The size of the row's problem, if it differs from the table's: `n = 12`.
pub fn sizes(row: &TableRow) -> Option<String> {
    let sizes = row.parameters.iter();
    let sizes = text::list(sizes.map(|(name, value)| format!("{name} = {value}")));
    (!sizes.is_empty()).then_some(sizes)
}
