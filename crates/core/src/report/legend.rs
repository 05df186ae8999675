//! The meaning of the columns that are shown.

use super::{factor, footprint, latency, limit, operations, text, user_command};
use crate::analyse::{Analysis, Purge, Role, Table, TableRow};
use crate::metric::{FigureMode, figures_of};
use crate::report::known_faults;
use std::collections::BTreeSet;

/// Returns the lines below the tables, in the order of the columns.
pub fn legend(analysis: &Analysis) -> Vec<String> {
    let rule = analysis.huge_pages.remark().map(str::to_owned);
    let factor = factor::legend(analysis);
    rule.into_iter()
        .chain(of_columns(analysis))
        .chain(factor)
        .chain(failed_checks(analysis))
        .collect()
}

fn of_columns(analysis: &Analysis) -> Vec<String> {
    let mut lines = latency::legend(analysis);
    lines.extend(footprint::legend(analysis));
    lines.extend(limit::legend(analysis));
    let rows = measured(analysis);
    if rows.is_empty() {
        lines.extend(oversubscribed(analysis));
        return lines;
    }
    let stalls: BTreeSet<&str> = (rows.iter())
        .filter_map(|(_, row)| row.stalled.as_ref())
        .flat_map(|stalled| stalled.by.iter().copied())
        .collect();
    let stalled = (!stalls.is_empty()).then(|| {
        let by = text::list(stalls);
        format!(
            "stalled: processes with stalls ({by}). That may be the allocator's own doing, so they count."
        )
    });
    let texts = |of: &dyn Fn(&TableRow) -> Option<String>| told(&rows, of);
    let versions = versions(analysis);
    if let Some((case, tried)) = user_command::of(analysis) {
        return user_command::legend(tried, &case.baseline, case.took_turns)
            .into_iter()
            .chain(stalled)
            .chain(versions)
            .collect();
    }
    let line = |marked: fn(&Table, &TableRow) -> bool, line: &str| {
        rows.iter()
            .any(|(case, row)| marked(case, row))
            .then(|| line.to_owned())
    };
    // A case that no allocator runs has a program as its baseline.
    let baselines: BTreeSet<&String> = analysis.cases.iter().map(|case| &case.baseline).collect();
    let baselines = text::list(baselines);
    let ratio = format!(
        "time / {baselines}: ns/op over {baselines}'s in the same block, below 1 is faster; Hodges-Lehmann estimate and 95 % interval \
         ([n = 5]: too few pairs for one). CPU, user: the same of CPU time, and of its part outside the kernel."
    );
    let partial = texts(&|row| {
        let left = (!row.left_to_libc.is_empty()).then(|| text::list(&row.left_to_libc))?;
        Some(format!("{} leaves {left}", row.allocator))
    });
    let flawed = texts(&|row| {
        let found = (!row.findings.is_empty()).then(|| row.findings.join("; "))?;
        Some(format!("{}: {found}", row.allocator))
    });
    let of_figures = figures_of(FigureMode::Time)
        .filter(|metric| rows.iter().any(|(_, row)| operations::says(metric, row)))
        .filter_map(|metric| metric.legend().map(str::to_owned));
    lines.extend(line(
        |case, _| case.times_operations(),
        "ns/op: wall time x threads / operations; ops/s: of all threads. Medians over processes.",
    ));
    lines.extend(of_figures);
    let before = [
        line(
            |case, _| case.whole_process,
            "wall, CPU: of the whole process, its start included; CPU: of all its threads. Peak RSS: of the whole process. \
             Medians over processes. Start-up: the same with next to nothing to do. Longest step: building one tree.",
        ),
        line(|_, row| row.time().ratio.is_some(), &ratio),
        line(
            |case, _| case.took_turns,
            &user_command::of_turns("allocator", &baselines),
        ),
        line(
            |_, row| row.cell("overhead").is_some(),
            "overhead: (peak RSS - what was resident before the first operation and is not the allocator's) / peak of \
             requested bytes. Where less than 1 MiB was requested, pages decide it and the peak RSS itself is shown.",
        ),
        line(
            |_, row| holds_before(row),
            "holds ... before its first block: memory that the allocator takes at its start; overhead includes it.",
        ),
        line(
            |_, row| row.floor_share.is_some(),
            "floor: the harness without an allocator; the column is its share of a row's time.",
        ),
        line(
            |_, row| row.parts.is_some(),
            "floor + kernel + rest: the parts of ns/op: the harness, system time above the floor's (page faults, system \
             calls), and what the allocator takes.",
        ),
        (!partial.is_empty()).then(|| format!("partial: {} to libc.", text::list(&partial))),
        line(
            |_, row| row.served.is_some(),
            "libc serves: libc's share of the live bytes in a row's check, as libc reports it; the row measures a wrapper around libc.",
        ),
    ];
    let after = [
        line(
            |case, row| case.counts_purge && row.purge <= Purge::None,
            "not purged: the clock includes giving memory back, and this allocator does not, or is not known to.",
        ),
        line(
            |case, row| case.counts_purge && row.purge == Purge::Called && row.purged_as.is_some(),
            "purged as: the library was given by its path, and exports the purge function of that family.",
        ),
        line(
            |case, row| case.counts_purge && row.purge > Purge::None,
            "purge: its share of the row's time, or configured: without a call. Files have the time without it.",
        ),
        stalled,
        versions,
        oversubscribed(analysis),
    ];
    lines.extend(before.into_iter().flatten());
    lines.extend(
        flawed
            .into_iter()
            .map(|found| format!("flawed: {found}. The row keeps its numbers.")),
    );
    lines.extend(after.into_iter().flatten());
    lines
}

fn holds_before(row: &TableRow) -> bool {
    row.held_before().is_some()
}

/// All rows with numbers.
fn measured(analysis: &Analysis) -> Vec<(&Table, &TableRow)> {
    let mut rows = Vec::new();
    for case in &analysis.cases {
        rows.extend(case.measured().map(|row| (case, row)));
    }
    rows
}

/// The texts that some rows have, each once.
fn told(
    rows: &[(&Table, &TableRow)],
    of: &dyn Fn(&TableRow) -> Option<String>,
) -> BTreeSet<String> {
    rows.iter().filter_map(|(_, row)| of(row)).collect()
}

/// The versions of the rows: a slow allocator may be years old, and `tcmalloc` is the name of two allocators.
fn versions(analysis: &Analysis) -> Option<String> {
    let versions = told(&measured(analysis), &|row| {
        let named = analysis.named(&row.allocator);
        (named != row.allocator && row.role != Role::AaCopy).then_some(named)
    });
    (!versions.is_empty()).then(|| format!("versions: {}.", text::list(&versions)))
}

/// A sentence for each allocator that was known before the run to fail some check.
pub fn failed_checks(analysis: &Analysis) -> Vec<String> {
    let checked = analysis.checked.iter();
    checked
        .filter_map(|(name, checked)| known_faults::failed(name, &checked.findings))
        .collect()
}

/// The mark for oversubscription in a heading, for any kind of run.
fn oversubscribed(analysis: &Analysis) -> Option<String> {
    let mut tables = analysis.cases.iter().chain(analysis.tables());
    tables.any(|table| table.oversubscribed).then(|| {
        "oversubscribed: more threads than CPUs; the scheduler is measured too.".to_owned()
    })
}
