//! The columns of a case whose rows are whole processes.

use super::sheet::{Spare, TableColumns, cpu_ratio};
use super::{text, units};
use crate::analyse::{Case, Numbers, Role, Row};

/// Sorted by wall time, with the start-up share of a short one beside it.
pub fn columns(table: &mut TableColumns<'_>, case: &Case) {
    table.metric("wall s", "wall_ns", seconds);
    table.metric("CPU s", "cpu_ns", seconds);
    let busy = |n: &Numbers| Some(n.median("cpu_ns")? / n.median("wall_ns")?);
    table
        .column("CPU / wall", |_, n| {
            busy(n).map_or("-".into(), units::digits)
        })
        .spare = Spare::Early;
    table.judged(&case.baseline);
    table.column("CPU time", cpu_ratio).spare = Spare::Early;
    table.memory();
    let short = |n: &Numbers, key| n.median(key).map_or("n/a".into(), units::duration);
    table.column("longest pause", |_, n| match n.median("pauses") {
        Some(0.0) => "none".into(),
        _ => short(n, "longest_pause_ns"),
    });
    for (title, key) in [
        ("longest step", "longest_step_ns"),
        ("start-up", "startup_ns"),
    ] {
        table.column(title, |_, n| short(n, key)).spare = Spare::Early;
    }
}

/// A time in nanoseconds.
pub fn seconds(ns: f64) -> String {
    units::digits(ns / 1e9)
}

/// Whether another allocator could have changed the row.
pub fn note(row: &Row, numbers: &Numbers) -> Option<String> {
    let responds = numbers.responds_to_malloc()?;
    (row.role == Role::Program && !responds).then(|| "not touched by malloc choice".into())
}

/// `n = 12`, if a row's problem has another size than the table's.
pub fn sizes(row: &Row) -> Option<String> {
    let sizes = row.parameters.iter();
    let sizes = text::list(sizes.map(|(name, value)| format!("{name} = {value}")));
    (!sizes.is_empty()).then_some(sizes)
}
