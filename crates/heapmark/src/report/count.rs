//! The tables of a run that counted. Strings from outside are not yet escaped.

use super::sheet::{Column, Numberless, Sheet, cautions, heading, missing};
use super::units;
use crate::analyse::{Analysis, Count, CountCase, CountRow};
use crate::plan::Counter;

/// All tables.
pub(super) fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    analysis.counts.iter().map(|case| of_case(case, analysis.planned_blocks)).collect()
}

fn of_case(case: &CountCase, planned_blocks: u32) -> Sheet {
    let rows: Vec<&CountRow> = case.rows.iter().filter(|row| !row.counts.is_empty()).collect();
    let cells = |cell: &dyn Fn(&CountRow) -> String| rows.iter().map(|row| cell(row)).collect::<Vec<_>>();
    let mut columns = vec![Column::words("allocator", cells(&|row| row.allocator.clone()))];
    let mut untold = Vec::new();
    for (place, event) in case.counter.events().into_iter().enumerate() {
        let counts = || rows.iter().filter_map(|row| row.counts.get(place));
        if counts().all(|count| count.per_operation.is_none()) {
            let why = counts().find_map(|count| count.why_not.as_deref()).unwrap_or("not told");
            untold.push(format!("{}: {why}", event.replace('_', " ")));
            continue;
        }
        let (many, per) = scale(case.counter, event);
        let count = |row: &CountRow| row.counts.get(place).map(|count| value(count, many)).unwrap_or_default();
        columns.push(Column::numbers(&format!("{}/{per}", event.replace('_', " ")), cells(&count)));
        // A share of few calls means nothing.
        if case.counter != Counter::Kernel && rows.iter().any(|row| row.first().is_some_and(|it| it.event == event)) {
            let of =
                |cell: fn(&Count) -> String| move |row: &CountRow| row.counts.get(place).map(cell).unwrap_or_default();
            columns.push(Column::numbers("spread", cells(&of(spread))));
            columns.push(Column::numbers(&format!("/ {}", case.baseline), cells(&of(ratio))));
        }
    }
    Sheet {
        heading: format!("{}: {}", heading(&case.workload, case.threads, case.oversubscribed), subject(case.counter)),
        columns: if rows.is_empty() { Vec::new() } else { columns },
        trust: if untold.is_empty() { Vec::new() } else { vec![untold.join(", ")] },
        caution: cautions(case.caution.as_deref(), Some(caution(case.counter))),
        numberless: case.rows.iter().filter_map(|row| numberless(row, planned_blocks)).collect(),
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

fn value(count: &Count, many: f64) -> String {
    match count.per_operation {
        Some(spread) => units::digits(spread.median * many),
        None => count.why_not.clone().unwrap_or_else(|| "-".into()),
    }
}

fn spread(count: &Count) -> String {
    let spread = count.per_operation.filter(|spread| spread.median > 0.0);
    spread.map(|n| units::percent((n.max - n.min) / n.median)).unwrap_or_default()
}

fn ratio(count: &Count) -> String {
    count.ratio.map(units::ratio).unwrap_or_default()
}

fn subject(counter: Counter) -> &'static str {
    match counter {
        Counter::Callgrind => "instructions",
        Counter::Perf => "events in user mode",
        Counter::Kernel => "calls for memory to the kernel",
    }
}

fn caution(counter: Counter) -> &'static str {
    match counter {
        Counter::Callgrind => {
            "Counted by callgrind, not timed: fewer instructions are often, but not always, less time. Threads take turns there."
        }
        Counter::Perf => {
            "Counted by the kernel (perf_event_open) in the measured phases, in user mode; nothing was timed."
        }
        Counter::Kernel => {
            "Counted in the measured phases of the whole process: this includes the stacks of threads that start or end there, as the floor's row shows."
        }
    }
}

fn numberless(row: &CountRow, planned_blocks: u32) -> Option<Numberless> {
    let numberless = || Numberless::new(&row.allocator, row.failed.as_ref(), || missing(planned_blocks));
    row.counts.is_empty().then(numberless)
}
