//! The tables of a run that counted. Strings from outside are not yet escaped.

use super::sheet::{Column, Numberless, Sheet, cautions, fewer, heading_of, missing};
use super::units;
use crate::analyse::{Analysis, Table, TableCell, TableRow};
use crate::plan::Counter;

/// All tables.
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
    let numbers = |title: &str, cell: &dyn Fn(&TableRow) -> String| {
        Column::numbers(title, rows.iter().map(|row| cell(row)))
    };
    let names = rows.iter().map(|row| row.allocator.clone());
    let mut columns = vec![Column::words("allocator", names)];
    let mut untold = Vec::new();
    for event in counter.events() {
        let what = event.replace('_', " ");
        let why = |row: &TableRow| row.why_not.get(event).cloned();
        if rows.iter().all(|row| row.cell(event).is_none()) {
            let why = rows.iter().find_map(|row| why(row));
            untold.push(format!("{what}: {}", why.unwrap_or("not told".into())));
            continue;
        }
        let (many, per) = scale(counter, event);
        columns.push(numbers(&format!("{what}/{per}"), &|row| {
            row.cell(event)
                .map(|cell| units::digits(cell.spread.median * many))
                .or_else(|| why(row))
                .unwrap_or("-".into())
        }));
        // A share of few calls means nothing.
        let is_first = |row: &&TableRow| {
            row.cells
                .first()
                .is_some_and(|cell| cell.metric.key == event)
        };
        if counter != Counter::Kernel && rows.iter().any(is_first) {
            let of = |cell: fn(&TableCell) -> Option<String>| {
                move |row: &TableRow| row.cell(event).and_then(cell).unwrap_or_default()
            };
            // Of one process there is none.
            if rows
                .iter()
                .any(|row| row.cell(event).and_then(spread).is_some())
            {
                columns.push(numbers("spread", &of(spread)));
            }
            columns.push(numbers(
                &format!("/ {}", case.baseline),
                &of(|cell| Some(units::ratio(cell.ratio?.ratio))),
            ));
        }
    }
    if rows.is_empty() {
        columns.clear();
    }
    let (subject, caution) = words(counter);
    let heading = heading_of(case);
    Sheet {
        heading: format!("{heading}: {subject}"),
        columns,
        trust: (!untold.is_empty())
            .then(|| untold.join(", "))
            .into_iter()
            .chain(fewer(&rows, planned_blocks))
            .collect(),
        above: None,
        caution: cautions(case, Some(caution)),
        numberless: others
            .into_iter()
            .map(|row| {
                Numberless::new(&row.allocator, row.failed.as_ref(), || {
                    missing(planned_blocks)
                })
            })
            .collect(),
        ..Sheet::default()
    }
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

fn spread(cell: &TableCell) -> Option<String> {
    let spread = Some(cell.spread).filter(|spread| cell.n > 1 && spread.median > 0.0)?;
    Some(units::percent((spread.max - spread.min) / spread.median))
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
