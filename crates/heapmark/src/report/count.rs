//! The tables of a run that counted. Strings from outside are not yet escaped.

use super::sheet::{Column, Numberless, Sheet, cautions, heading, missing};
use super::units;
use crate::analyse::{Analysis, Table, TableCell, TableRow};
use crate::plan::Counter;

/// All tables.
pub(super) fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    let of_case = |counter| {
        analysis
            .counts
            .iter()
            .map(move |case| of_case(case, counter, analysis.planned_blocks))
    };
    analysis.counter.into_iter().flat_map(of_case).collect()
}

fn of_case(case: &Table, counter: Counter, planned_blocks: u32) -> Sheet {
    let mut rows: Vec<&TableRow> = case.rows.iter().filter(|row| row.has_run()).collect();
    let order = |row: &&TableRow| {
        row.cells
            .first()
            .map_or(f64::INFINITY, |cell| cell.spread.median)
    };
    rows.sort_by(|a, b| order(a).total_cmp(&order(b)));
    let cells =
        |cell: &dyn Fn(&TableRow) -> String| rows.iter().map(|row| cell(row)).collect::<Vec<_>>();
    let mut columns = vec![Column::words(
        "allocator",
        cells(&|row| row.allocator.clone()),
    )];
    let mut untold = Vec::new();
    for event in counter.events() {
        if rows.iter().all(|row| row.cell(event).is_none()) {
            let why = rows
                .iter()
                .find_map(|row| row.why_not.get(event))
                .map_or("not told", String::as_str);
            untold.push(format!("{}: {why}", event.replace('_', " ")));
            continue;
        }
        let (many, per) = scale(counter, event);
        let count = |row: &TableRow| match row.cell(event) {
            Some(cell) => units::digits(cell.spread.median * many),
            None => row
                .why_not
                .get(event)
                .cloned()
                .unwrap_or_else(|| "-".into()),
        };
        columns.push(Column::numbers(
            &format!("{}/{per}", event.replace('_', " ")),
            cells(&count),
        ));
        // A share of few calls means nothing.
        let is_first = |row: &&TableRow| {
            row.cells
                .first()
                .is_some_and(|cell| cell.metric.key == event)
        };
        if counter != Counter::Kernel && rows.iter().any(is_first) {
            let of = |cell: fn(&TableCell) -> String| {
                move |row: &TableRow| row.cell(event).map(cell).unwrap_or_default()
            };
            columns.push(Column::numbers("spread", cells(&of(spread))));
            columns.push(Column::numbers(
                &format!("/ {}", case.baseline),
                cells(&of(ratio)),
            ));
        }
    }
    Sheet {
        heading: format!(
            "{}: {}",
            heading(&case.workload, case.threads, case.oversubscribed),
            subject(counter)
        ),
        columns: if rows.is_empty() { Vec::new() } else { columns },
        trust: if untold.is_empty() {
            Vec::new()
        } else {
            vec![untold.join(", ")]
        },
        caution: cautions(case.caution.as_deref(), Some(caution(counter))),
        numberless: case
            .rows
            .iter()
            .filter_map(|row| numberless(row, planned_blocks))
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

fn spread(cell: &TableCell) -> String {
    let spread = Some(cell.spread).filter(|spread| spread.median > 0.0);
    spread
        .map(|n| units::percent((n.max - n.min) / n.median))
        .unwrap_or_default()
}

fn ratio(cell: &TableCell) -> String {
    cell.ratio
        .map(|ratio| units::ratio(ratio.ratio))
        .unwrap_or_default()
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

fn numberless(row: &TableRow, planned_blocks: u32) -> Option<Numberless> {
    let numberless = || {
        Numberless::new(&row.allocator, row.failed.as_ref(), || {
            missing(planned_blocks)
        })
    };
    (!row.has_run()).then(numberless)
}
