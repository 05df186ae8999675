//! A case as words in columns: what the terminal and Markdown both show. Strings from outside are still as they came; who
//! prints them makes them harmless.

use super::{text, units, whole};
use crate::analyse::{Case, Numbers, Purge, Ratio, Role, Row, State};

/// One case, ready to be laid out.
pub(super) struct Sheet {
    /// `larson, 2 threads (oversubscribed)`.
    pub heading: String,
    /// All of one length; the first names the allocators, and notes, if there are any, come last.
    pub columns: Vec<Column>,
    /// `floor: null 2.00 ns/op`, one per floor that was measured.
    pub floors: Vec<String>,
    /// What nobody should read the table without.
    pub caution: Option<String>,
    /// Allocators without numbers, and why.
    pub numberless: Vec<Numberless>,
}

/// A column of a sheet.
pub(super) struct Column {
    /// Its heading.
    pub title: String,
    /// From the fastest row to the slowest.
    pub cells: Vec<String>,
    /// Numbers stand right, words left.
    pub number: bool,
    /// May be left out where the page is too narrow; files have it.
    pub spare: bool,
    /// Words that may as well stand below the table.
    pub notes: bool,
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

impl Sheet {
    pub fn new(case: &Case, planned_blocks: u32) -> Sheet {
        let mut rows: Vec<(&Row, &Numbers)> = case.rows.iter().filter_map(|row| Some((row, row.numbers()?))).collect();
        rows.sort_by(|(_, a), (_, b)| a.ns_per_op.median.total_cmp(&b.ns_per_op.median));
        let (floors, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(row, _)| row.role == Role::Floor);
        Sheet {
            heading: heading(case),
            floors: floors.iter().map(|(row, numbers)| floor_line(row, numbers)).collect(),
            numberless: case.rows.iter().filter_map(|row| numberless(row, planned_blocks)).collect(),
            columns: if rows.is_empty() { Vec::new() } else { columns(rows, case, planned_blocks) },
            caution: case.caution.clone(),
        }
    }
}

fn heading(case: &Case) -> String {
    let mark = if case.oversubscribed { " (oversubscribed)" } else { "" };
    format!("{}, {}{mark}", case.workload, text::count(case.threads as usize, "thread"))
}

fn floor_line(row: &Row, numbers: &Numbers) -> String {
    let unit = units::time(numbers.ns_per_op.median);
    format!("floor: {} {} {}", row.allocator, units::digits(numbers.ns_per_op.median / unit.size), unit.name)
}

fn numberless(row: &Row, planned_blocks: u32) -> Option<Numberless> {
    let reason = match &row.state {
        State::Measured(_) => return None,
        State::Failed(failed) => failed.summary(),
        State::Missing { unusable: 0 } => {
            format!("missing: 0 of {} measured", text::count(planned_blocks as usize, "block"))
        }
        State::Missing { unusable } => {
            format!(
                "missing: {} ended ok with nothing to divide (no operations or no time)",
                text::count(*unusable, "sample")
            )
        }
    };
    let failed = matches!(row.state, State::Failed(_));
    Some(Numberless { allocator: row.allocator.clone(), reason, failed })
}

/// Columns under construction.
pub(super) struct Table<'a> {
    /// From the fastest to the slowest.
    pub rows: Vec<(&'a Row, &'a Numbers)>,
    columns: Vec<Column>,
}

impl Table<'_> {
    /// A column of numbers.
    pub fn column(&mut self, title: &str, cell: impl Fn(&Row, &Numbers) -> String) {
        let cells = self.rows.iter().map(|(row, numbers)| cell(row, numbers)).collect();
        self.columns.push(Column { title: title.to_owned(), cells, number: true, spare: false, notes: false });
    }

    /// Numbers that a narrow page can do without.
    pub fn spare(&mut self, title: &str, cell: impl Fn(&Row, &Numbers) -> String) {
        self.column(title, cell);
        self.columns.iter_mut().last().into_iter().for_each(|column| column.spare = true);
    }

    /// A column of words.
    pub fn words(&mut self, title: &str, cell: impl Fn(&Row, &Numbers) -> String) {
        self.column(title, cell);
        self.columns.iter_mut().last().into_iter().for_each(|column| column.number = false);
    }
}

