//! The tables of a run that counted events.

use super::document::{Cell, Sheet};
use super::heading::heading_of;
use super::sheet::{SheetOf, fewer, missing, numberless, over_baseline};
use crate::analyse::{Analysis, Table, TableCell, TableRow};
use crate::metric::Unit;
use crate::plan::Counter;

/// The tables of counts.
pub fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    let Some(counter) = analysis.counter else {
        return Vec::new();
    };
    analysis
        .counts
        .iter()
        .map(|case| of_case(case, counter, analysis.planned_blocks))
        .collect()
}

fn of_case(case: &Table, counter: Counter, planned_blocks: u32) -> Sheet {
    let (mut rows, others): (Vec<&TableRow>, Vec<&TableRow>) =
        case.rows.iter().partition(|row| row.has_run());
    let order = |row: &TableRow| {
        row.cells
            .first()
            .map_or(f64::INFINITY, |cell| cell.spread.median)
    };
    rows.sort_by(|a, b| order(a).total_cmp(&order(b)));
    let (subject, caution) = words(counter);
    let mut table = SheetOf::new(
        format!("{}: {subject}", heading_of(case)),
        rows.iter().copied(),
    );
    table.add("allocator", |row| &row.allocator);
    let mut untold = Vec::new();
    for event in counter.events() {
        let what = event.replace('_', " ");
        if rows.iter().all(|row| row.cell(event).is_none()) {
            let why = rows.iter().find_map(|row| row.why_not.get(event));
            untold.push(format!("{what}: {}", why.map_or("not told", |why| why)));
            continue;
        }
        let (many, per) = scale(counter, event);
        table.add(format!("{what}/{per}"), |row| match row.cell(event) {
            Some(cell) => Cell::from(cell.spread.median * many),
            None => row.why_not.get(event).into(),
        });
        // A share of few calls means nothing.
        let is_first = |row: &&TableRow| {
            row.cells
                .first()
                .is_some_and(|cell| cell.metric.key == event)
        };
        if counter != Counter::Kernel && rows.iter().any(is_first) {
            let spread = |row: &TableRow| spread(row.cell(event)?);
            // A single process has no spread.
            if rows.iter().any(|row| spread(row).is_some()) {
                table.add("spread", spread);
            }
            table.add(format!("/ {}", case.baseline), |row| {
                over_baseline(row, event)
            });
        }
    }
    let mut sheet = table.sheet;
    sheet.remark((!untold.is_empty()).then(|| untold.join(", ")));
    sheet.remark(fewer(&rows, planned_blocks));
    sheet.remark(case.caution.clone());
    sheet.remark([caution.to_owned()]);
    let without = others.into_iter().map(|row| {
        numberless(&row.allocator, row.failed.as_ref(), || {
            missing(planned_blocks)
        })
    });
    sheet.notes.extend(without);
    sheet
}

/// The number of operations that a count is reported for, so that the numbers are neither tiny nor
/// huge.
fn scale(counter: Counter, event: &str) -> (f64, &'static str) {
    match (counter, event) {
        (Counter::Kernel, _) => (1e6, "M op"),
        (_, "instructions" | "cycles") => (1.0, "op"),
        _ => (1e3, "1000 op"),
    }
}

fn spread(cell: &TableCell) -> Option<(f64, Unit)> {
    let spread = Some(cell.spread).filter(|spread| cell.n > 1 && spread.median > 0.0)?;
    Some(((spread.max - spread.min) / spread.median, Unit::Share))
}

/// What was counted, and what that means.
fn words(counter: Counter) -> (&'static str, &'static str) {
    match counter {
        Counter::Callgrind => (
            "instructions",
            "Counted by callgrind, not timed: fewer instructions are often, but not always, less time. Threads take turns there.",
        ),
        Counter::Perf => (
            "events in user mode",
            "Counted by the kernel (perf_event_open) in the measured phases, in user mode; nothing was timed.",
        ),
        Counter::Kernel => (
            "calls for memory to the kernel",
            "Counted in the measured phases of the whole process: this includes the stacks of threads that start or end there, as the floor's row shows.",
        ),
    }
}
