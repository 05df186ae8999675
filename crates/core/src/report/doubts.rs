//! How far the numbers of a run may be trusted.

use super::text::{count, join, list};
use super::units::percent;
use crate::analyse::{Analysis, Role, distinct};

/// How far to trust the numbers, in a line, if anything is known about that.
pub fn doubts(analysis: &Analysis) -> Option<String> {
    let base = &analysis.baseline;
    // For a single case, a line below its table says the same, with an interval.
    let copies = analysis.copies().filter(|_| analysis.cases.len() > 1);
    let copies =
        copies.map(|(least, most)| format!("a copy of {base} took {least:.2} to {most:.2}"));
    let reaches = analysis.overall.iter().filter_map(|one| {
        let (low, high) = one.run_to_run?;
        Some((high / one.ratio - 1.0).max(1.0 - low / one.ratio))
    });
    let farthest = reaches.max_by(f64::total_cmp);
    let again = farthest.map(|far| format!("another run may differ by {}", percent(far)));
    let seen = &analysis.interference;
    let disturbed = (seen.disturbed > 0).then(|| {
        let parts = count(seen.parts, "part");
        format!(
            "{} of {parts} disturbed by {}",
            seen.disturbed,
            list(seen.causes.keys())
        )
    });
    let warnings = analysis.machine_warnings.as_ref();
    let warnings = warnings.filter(|names| !names.is_empty());
    let machine = warnings.map(|names| format!("doctor warns: {}", join(names, ", ")));
    let checked = analysis.checked.iter();
    let failing = list(
        checked
            .filter(|(_, result)| !result.findings.is_empty())
            .map(|(name, _)| name),
    );
    let failing = (!failing.is_empty()).then(|| format!("checks that failed: {failing}"));
    let reasons = [copies, again, disturbed, machine, failing];
    let rule = analysis.huge_pages.remark().map(str::to_owned);
    let has_floors = analysis.rows().any(|row| row.role == Role::Floor);
    let libraries = c_libraries(&analysis.c_libraries, has_floors);
    let rest = [unplanned(analysis), libraries, rule];
    let rest = rest.into_iter().flatten().chain(absent(analysis));
    let reasons: Vec<String> = reasons.into_iter().flatten().chain(rest).collect();
    (!reasons.is_empty()).then(|| format!("Trust: {}.", join(reasons, "; ").trim_end_matches('.')))
}

/// Allocators that this machine cannot run, each reason once.
fn absent(analysis: &Analysis) -> Vec<String> {
    let reasons = analysis.rows().filter_map(|row| {
        let absent = row
            .failed
            .as_ref()
            .filter(|failure| failure.first.is_absent())?;
        Some(format!("{}: {}", row.allocator, absent.summary()))
    });
    distinct(reasons)
}

/// The remark that some rows differ in more than malloc, if they do.
pub fn c_libraries(names: &[String], has_floors: bool) -> Option<String> {
    let are = match names {
        [] => return None,
        [_] => "is a whole C library, under its",
        _ => "are whole C libraries, each under its",
    };
    let floors = match has_floors {
        true => "; the floors tell how much that is without an allocation",
        false => "",
    };
    let names = list(names);
    Some(format!(
        "{names} {are} own dynamic linker: more than malloc differs{floors}"
    ))
}

/// The remark that records were left out of all tables, if some were.
pub fn unplanned(analysis: &Analysis) -> Option<String> {
    let records = count(analysis.unplanned, "record");
    (analysis.unplanned > 0).then(|| format!("{records} of no planned row: ignored."))
}
