//! A case as words in columns: the common content of terminal and Markdown. Strings from outside
//! are not yet escaped; the printing code does that.

mod cells;
mod columns;

pub use cells::{bound, bounds, cpu_ratio, interval, peak_rss, ratio, user_ratio, verdict};
pub use columns::{Column, Spare, TableColumns};

use super::{factor, text, units, user_command};
use crate::analyse::{Analysis, Failed, Role, Table, TableRow};

/// One case, ready for layout.
#[derive(Default)]
pub struct Sheet {
    /// `larson, 2 threads (oversubscribed)`.
    pub heading: String,
    /// What must be known before the first number is read.
    pub above: Option<String>,
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
pub struct Numberless {
    /// Allocator name.
    pub allocator: String,
    /// `crash 1 of 11: SIGSEGV in phase run`, or what is missing.
    pub reason: String,
    /// Whether some process did not end `ok`; otherwise samples are missing.
    pub failed: bool,
}

impl Numberless {
    /// How a row failed, or another reason for having no numbers.
    pub fn new(
        allocator: &str,
        failed: Option<&Failed>,
        otherwise: impl FnOnce() -> String,
    ) -> Numberless {
        Numberless {
            allocator: allocator.to_owned(),
            reason: failed.map_or_else(otherwise, Failed::summary),
            failed: failed.is_some_and(|failed| !failed.first.is_absent()),
        }
    }
}

/// For which cases the harness's own time is known, so that means leave it out.
pub enum Floors {
    OfAll,
    OfSome,
    None,
}

/// Looks at the cases that means are taken over.
pub fn floors(analysis: &Analysis) -> Floors {
    let is_floor = |row: &TableRow| row.role == Role::Floor && row.has_run();
    let cases = analysis.cases.iter();
    let mut counting = cases.filter(|case| case.counts() && case.factor.is_none());
    let has_floor = |case: &Table| case.rows.iter().any(is_floor);
    match (counting.clone().any(has_floor), counting.all(has_floor)) {
        (true, true) => Floors::OfAll,
        (true, false) => Floors::OfSome,
        _ => Floors::None,
    }
}

/// `Overall: time / glibc, floor left out, geometric mean over 6 cases`.
pub fn overall_heading(analysis: &Analysis) -> String {
    let cases = analysis.overall.iter().map(|one| one.cases).max();
    let floor = match floors(analysis) {
        Floors::OfAll => ", floor left out",
        Floors::OfSome => ", floor left out where it is known",
        Floors::None => "",
    };
    format!(
        "Overall: time / {}{floor}, geometric mean over {} [95 %], next run [95 %]",
        analysis.baseline,
        text::count(cases.unwrap_or_default(), "case")
    )
}

/// Name and ratio of each allocator, the fastest first.
pub fn overall(analysis: &Analysis) -> Vec<(String, String)> {
    analysis
        .overall
        .iter()
        .map(|one| {
            let ends = |ends: Option<(f64, f64)>| ends.map(cells::bounds).unwrap_or_default();
            let interval = text::enclosed(" ", &ends(one.interval), "");
            let next = text::enclosed(", next run ", &ends(one.run_to_run), "");
            let ratio = if one.allocator == analysis.baseline {
                "1 (baseline)".to_owned()
            } else {
                units::ratio(one.ratio) + &interval + &next
            };
            (one.allocator.clone(), ratio)
        })
        .collect()
}

/// `larson, 2 threads (oversubscribed)`, or the user's command.
pub fn heading_of(table: &Table) -> String {
    let mark = if table.oversubscribed {
        " (oversubscribed)"
    } else {
        ""
    };
    let heading = match &table.command {
        Some(tried) if tried.real => {
            format!("{}: {}", table.workload, user_command::heading(tried))
        }
        Some(tried) => user_command::heading(tried),
        None => {
            let threads = text::count(table.threads, "thread");
            format!("{}, {threads}{mark}", table.workload)
        }
    };
    heading + &factor::words(table)
}

/// The table's own caution, then the one for all tables of its kind.
pub fn cautions(own: &Table, of_all: Option<&str>) -> Option<String> {
    let both: Vec<&str> = own.caution.as_deref().into_iter().chain(of_all).collect();
    (!both.is_empty()).then(|| both.join(" "))
}

/// `processes: hoard 1 of 3`: rows that rest on fewer than were planned.
pub fn fewer(rows: &[&TableRow], planned: u32) -> Option<String> {
    let of_row = |row: &&TableRow| {
        let n = row.cells.iter().map(|cell| cell.n).max()?;
        (n < u64::from(planned)).then(|| format!("{} {n} of {planned}", row.allocator))
    };
    named("processes", &Vec::from_iter(rows.iter().filter_map(of_row)))
}

/// `what: one, other`, if there is any.
pub fn named(what: &str, rows: &[String]) -> Option<String> {
    (!rows.is_empty()).then(|| format!("{what}: {}", rows.join(", ")))
}

/// Why a row without measurements has no numbers.
pub fn missing(planned_blocks: u32) -> String {
    format!(
        "missing: 0 of {} measured",
        text::count(planned_blocks, "block")
    )
}
