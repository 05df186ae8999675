//! The meaning of the columns, only of those shown. Strings from outside are not yet escaped.

use super::{footprint, latency, text, user_command};
use crate::analyse::{Analysis, Case, Purge, Role, Row};
use std::collections::BTreeSet;

/// The lines below the tables, in the order of the columns.
pub(super) fn legend(analysis: &Analysis) -> Vec<String> {
    let rows = || {
        analysis
            .cases
            .iter()
            .flat_map(|case| case.rows.iter().map(move |row| (case, row)))
    };
    let numbers = || rows().filter_map(|(_, row)| row.numbers());
    let marked = |mark: &dyn Fn(&Case, &Row) -> bool| {
        rows().any(|(case, row)| row.numbers().is_some() && mark(case, row))
    };
    let mut lines = latency::legend(analysis);
    lines.extend(footprint::legend(analysis));
    if numbers().next().is_none() {
        lines.extend(oversubscribed(analysis));
        return lines;
    }
    let stalled = || {
        let by: BTreeSet<&str> = numbers()
            .filter_map(|n| n.stalled.as_ref())
            .flat_map(|stalled| &stalled.by)
            .copied()
            .collect();
        let by: Vec<String> = by.into_iter().map(String::from).collect();
        let line = format!(
            "stalled: processes with stalls ({}). That may be the allocator's own doing, so they count.",
            text::list(&by)
        );
        (!by.is_empty()).then_some(line)
    };
    if let Some((case, tried)) = user_command::of(analysis) {
        return user_command::legend(tried, &case.baseline)
            .into_iter()
            .chain(stalled())
            .chain(sources(analysis))
            .collect();
    }
    if marked(&|case, _| case.times_operations()) {
        lines
            .push("ns/op: wall time x threads / operations; ops/s: of all threads. Medians over processes.".to_owned());
    }
    if marked(&|case, _| case.whole_process) {
        lines.push(
            "wall, CPU: of the whole process, its start included; CPU: of all its threads. Peak RSS: of the whole process. \
             Medians over processes. Start-up: the same with next to nothing to do. Longest step: building one tree."
                .to_owned(),
        );
    }
    if numbers().any(|n| n.ratio.is_some()) {
        // If allocators do not run a case, a program is its baseline.
        let baselines: BTreeSet<&str> = analysis
            .cases
            .iter()
            .map(|case| case.baseline.as_str())
            .collect();
        lines.push(format!(
            "time / {0}: ns/op over {0}'s in the same block, below 1 is faster; Hodges-Lehmann estimate and 95 % interval \
             ([n = 5]: too few pairs for one). CPU: the same of CPU time.",
            text::list(&baselines.into_iter().map(String::from).collect::<Vec<_>>())
        ));
    }
    if numbers().any(|n| n.memory.is_some_and(|memory| memory.overhead.is_some())) {
        lines.push(
            "overhead: (peak RSS - RSS before the first operation) / peak of requested bytes. Where less than 1 MiB was \
             requested, pages decide it and the peak RSS itself is shown."
                .to_owned(),
        );
    }
    if numbers().any(|n| n.floor_share.is_some()) {
        lines.push(
            "floor: the harness without an allocator; the column is its share of a row's time."
                .to_owned(),
        );
    }
    let partial: BTreeSet<String> = rows()
        .filter(|(_, row)| !row.left_to_libc.is_empty() && row.numbers().is_some())
        .map(|(_, row)| format!("{} leaves {}", row.allocator, text::list(&row.left_to_libc)))
        .collect();
    if !partial.is_empty() {
        lines.push(format!(
            "partial: {} to libc.",
            text::list(&partial.into_iter().collect::<Vec<_>>())
        ));
    }
    if marked(&|_, row| row.served.is_some()) {
        lines.push(
            "libc serves: libc's share of the live bytes in a row's check, as libc reports it; the row measures a wrapper around libc."
                .to_owned(),
        );
    }
    let flawed: BTreeSet<String> = rows()
        .filter(|(_, row)| !row.findings.is_empty() && row.numbers().is_some())
        .map(|(_, row)| format!("{}: {}", row.allocator, row.findings.join("; ")))
        .collect();
    lines.extend(
        flawed
            .into_iter()
            .map(|found| format!("flawed: {found}. The row keeps its numbers.")),
    );
    if marked(&|case, row| case.counts_purge && row.purge <= Purge::None) {
        lines.push(
            "not purged: the clock includes giving memory back, and this allocator does not, or is not known to."
                .to_owned(),
        );
    }
    if marked(&|case, row| {
        case.counts_purge && row.purge == Purge::Called && row.purged_as.is_some()
    }) {
        lines.push(
            "purged as: the library was given by its path, and exports the purge function of that family.".to_owned(),
        );
    }
    if marked(&|case, row| case.counts_purge && row.purge > Purge::None) {
        lines.push(
            "purge: its share of the row's time, or configured: without a call. Files have the time without it."
                .to_owned(),
        );
    }
    lines.extend(stalled());
    lines.extend(sources(analysis));
    lines.extend(oversubscribed(analysis));
    lines
}

/// The age of the measured sources: a slow row may be years old.
fn sources(analysis: &Analysis) -> Option<String> {
    let rows = analysis.cases.iter().flat_map(|case| &case.rows);
    let dated = rows.filter(|row| {
        row.numbers().is_some() && !row.sources.is_empty() && row.role != Role::AaCopy
    });
    let all: BTreeSet<String> = dated
        .map(|row| format!("{} {}", row.allocator, row.sources))
        .collect();
    (!all.is_empty()).then(|| {
        format!(
            "sources of: {}.",
            text::list(&all.into_iter().collect::<Vec<_>>())
        )
    })
}

/// The mark for oversubscription in a heading, for any kind of run.
fn oversubscribed(analysis: &Analysis) -> Option<String> {
    let mut marks = (analysis.cases.iter().map(|case| case.oversubscribed))
        .chain(analysis.latency.iter().map(|case| case.oversubscribed))
        .chain(analysis.counts.iter().map(|case| case.oversubscribed))
        .chain(analysis.footprints.iter().map(|case| case.oversubscribed));
    let says =
        || "oversubscribed: more threads than CPUs; the scheduler is measured too.".to_owned();
    marks.any(|mark| mark).then(says)
}
