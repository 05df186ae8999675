//! The columns of a case whose rows are whole processes.

use super::sheet::{Spare, TableColumns, cpu_ratio};
use super::{text, units};
use crate::analyse::{Role, Table, TableRow};

/// Sorted by wall time, with the start-up share of a short one beside it.
pub fn columns(table: &mut TableColumns<'_>, case: &Table) {
    table.metric("wall s", "wall_ns", seconds);
    table.metric("CPU s", "cpu_ns", seconds);
    let busy = |row: &TableRow| Some(row.median("cpu_ns")? / row.median("wall_ns")?);
    table
        .column("CPU / wall", |row| {
            busy(row).map_or("-".into(), units::digits)
        })
        .spare = Spare::Early;
    table.judged(&case.baseline);
    table.column("CPU time", cpu_ratio).spare = Spare::Early;
    table.memory();
    let short = |row: &TableRow, key| row.median(key).map_or("n/a".into(), units::duration);
    table.column("longest pause", |row| match row.median("pauses") {
        Some(0.0) => "none".into(),
        _ => short(row, "longest_pause_ns"),
    });
    for (title, key) in [
        ("longest step", "longest_step_ns"),
        ("start-up", "startup_ns"),
    ] {
        table.column(title, |row| short(row, key)).spare = Spare::Early;
    }
}

/// A time in nanoseconds.
pub fn seconds(ns: f64) -> String {
    units::digits(ns / 1e9)
}

/// Whether another allocator could have changed the row.
pub fn note(row: &TableRow) -> Option<String> {
    let responds = row.responds_to_malloc()?;
    (row.role == Role::Program && !responds).then(|| "not touched by malloc choice".into())
}

/// `n = 12`, if a row's problem has another size than the table's.
pub fn sizes(row: &TableRow) -> Option<String> {
    let sizes = row.parameters.iter();
    let sizes = text::list(sizes.map(|(name, value)| format!("{name} = {value}")));
    (!sizes.is_empty()).then_some(sizes)
}
