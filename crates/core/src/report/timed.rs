//! The tables of a run that timed processes.

use super::document::{Cell, Note, Sheet};
use super::heading::heading_of;
use super::sheet::{self, Extent, SheetOf, missing};
use super::units::{self, interval};
use super::{factor, operations, text, user_command, whole};
use crate::analyse::{Analysis, CommandFacts, Purge, Role, Table, TableRow};
use crate::execute::Outcome;
use crate::metric::{self, FigureRole};
use crate::report::known_faults;

/// The tables of times.
pub fn sheets(analysis: &Analysis) -> Vec<Sheet> {
    let both = |case| {
        let table = of_case(case, analysis, Extent::Full);
        [table].into_iter().chain(user_command::crossed(case))
    };
    analysis.cases.iter().flat_map(both).collect()
}

/// The table of a case for a first screen.
pub fn in_brief(case: &Table, analysis: &Analysis) -> Sheet {
    of_case(case, analysis, Extent::Brief)
}

fn of_case(case: &Table, analysis: &Analysis, extent: Extent) -> Sheet {
    let mut rows: Vec<&TableRow> = case.measured().collect();
    // For a user's command, the conclusion below uses the ratios of pairs, and medians may have
    // another order.
    let by_ratio = case.command.is_some() && rows.iter().all(|row| row.time().ratio.is_some());
    let held = |row: &TableRow| {
        row.median("mean_footprint_bytes")
            .or(row.median("peak_rss_bytes"))
            .filter(|_| case.paced)
    };
    let rank = |row: &TableRow| {
        if by_ratio {
            user_command::ratio(row)
        } else {
            held(row).unwrap_or(row.time().spread.median)
        }
    };
    rows.sort_by(|a, b| rank(a).total_cmp(&rank(b)));
    rows.retain(|row| row.role != Role::AaCopy);
    let mut floors: Vec<String> = rows
        .extract_if(.., |row| row.role == Role::Floor)
        .map(|row| {
            let ns = row.time().spread.median;
            let time = units::time(ns).text(ns);
            let figures = operations::times(row);
            format!("floor: {} {time}{figures}", row.allocator)
        })
        .collect();
    if case.paced {
        floors.clear();
    }
    let mut table = SheetOf::new(heading_of(case), rows);
    columns(&mut table, case, analysis, extent);
    let mut sheet = table.sheet;
    let command = case.command.as_ref();
    sheet.above = command.and_then(user_command::reached_in_part);
    sheet.remark(floors);
    sheet.remark(caveats(case, extent));
    sheet.remark(case.caution.clone());
    let rows = case.rows.iter();
    let numberless = rows.filter_map(|row| numberless(row, case, analysis.planned_blocks));
    sheet.notes.extend(numberless);
    sheet
}

/// The columns of the rows with numbers.
fn columns(table: &mut SheetOf<TableRow>, case: &Table, analysis: &Analysis, extent: Extent) {
    let of_programs = case.whole_process && case.command.is_none();
    let of_variants = case.command.as_ref().map(CommandFacts::noun);
    let noun = of_variants.unwrap_or(if of_programs { "row" } else { "allocator" });
    table.add(noun, |row| &row.allocator);
    if case.command.is_some() {
        user_command::columns(table, case, extent);
    } else if case.whole_process {
        whole::columns(table, case);
    } else {
        operations::columns(table, case);
    }
    let notes = |row: &TableRow| notes(row, case, analysis);
    if extent == Extent::Full && table.rows.iter().any(|row| !notes(row).is_empty()) {
        table.add("notes", |row| Cell::text(notes(row)));
    }
}

/// A row has its page faults in the notes if kernel time is a larger share of its CPU time than this. A share of wall time would include
/// the waits for a CPU on a busy machine.
const KERNEL_SHARE: f64 = 0.1;