fn columns(rows: Vec<(&Row, &Numbers)>, case: &Case, planned_blocks: u32) -> Vec<Column> {
    let mut table = Table { rows, columns: Vec::new() };
    table.words(if case.whole_process { "row" } else { "allocator" }, |row, _| row.allocator.clone());
    if case.whole_process {
        whole::columns(&mut table, case);
    } else {
        operations(&mut table, case);
    }
    table.words("notes", |row, n| notes(row, n, case, planned_blocks));
    match table.columns.last_mut() {
        Some(notes) if notes.cells.iter().any(|cell| !cell.is_empty()) => notes.notes = true,
        _ => _ = table.columns.pop(),
    }
    table.columns
}

/// The columns of a case whose operations are counted.
fn operations(table: &mut Table<'_>, case: &Case) {
    let smallest = |value: fn(&Numbers) -> f64| table.rows.iter().map(|(_, n)| value(n)).fold(f64::INFINITY, f64::min);
    let time = units::time(smallest(|n| n.ns_per_op.median));
    let rate = units::rate(smallest(|n| n.mops_per_s.median));
    table.column(time.name, |_, n| units::digits(n.ns_per_op.median / time.size));
    table.spare(rate.name, |_, n| units::digits(n.mops_per_s.median / rate.size));
    if table.rows.iter().any(|(_, n)| n.ratio.is_some()) {
        table.words(&format!("time / {} [95 %]", case.baseline), |row, n| ratio(row, n.ratio.as_ref()));
        table.column("CPU", |row, n| cpu_ratio(row, n.cpu_ratio.as_ref()));
    }
    table.column(memory_title(&table.rows), |_, n| memory(n));
    if table.rows.iter().any(|(_, n)| n.floor_share.is_some()) {
        table.spare("floor", |_, n| n.floor_share.map(units::percent).unwrap_or_default());
    }
}

pub(super) fn ratio(row: &Row, ratio: Option<&Ratio>) -> String {
    match ratio {
        None => "-".into(),
        Some(_) if row.role == Role::Baseline => "1 (baseline)".into(),
        Some(Ratio { ratio, interval: Some((low, high)), .. }) => {
            format!("{} [{}, {}]", units::ratio(*ratio), units::ratio(*low), units::ratio(*high))
        }
        Some(Ratio { ratio, interval: None, pairs }) => format!("{} [n = {pairs}]", units::ratio(*ratio)),
    }
}

pub(super) fn cpu_ratio(row: &Row, ratio: Option<&Ratio>) -> String {
    match ratio {
        None => "-".into(),
        Some(_) if row.role == Role::Baseline => "1".into(),
        Some(ratio) => units::ratio(ratio.ratio),
    }
}

pub(super) fn memory_title(rows: &[(&Row, &Numbers)]) -> &'static str {
    let overheads = rows.iter().filter(|(_, n)| n.memory.is_some_and(|memory| memory.overhead.is_some())).count();
    match overheads {
        0 => "peak RSS",
        all if all == rows.len() => "overhead",
        _ => "overhead or peak RSS",
    }
}

pub(super) fn memory(numbers: &Numbers) -> String {
    match numbers.memory {
        None => "-".into(),
        Some(memory) => memory.overhead.map_or_else(|| units::bytes(memory.peak_rss_bytes), units::times),
    }
}

fn notes(row: &Row, numbers: &Numbers, case: &Case, planned_blocks: u32) -> String {
    let mut notes: Vec<String> = whole::note(row, numbers).into_iter().chain(whole::sizes(row)).collect();
    if !row.leaves.is_empty() {
        notes.push("partial".to_owned());
    }
    if case.counts_purge {
        match row.purge {
            Purge::None => notes.push("not purged".to_owned()),
            Purge::Unknown => notes.push("purge unknown".to_owned()),
            Purge::Configured => notes.push("purge configured".to_owned()),
            Purge::Called => notes.extend(numbers.purge_share.map(|share| format!("purge {}", units::percent(share)))),
        }
    }
    if numbers.samples < planned_blocks as usize {
        notes.push(format!("{} of {} blocks", numbers.samples, planned_blocks));
    }
    if let Some(pairs) = numbers.ratio.map(|ratio| ratio.pairs).filter(|pairs| *pairs < numbers.samples) {
        notes.push(text::count(pairs, "pair"));
    }
    if numbers.unusable > 0 {
        notes.push(format!("{} unusable", numbers.unusable));
    }
    notes.join(", ")
}
