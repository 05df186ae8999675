//! The tables of a run that counted instructions. Strings from outside are still as they came.

use super::sheet::{Column, Numberless, Sheet, heading, missing};
use super::units;
use crate::analyse::{Analysis, CountCase, CountRow, Spread};

/// All tables.
pub(super) fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    analysis.counts.iter().map(|case| of_case(case, analysis.planned_blocks)).collect()
}

fn of_case(case: &CountCase, planned_blocks: u32) -> Sheet {
    let rows: Vec<(&CountRow, Spread)> = case.rows.iter().filter_map(|row| Some((row, row.instructions?))).collect();
    let column = |title: &str, number: bool, cell: &dyn Fn(&CountRow, &Spread) -> String| Column {
        title: title.to_owned(),
        cells: rows.iter().map(|(row, instructions)| cell(row, instructions)).collect(),
        number,
        spare: false,
        notes: false,
    };
    let columns = vec![
        column("allocator", false, &|row, _| row.allocator.clone()),
        column("instructions/op", true, &|_, n| units::digits(n.median)),
        column("spread", true, &|_, n| units::percent((n.max - n.min) / n.median)),
        column(&format!("/ {}", case.baseline), true, &|row, _| row.ratio.map(units::ratio).unwrap_or_default()),
    ];
    Sheet {
        heading: format!("{}: instructions", heading(&case.workload, case.threads, case.oversubscribed)),
        columns: if rows.is_empty() { Vec::new() } else { columns },
        caution: Some(
            "Counted by callgrind, not timed: fewer instructions are often, but not always, less time. Threads take turns there."
                .to_owned(),
        ),
        numberless: case.rows.iter().filter_map(|row| numberless(row, planned_blocks)).collect(),
        ..Sheet::default()
    }
}

fn numberless(row: &CountRow, planned_blocks: u32) -> Option<Numberless> {
    let failed = row.failed.as_ref();
    (row.instructions.is_none()).then(|| Numberless {
        allocator: row.allocator.clone(),
        reason: failed.map_or_else(|| missing(planned_blocks), |failed| failed.summary()),
        failed: failed.is_some(),
    })
}
