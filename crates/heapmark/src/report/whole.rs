//! The columns of a case whose rows are whole processes.

use super::sheet::{TableColumns, cpu_ratio, memory, memory_title, ratio, verdict};
use super::{text, units};
use crate::analyse::{Case, Numbers, Role, Row, Whole};

/// Sorted by wall time, with the start-up share of a short one beside it.
pub(super) fn columns(table: &mut TableColumns<'_>, case: &Case) {
    let seconds = |value: f64| units::digits(value / 1e9);
    let short = |value: Option<f64>| value.map_or("n/a".into(), units::duration);
    table.column("wall s", |_, n| {
        of(n, |whole| seconds(whole.wall_ns.median))
    });
    table.column("CPU s", |_, n| {
        of(n, |whole| {
            whole.cpu_ns.map_or("-".into(), |cpu| seconds(cpu.median))
        })
    });
    table.spare("CPU / wall", |_, n| {
        of(n, |whole| {
            whole.parallel_share.map_or("-".into(), units::digits)
        })
    });
    table.words(&format!("time / {} [95 %]", case.baseline), |row, n| {
        ratio(row, n.ratio.as_ref())
    });
    table.words("verdict", |_, n| verdict(n.verdict));
    table.spare("CPU time", |row, n| cpu_ratio(row, n.cpu_ratio.as_ref()));
    table.column(memory_title(&table.rows), |_, n| memory(n));
    table.column("longest pause", |_, n| {
        of(n, |whole| {
            if whole.pauses == Some(0.0) {
                "none".into()
            } else {
                short(whole.longest_pause_ns)
            }
        })
    });
    table.spare("longest step", |_, n| {
        of(n, |whole| short(whole.longest_step_ns))
    });
    table.spare("start-up", |_, n| of(n, |whole| short(whole.startup_ns)));
}

fn of(numbers: &Numbers, text: impl Fn(&Whole) -> String) -> String {
    numbers.whole.as_ref().map_or_else(String::new, text)
}

/// Whether another allocator could have changed the row.
pub(super) fn note(row: &Row, numbers: &Numbers) -> Option<String> {
    let responds = numbers.whole.as_ref()?.responds_to_malloc()?;
    match (row.role, responds) {
        (Role::Program, false) => Some("not touched by malloc choice".into()),
        _ => None,
    }
}

/// `n = 12`, if a row's problem has another size than the table's.
pub(super) fn sizes(row: &Row) -> Option<String> {
    let words: Vec<String> = row
        .parameters
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    (!words.is_empty()).then(|| text::list(&words))
}
