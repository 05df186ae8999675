//! A case as words in columns: the common content of terminal and Markdown. Strings from outside
//! are not yet escaped; the printing code does that.

mod cells;
mod columns;

pub(super) use cells::{cpu_ratio, interval, memory, memory_title, ratio, verdict};
pub(super) use columns::{Column, Spare, TableColumns};

use super::{caveats, count, footprint, latency, text, units, user_command};
use crate::analyse::{Analysis, Case, Failed, Numbers, Role, Row, State};
use columns::columns;

/// One case, ready for layout.
#[derive(Default)]
pub(super) struct Sheet {
    /// `larson, 2 threads (oversubscribed)`.
    pub heading: String,
    /// All of one length; the first names the allocators, and notes, if there are any, come last.
    pub columns: Vec<Column>,
    /// `floor: null 2.00 ns/op`, one per floor that was measured.
    pub floors: Vec<String>,
    /// `A/A: a copy of glibc takes 0.998 [0.991, 1.004] of its time`; and why claims are withheld,
    /// if they are.
    pub trust: Vec<String>,
    /// A caution that the table must not be read without.
    pub caution: Option<String>,
    /// Allocators without numbers, and why.
    pub numberless: Vec<Numberless>,
}

/// A row without numbers.
pub(super) struct Numberless {
    /// Allocator name.
    pub allocator: String,
    /// `crash 1 of 11: SIGSEGV in phase run`, or what is missing.
    pub reason: String,
    /// Whether some process did not end `ok`; otherwise samples are missing.
    pub failed: bool,
}

impl Numberless {
    /// How a row failed, or another reason for having no numbers.
    pub fn new(allocator: &str, failed: Option<&Failed>, otherwise: impl FnOnce() -> String) -> Numberless {
        let reason = failed.map_or_else(otherwise, Failed::summary);
        Numberless {
            allocator: allocator.to_owned(),
            reason,
            failed: failed.is_some_and(|failed| !failed.first.is_absent()),
        }
    }
}

/// The tables of a run of any kind.
pub(super) fn all(analysis: &Analysis) -> Vec<Sheet> {
    let cases = analysis.cases.iter().map(|case| Sheet::new(case, analysis.planned_blocks));
    cases.chain(latency::sheets(analysis)).chain(count::sheets(analysis)).chain(footprint::sheets(analysis)).collect()
}

impl Sheet {
    pub fn new(case: &Case, planned_blocks: u32) -> Sheet {
        let mut rows: Vec<(&Row, &Numbers)> = case.rows.iter().filter_map(|row| Some((row, row.numbers()?))).collect();
        // For a user's command, the conclusion below uses the ratios of pairs, and medians may have
        // another order.
        let by_ratio = case.command.is_some() && rows.iter().all(|(_, numbers)| numbers.ratio.is_some());
        let rank = |numbers: &Numbers| match (case.paced, numbers.mean_footprint, numbers.memory) {
            _ if by_ratio => numbers.ratio.map_or(1.0, |ratio| ratio.ratio),
            (true, Some(mean), _) => mean.bytes.median,
            (true, None, Some(memory)) => memory.peak_rss_bytes,
            _ => numbers.ns_per_op.median,
        };
        rows.sort_by(|(_, a), (_, b)| rank(a).total_cmp(&rank(b)));
        rows.retain(|(row, _)| row.role != Role::AaCopy);
        let (floors, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(row, _)| row.role == Role::Floor);
        Sheet {
            heading: heading_of(case),
            floors: floors.iter().filter(|_| !case.paced).map(|(row, numbers)| floor_line(row, numbers)).collect(),
            numberless: case.rows.iter().filter_map(|row| numberless(row, planned_blocks)).collect(),
            columns: if rows.is_empty() { Vec::new() } else { columns(rows, case, planned_blocks) },
            trust: caveats::lines(case),
            caution: case.caution.clone(),
        }
    }
}

/// `Overall: time / glibc, geometric mean over 6 cases without larson@2 (A/A)`.
pub(super) fn overall_heading(analysis: &Analysis) -> String {
    let cases = analysis.overall.iter().map(|one| one.cases).max().unwrap_or(0);
    let without: Vec<String> = analysis.overall_without.iter().map(|case| format!("{case} (A/A)")).collect();
    format!(
        "Overall: time / {}, geometric mean over {}{} [95 % from whole blocks]",
        analysis.baseline,
        text::count(cases, "case"),
        if without.is_empty() { String::new() } else { format!(" without {}", text::list(&without)) }
    )
}

/// Name and ratio of each candidate, the fastest first.
pub(super) fn overall(analysis: &Analysis) -> Vec<(String, String)> {
    analysis
        .overall
        .iter()
        .map(|one| {
            let interval = one.interval.map(|(low, high)| format!(" [{}, {}]", units::ratio(low), units::ratio(high)));
            (one.allocator.clone(), format!("{}{}", units::ratio(one.ratio), interval.unwrap_or_default()))
        })
        .collect()
}

/// The user's command, or the workload and its threads.
pub(super) fn heading_of(case: &Case) -> String {
    match &case.command {
        Some(tried) => user_command::heading(tried),
        None => heading(&case.workload, case.threads, case.oversubscribed),
    }
}

/// `larson, 2 threads (oversubscribed)`.
pub(super) fn heading(workload: &str, threads: u32, oversubscribed: bool) -> String {
    let mark = if oversubscribed { " (oversubscribed)" } else { "" };
    format!("{workload}, {}{mark}", text::count(threads as usize, "thread"))
}

fn floor_line(row: &Row, numbers: &Numbers) -> String {
    let unit = units::time(numbers.ns_per_op.median);
    format!("floor: {} {} {}", row.allocator, units::digits(numbers.ns_per_op.median / unit.size), unit.name)
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
    Some(Numberless { allocator: row.allocator.clone(), reason, failed })
}

/// The case's own caution, then the one for all tables of its kind.
pub(super) fn cautions(own: Option<&str>, of_all: Option<&str>) -> Option<String> {
    let both: Vec<&str> = own.into_iter().chain(of_all).collect();
    (!both.is_empty()).then(|| both.join(" "))
}

/// Why a row without measurements has no numbers.
pub(super) fn missing(planned_blocks: u32) -> String {
    format!("missing: 0 of {} measured", text::count(planned_blocks as usize, "block"))
}
