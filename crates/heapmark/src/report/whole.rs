//! The columns of a case whose rows are whole processes.

use super::sheet::{Spare, TableColumns, cpu_ratio};
use super::{text, units};
use crate::analyse::{Case, Numbers, Role, Row, Spread};

/// Sorted by wall time, with the start-up share of a short one beside it.
pub(super) fn columns(table: &mut TableColumns<'_>, case: &Case) {
    let short = |value: Option<f64>| Some(value.map_or("n/a".into(), units::duration));
    table.whole("wall s", |whole| Some(seconds(whole.wall_ns)));
    table.whole("CPU s", |whole| whole.cpu_ns.map(seconds));
    table
        .whole("CPU / wall", |whole| {
            whole.parallel_share.map(units::digits)
        })
        .spare = Spare::Early;
    table.judged(&case.baseline);
    table.column("CPU time", cpu_ratio).spare = Spare::Early;
    table.memory();
    table.whole("longest pause", |whole| match whole.pauses {
        Some(0.0) => Some("none".into()),
        _ => short(whole.longest_pause_ns),
    });
    table
        .whole("longest step", |whole| short(whole.longest_step_ns))
        .spare = Spare::Early;
    table
        .whole("start-up", |whole| short(whole.startup_ns))
        .spare = Spare::Early;
}

/// The median of times in nanoseconds.
pub(super) fn seconds(ns: Spread) -> String {
    units::digits(ns.median / 1e9)
}

/// Whether another allocator could have changed the row.
pub(super) fn note(row: &Row, numbers: &Numbers) -> Option<String> {
    let responds = numbers.whole.as_ref()?.responds_to_malloc()?;
    (row.role == Role::Program && !responds).then(|| "not touched by malloc choice".into())
}

/// `n = 12`, if a row's problem has another size than the table's.
pub(super) fn sizes(row: &Row) -> Option<String> {
    let sizes = row.parameters.iter();
    let sizes = text::list(sizes.map(|(name, value)| format!("{name} = {value}")));
    (!sizes.is_empty()).then_some(sizes)
}
