//! What the check of a command's baseline, and the command's rows, show about the command. Must not judge.

use super::command_facts::{CommandFacts, ReachedMemory};
use super::drained::drained;
use super::group::{CaseGroups, Group};
use super::role::Role;
use super::table::TableRow;
use crate::execute::user_command::{
    ANONYMOUS, BECOMES, BEYOND, CALLS, CALLS_PER_S, END_LIVE, END_OF, END_UNKNOWN, EXIT_CODE,
    MIXED, OTHER_SIZES, PSS_MISSED, REACHED, SAID, SERVED_BY, SHARE, SILENT, UNPROVEN, UNSEARCHED,
    UNTIMED,
};
use crate::execute::{LEFT_BEHIND, Outcome};
use crate::plan::UserCommand;
use heapmark_stats::median;

/// A process that takes less time than this is mostly its own start.
const SHORT_NS: f64 = 5e6;

/// The facts about a command, from its rows and the processes behind them.
pub fn facts(command: &UserCommand, table: &CaseGroups, rows: &[TableRow]) -> CommandFacts {
    let baseline = table.baseline();
    let figure = |name: &str| baseline?.check?.figures.get(name).copied();
    let note = |group: &Group, name: &str| group.check?.notes.get(name).cloned();
    let of_baseline = |name: &str| note(baseline?, name);
    let noted = |name: &str| -> Vec<(String, String)> {
        table
            .groups
            .iter()
            .filter_map(|group| Some((group.allocator.name.clone(), note(group, name)?)))
            .collect()
    };
    let row = rows.iter().find(|row| row.role == Role::Baseline);
    CommandFacts {
        line: command.line(),
        real: command.real.is_some(),
        values: command.values.clone(),
        client: command.client.as_ref().map(|client| client.line()),
        processes: row
            .and_then(|row| row.median("processes"))
            .map_or(1, |median| median as u64),
        becomes: of_baseline(BECOMES),
        fixed_time: table.is_paced(),
        grows_ns: baseline.and_then(grown),
        hangs_later: !rows.is_empty() && rows.iter().all(hangs_later),
        rss_missed: rows
            .iter()
            .filter(|row| is_missed(row))
            .map(|row| row.allocator.clone())
            .collect(),
        malloc_share: figure(SHARE),
        calls: figure(CALLS),
        memory: figure(ANONYMOUS)
            .zip(figure(REACHED))
            .map(|(bytes, reached_bytes)| ReachedMemory {
                bytes,
                reached_bytes,
            }),
        end_live_bytes: figure(END_LIVE),
        end_of: of_baseline(END_OF),
        end_unknown: of_baseline(END_UNKNOWN),
        drained: (command.client.as_ref().and_then(|client| client.drain()))
            .map_or_else(Vec::new, |length| drained(table, length)),
        beyond: of_baseline(BEYOND),
        mixed: of_baseline(MIXED),
        other_sizes: figure(OTHER_SIZES),
        exit: of_baseline(EXIT_CODE).map(|code| (code, of_baseline(SAID).unwrap_or_default())),
        served_by: noted(SERVED_BY),
        variants: command
            .variants
            .iter()
            .map(|variant| (variant.name.clone(), variant.line()))
            .collect(),
        shares: (table.groups.iter())
            .filter(|_| !command.variants.is_empty())
            .filter_map(|group| {
                let share = group.check?.figures.get(SHARE)?;
                Some((group.allocator.name.clone(), *share))
            })
            .collect(),
        interactions: Vec::new(),
        pss_missed: noted(PSS_MISSED),
        calls_per_cpu_s: figure(CALLS_PER_S),
        untimed: of_baseline(UNTIMED),
        unproven: of_baseline(UNPROVEN),
        silent: of_baseline(SILENT),
        unsearched: of_baseline(UNSEARCHED),
        left_behind: noted(LEFT_BEHIND)
            .into_iter()
            .filter_map(|(name, count)| Some((name, count.parse().ok()?)))
            .collect(),
        short: row.is_some_and(|row| row.time().spread.median < SHORT_NS),
    }
}

fn hangs_later(row: &TableRow) -> bool {
    let failed = row.failed.as_ref();
    failed.is_some_and(|failed| match &failed.counts[..] {
        [(_, hung)] => matches!(failed.first, Outcome::Hang { .. }) && *hung < failed.of,
        _ => false,
    })
}

/// Returns whether the check found more memory, even with shared pages divided, than timed processes held with all
/// of their pages.
fn is_missed(row: &TableRow) -> bool {
    let pss_bytes = row.median("peak_pss_bytes");
    // The kernel's own peak of one process is exact.
    row.median("processes") != Some(1.0) && pss_bytes > row.median("peak_rss_bytes")
}

/// The least number of times that show a trend.
const LEAST_TIMES: usize = 6;
/// A standard normal variable exceeds this by chance in 0.6 % of cases.
const SURELY: f64 = 2.5;
/// A growth by less than this factor is not worth mentioning.
const GROWTH: f64 = 1.2;
/// Beside more and more other programs, the same work takes more and more CPU time, but hardly this much more.
const DISTURBED_GROWTH: f64 = 2.0;

/// How the CPU time of the baseline's processes grows.
fn grown(baseline: &Group) -> Option<(f64, f64)> {
    let factor = match baseline.disturbed.is_empty() {
        true => GROWTH,
        false => DISTURBED_GROWTH,
    };
    growth(&baseline.cpu_ns_in_order, factor)
}

/// The medians of the first third and of the last, if times grow from process to process: by more
/// than this factor, and by the rank test of Mann and Kendall. Of CPU time, which depends less than wall time on what else the
/// machine does.
fn growth(ns: &[f64], factor: f64) -> Option<(f64, f64)> {
    if ns.len() < LEAST_TIMES {
        return None;
    }
    let mut score = 0.0;
    for (place, earlier) in ns.iter().enumerate() {
        let later = ns[place + 1..].iter();
        score += later
            .map(|later| later.total_cmp(earlier) as i32 as f64)
            .sum::<f64>();
    }
    let n = ns.len() as f64;
    let deviation = (n * (n - 1.0) * (2.0 * n + 5.0) / 18.0).sqrt();
    let third = ns.len() / 3;
    let first = median(&ns[..third])?;
    let last = median(&ns[ns.len() - third..])?;
    ((score - 1.0) / deviation >= SURELY && last >= first * factor).then_some((first, last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_grow_are_told_from_those_that_vary() {
        let of = |ns: &[f64]| growth(ns, GROWTH);
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Some((1.5, 5.5)));
        assert_eq!(of(&[1.0, 2.0, 3.0, 4.0, 5.0]), None, "too few");
        assert_eq!(of(&[1.0, 1.01, 1.02, 1.03, 1.04, 1.05]), None, "hardly");
        assert_eq!(
            of(&[2.0, 1.0, 3.0, 1.0, 2.0, 3.0, 2.0, 3.0]),
            None,
            "up and down"
        );
        assert_eq!(of(&[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]), None, "they fall");
        assert_eq!(of(&[1.0; 9]), None);
        let busier = [1.0, 1.1, 1.2, 1.3, 1.4, 1.5];
        assert!(of(&busier).is_some() && growth(&busier, DISTURBED_GROWTH).is_none());
    }
}
