//! The tables of a run that looked for the smallest limit on memory.

use super::document::{Cell, Sheet};
use super::heading::heading_of;
use super::sheet::{SheetOf, missing, numberless, over_baseline, verdict};
use super::{text, units};
use crate::analyse::{Analysis, Table, TableRow, TriedLimit};
use crate::plan::LimitKind;
use crate::plan::limit::TIMED_PERCENT;

/// The metric that a search determines.
const SMALLEST: &str = "smallest_limit_bytes";

/// The tables of limits.
pub fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    let Some(kind) = analysis.limit else {
        return Vec::new();
    };
    analysis
        .limits
        .iter()
        .map(|case| of_case(case, kind))
        .collect()
}

/// The meaning of the columns.
pub fn legend(analysis: &Analysis) -> Vec<String> {
    if analysis.limit.is_none() {
        return Vec::new();
    }
    [
        "smallest: the least limit, in steps of 1 %, under which processes end ok: 3 of 3, or more than half of 9 if they do not end \
         alike; what the harness's own tables and stacks take comes on top. In brackets, if they do not end alike: the largest limit under which \
         none did, and the largest under which one failed. failed at: the largest limit from there on under which a \
         process still failed, as far as was tried: what it needs is not the same each time. of live: smallest / the most live bytes. \
         without: what the limit would have counted at most, without one.",
        "x1.02 and so on: the median time under so many times the smallest limit / that without a limit in the same block; from a few \
         processes, so it is no verdict.",
        "tried: each limit of the search, and how processes under it ended.",
    ]
    .map(String::from)
    .to_vec()
}

fn of_case(case: &Table, kind: LimitKind) -> Sheet {
    let (rows, others): (Vec<&TableRow>, Vec<&TableRow>) = case
        .rows
        .iter()
        .partition(|row| row.cell(SMALLEST).is_some());
    let heading = format!("{}: smallest limit on {}", heading_of(case), kind.word());
    let mut table = SheetOf::new(heading, rows);
    columns(&mut table, case);
    let mut sheet = table.sheet;
    sheet.remark(case.caution.clone());
    sheet.remark([format!("Limited: {}.", kind.counts())]);
    let without = others.into_iter().map(|row| {
        numberless(&row.allocator, row.failed.as_ref(), || {
            match &row.limits[..] {
                [] if row.cells.is_empty() => missing(1),
                [] => "ended before it was seen: use more work (--set)".into(),
                tried if tried.iter().any(|limit| limit.does() != Some(false)) => {
                    format!("its search has not ended: {}", strip(tried))
                }
                tried => format!("no limit that was tried does: {}", strip(tried)),
            }
        })
    });
    sheet.notes.extend(without);
    sheet
}

fn columns(table: &mut SheetOf<TableRow>, case: &Table) {
    table.add("allocator", |row| &row.allocator);
    table.add("smallest", smallest_or_range);
    table.add(format!("/ {}", case.baseline), |row| {
        over_baseline(row, SMALLEST)
    });
    table.add("verdict", |row| verdict(row, SMALLEST));
    table.metric_of_some("failed at", "failed_up_to_bytes");
    table.metric_of_some("of live", "headroom_ratio");
    table.metric_of_some("without", "unlimited_bytes");
    table.metric_of_some("reclaimable", "reclaimable_bytes");
    for percent in TIMED_PERCENT {
        let times = f64::from(percent) / 100.0;
        table.add(format!("x{times}"), |row| {
            let cell = row.of_function(&times.to_string(), "limit_slowdown");
            cell.map_or_else(
                || ended(&row.limits, percent).into(),
                |cell| Cell::ratio(cell.spread.median),
            )
        });
    }
    table.add("tried", |row| {
        Cell::text(format!("tried {}", strip(&row.limits)))
    });
}

/// The smallest limit; if processes under some limit ended differently, the range in which the smallest limit lies.
fn smallest_or_range(row: &TableRow) -> Cell {
    let is_mixed = |limit: &TriedLimit| (1..limit.outcomes.len()).contains(&limit.ok());
    let cell = row.cell(SMALLEST);
    match cell.filter(|_| row.limits.iter().any(is_mixed)) {
        Some(cell) => {
            let [least, median, most] =
                [cell.spread.min, cell.spread.median, cell.spread.max].map(units::bytes);
            format!("{median} ({least} to {most})").into()
        }
        None => cell.into(),
    }
}

/// Returns how processes ended under a limit of this percentage, for a row that has no time there.
fn ended(tried: &[TriedLimit], percent: u32) -> String {
    tried
        .iter()
        .find(|limit| limit.percent == Some(percent))
        .map_or("-".into(), |limit| limit.word().into())
}

/// The limits of a search, in ascending order: `oom at 16.0 MiB, 18.2 MiB; ok 7 of 9 times at 18.4 MiB; ok at 18.6 MiB, 128 MiB`.
fn strip(tried: &[TriedLimit]) -> String {
    let mut stretches: Vec<(String, Vec<String>)> = Vec::new();
    for limit in tried.iter().filter(|limit| limit.percent.is_none()) {
        let bytes = units::bytes(limit.bytes as f64);
        let of = limit.outcomes.len();
        let word = match limit.ok() {
            ok if ok > 0 && ok < of => format!("ok {ok} of {of} times"),
            _ => limit.word().to_owned(),
        };
        match stretches.last_mut() {
            Some((last, limits)) if *last == word => limits.push(bytes),
            _ => stretches.push((word, vec![bytes])),
        }
    }
    let stretches = stretches
        .iter()
        .map(|(word, limits)| format!("{word} at {}", text::join(limits, ", ")));
    text::join(stretches, "; ")
}
