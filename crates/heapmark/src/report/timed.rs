//! The tables of a run that timed processes. Strings from outside are not yet escaped.

use super::sheet::{Column, Numberless, Sheet, TableColumns, heading, missing};
use super::{caveats, operations, text, units, user_command, whole};
use crate::analyse::{Analysis, Case, Numbers, Purge, Role, Row, State, TwoModes};

/// All tables.
pub(super) fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    analysis
        .cases
        .iter()
        .map(|case| of_case(case, analysis.planned_blocks))
        .collect()
}

fn of_case(case: &Case, planned_blocks: u32) -> Sheet {
    let mut rows: Vec<(&Row, &Numbers)> = case
        .rows
        .iter()
        .filter_map(|row| Some((row, row.numbers()?)))
        .collect();
    // For a user's command, the conclusion below uses the ratios of pairs, and medians may have
    // another order.
    let by_ratio =
        case.command.is_some() && rows.iter().all(|(_, numbers)| numbers.ratio.is_some());
    let rank = |numbers: &Numbers| match (case.paced, numbers.mean_footprint, numbers.memory) {
        _ if by_ratio => numbers.ratio.map_or(1.0, |ratio| ratio.ratio),
        (true, Some(mean), _) => mean.bytes.median,
        (true, None, Some(memory)) => memory.peak_rss_bytes,
        _ => numbers.ns_per_op.median,
    };
    rows.sort_by(|(_, a), (_, b)| rank(a).total_cmp(&rank(b)));
    rows.retain(|(row, _)| row.role != Role::AaCopy);
    let (floors, rows): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|(row, _)| row.role == Role::Floor);
    Sheet {
        heading: heading_of(case),
        floors: floors
            .iter()
            .filter(|_| !case.paced)
            .map(|(row, numbers)| floor_line(row, numbers))
            .collect(),
        numberless: case
            .rows
            .iter()
            .filter_map(|row| numberless(row, planned_blocks))
            .collect(),
        columns: if rows.is_empty() {
            Vec::new()
        } else {
            columns(rows, case, planned_blocks)
        },
        trust: caveats::lines(case),
        caution: case.caution.clone(),
    }
}

/// The user's command, or the workload and its threads.
pub(super) fn heading_of(case: &Case) -> String {
    match &case.command {
        Some(tried) => user_command::heading(tried),
        None => heading(&case.workload, case.threads, case.oversubscribed),
    }
}

/// The columns of a case whose rows have numbers.
fn columns(rows: Vec<(&Row, &Numbers)>, case: &Case, planned_blocks: u32) -> Vec<Column> {
    let mut table = TableColumns {
        rows,
        columns: Vec::new(),
    };
    let of_programs = case.whole_process && case.command.is_none();
    table.words(if of_programs { "row" } else { "allocator" }, |row, _| {
        row.allocator.clone()
    });
    if case.command.is_some() {
        user_command::columns(&mut table, case);
    } else if case.whole_process {
        whole::columns(&mut table, case);
    } else {
        operations::columns(&mut table, case);
    }
    table.words("notes", |row, n| notes(row, n, case, planned_blocks));
    match table.columns.last_mut() {
        Some(notes) if notes.cells.iter().any(|cell| !cell.is_empty()) => notes.notes = true,
        _ => _ = table.columns.pop(),
    }
    table.columns
}

fn notes(row: &Row, numbers: &Numbers, case: &Case, planned_blocks: u32) -> String {
    let mut notes: Vec<String> = whole::note(row, numbers)
        .into_iter()
        .chain(whole::sizes(row))
        .collect();
    if !row.left_to_libc.is_empty() {
        notes.push("partial".to_owned());
    }
    notes.extend(row.served.clone());
    if !row.findings.is_empty() {
        notes.push("flawed".to_owned());
    }
    if case.counts_purge {
        match row.purge {
            Purge::None => notes.push("not purged".to_owned()),
            Purge::Unknown => notes.push("purge unknown".to_owned()),
            Purge::Configured => notes.push("purge configured".to_owned()),
            Purge::Called => notes.extend(
                numbers
                    .purge_share
                    .map(|share| format!("purge {}", units::percent(share))),
            ),
        }
        if row.purge == Purge::Called {
            notes.extend(
                row.purged_as
                    .iter()
                    .map(|family| format!("purged as {family}")),
            );
        }
    }
    if numbers.blocks < planned_blocks as usize {
        notes.push(format!("{} of {} blocks", numbers.blocks, planned_blocks));
    }
    if let Some(stalled) = &numbers.stalled {
        notes.push(format!(
            "stalled in {} of {}",
            stalled.samples, numbers.samples
        ));
    }
    if let Some(TwoModes {
        low,
        low_count,
        high,
        high_count,
    }) = numbers.modes
    {
        let unit = units::time(low);
        let mode =
            |value: f64, count: usize| format!("{} ({count}x)", units::digits(value / unit.size));
        notes.push(format!(
            "two modes: {} and {} {}",
            mode(low, low_count),
            mode(high, high_count),
            unit.name
        ));
    }
    if let Some(pairs) = numbers
        .ratio
        .map(|ratio| ratio.pairs)
        .filter(|pairs| *pairs < numbers.blocks)
    {
        notes.push(text::count(pairs, "pair"));
    }
    if numbers.unusable > 0 {
        notes.push(format!("{} unusable", numbers.unusable));
    }
    notes.join(", ")
}

fn floor_line(row: &Row, numbers: &Numbers) -> String {
    let unit = units::time(numbers.ns_per_op.median);
    format!(
        "floor: {} {} {}",
        row.allocator,
        units::digits(numbers.ns_per_op.median / unit.size),
        unit.name
    )
}

fn numberless(row: &Row, planned_blocks: u32) -> Option<Numberless> {
    let reason = match &row.state {
        State::Measured(_) => return None,
        State::Failed(failed) => failed.summary(),
        State::Missing { unusable: 0 } => missing(planned_blocks),
        State::Missing { unusable } => {
            format!(
                "missing: {} ended ok with nothing to divide (no operations or no time)",
                text::count(*unusable, "sample")
            )
        }
    };
    let failed = matches!(&row.state, State::Failed(failed) if !failed.first.is_absent());
    Some(Numberless {
        allocator: row.allocator.clone(),
        reason,
        failed,
    })
}