fn notes(row: &TableRow, case: &Table, analysis: &Analysis) -> String {
    let mut notes: Vec<String> = whole::note(row)
        .into_iter()
        .chain(whole::sizes(row))
        .collect();
    if !row.left_to_libc.is_empty() {
        notes.push("partial".to_owned());
    }
    notes.extend(row.served.clone());
    let left_behind = row.left_behind.iter();
    notes.extend(
        left_behind.map(|number| format!("leaves {} behind", text::count(number, "process"))),
    );
    if !row.findings.is_empty() {
        notes.push("flawed".to_owned());
    }
    let failed = analysis.failed_by(&row.allocator);
    if !failed.is_empty() {
        notes.push(known_faults::fails(failed));
    }
    let held = row.held_before().map(units::bytes);
    notes.extend(held.map(|held| format!("holds {held} before its first block")));
    match row.purge {
        _ if !case.counts_purge => {}
        Purge::None => notes.push("not purged".to_owned()),
        Purge::Unknown => notes.push("purge unknown".to_owned()),
        Purge::Configured => notes.push("purge configured".to_owned()),
        Purge::Called => {
            let share = row.median("purge_share").map(units::percent);
            notes.extend(share.map(|share| format!("purge {share}")));
            let family = row.purged_as.iter();
            notes.extend(family.map(|family| format!("purged as {family}")));
        }
    }
    let planned_blocks = analysis.planned_blocks;
    if row.blocks < planned_blocks as usize {
        notes.push(format!("{} of {planned_blocks} blocks", row.blocks));
    }
    if let Some(stalled) = &row.stalled {
        notes.push(format!("stalled in {} of {}", stalled.samples, row.samples));
    }
    if let Some(modes) = row.modes {
        let unit = units::time(modes.low);
        notes.push(format!(
            "two modes: {} ({}x) and {} ({}x) {}",
            unit.digits(modes.low),
            modes.low_count,
            unit.digits(modes.high),
            modes.high_count,
            unit.name
        ));
    }
    if let Some(parts) = row.parts
        && let Some(cpu_ns) = row.median("cpu_ns_per_op")
        && parts.kernel_ns > KERNEL_SHARE * cpu_ns
        && parts.faults > 0.0
    {
        notes.push(format!("{} faults/op", units::digits(parts.faults)));
    }
    if row.ratio_is_bound {
        let share = row.floor_share.map(units::percent);
        notes.extend(share.map(|share| format!("harness {share}")));
    }
    if let Some(ratio) = row.time().ratio
        && ratio.pairs < row.blocks
    {
        notes.push(text::count(ratio.pairs, "pair"));
    }
    if row.unusable > 0 {
        notes.push(format!("{} unusable", row.unusable));
    }
    notes.join(", ")
}

fn numberless(row: &TableRow, case: &Table, planned_blocks: u32) -> Option<Note> {
    if row.has_run() {
        return None;
    }
    let failed = row.failed.as_ref();
    let mut note = sheet::numberless(&row.allocator, failed, || match row.unusable {
        0 => missing(planned_blocks),
        _ => format!(
            "missing: {} ended ok with nothing to divide (no operations or no time)",
            text::count(row.unusable, "sample")
        ),
    });
    if let Some((Outcome::Crash { .. }, command)) = failed
        .map(|failure| &failure.first)
        .zip(case.command.as_ref())
    {
        note.text += &user_command::why_it_may_crash(command);
    }
    Some(note)
}

/// The caveats below a table: the A/A copy of the baseline, the time in malloc, the floor.
fn caveats(case: &Table, extent: Extent) -> Vec<String> {
    let name = &case.baseline;
    let mut lines = Vec::new();
    if let Some(aa_copy) = &case.aa_copy {
        let verdict = if case.aa_copy_differs {
            ": different, so only larger differences are claimed"
        } else {
            ""
        };
        let time = || format!("takes {} of its time", interval(aa_copy));
        let takes = user_command::copy(case, aa_copy).unwrap_or_else(time);
        lines.push(format!("A/A: a copy of {name} {takes}{verdict}"));
        lines.extend(operations::judged_of_copy(case));
    }
    lines.extend(operations::other_load(case));
    if let Some(share) = case.won_at_most {
        lines.push(format!(
            "the fastest allocator here saves {} of the CPU time with {name}",
            units::percent(share)
        ));
    }
    let command = case.command.iter();
    lines.extend(command.flat_map(|tried| user_command::lines(tried, extent)));
    if case.floor_is_high {
        lines.push(
            "the harness takes more than half of the fastest time: ratios with <= and >= are bounds".to_owned(),
        );
    }
    lines.extend(placement(case));
    lines.extend(factor::memory(case));
    lines
}

/// Where each allocator's nodes lie between two copies that the same process reads as well: by time, and by the pages of 1000 nodes in a
/// row.
fn placement(case: &Table) -> Vec<String> {
    let of_rows = |role: FigureRole| {
        let key = metric::key_in(role);
        let mut figures: Vec<(f64, String)> = case
            .rows
            .iter()
            .filter(|row| row.role != Role::AaCopy)
            .filter_map(|row| Some((*row.figures.get(key)?, row.allocator.clone())))
            .collect();
        figures.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        figures
    };
    let values = |role: FigureRole, text: fn(f64) -> String| {
        of_rows(role)
            .iter()
            .map(|(value, allocator)| format!("{allocator} {}", text(*value)))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let copy = |role: FigureRole| Some(units::digits(of_rows(role).first()?.0));
    let packed = copy(FigureRole::PagesIfPacked);
    packed.zip(copy(FigureRole::PagesIfScattered)).map(|(packed, scattered)| {
        [
            format!(
                "placement, from 0 % (the time of a packed copy) to 100 % (of a scattered one): {}",
                values(FigureRole::Placement, units::percent)
            ),
            format!(
                "pages of 1000 nodes in a row, {packed} if packed, {scattered} if scattered: {}",
                values(FigureRole::Pages, units::digits)
            ),
        ]
    }).into_iter().flatten().collect()
}
