//! A case as words in columns: what the terminal and Markdown both show. Strings from outside are still as they came; who
//! prints them makes them harmless.

use super::{count, footprint, latency, operations, text, trial, trust, units, whole};
use crate::analyse::{Analysis, Call, Case, Failed, Numbers, Purge, Ratio, Role, Row, State, TwoModes};

/// One case, ready to be laid out.
#[derive(Default)]
pub(super) struct Sheet {
    /// `larson, 2 threads (oversubscribed)`.
    pub heading: String,
    /// All of one length; the first names the allocators, and notes, if there are any, come last.
    pub columns: Vec<Column>,
    /// `floor: null 2.00 ns/op`, one per floor that was measured.
    pub floors: Vec<String>,
    /// `A/A: a copy of glibc takes 0.998 [0.991, 1.004] of its time`; and why nothing is claimed, where nothing is.
    pub trust: Vec<String>,
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

impl Column {
    /// A column of numbers.
    pub fn numbers(title: &str, cells: impl IntoIterator<Item = String>) -> Column {
        Column { number: true, ..Column::words(title, cells) }
    }

    /// A column of words.
    pub fn words(title: &str, cells: impl IntoIterator<Item = String>) -> Column {
        let cells = cells.into_iter().collect();
        Column { title: title.to_owned(), cells, number: false, spare: false, notes: false }
    }

    /// That a narrow page can do without.
    pub fn spare(self) -> Column {
        Column { spare: true, ..self }
    }
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
    /// How a row failed, or what else left it without numbers.
    pub fn new(allocator: &str, failed: Option<&Failed>, otherwise: impl FnOnce() -> String) -> Numberless {
        let reason = failed.map_or_else(otherwise, Failed::summary);
        Numberless { allocator: allocator.to_owned(), reason, failed: failed.is_some() }
    }
}

/// The tables of a run, whatever it measured.
pub(super) fn all(analysis: &Analysis) -> Vec<Sheet> {
    let cases = analysis.cases.iter().map(|case| Sheet::new(case, analysis.planned_blocks));
    cases.chain(latency::sheets(analysis)).chain(count::sheets(analysis)).chain(footprint::sheets(analysis)).collect()
}

impl Sheet {
    pub fn new(case: &Case, planned_blocks: u32) -> Sheet {
        let mut rows: Vec<(&Row, &Numbers)> = case.rows.iter().filter_map(|row| Some((row, row.numbers()?))).collect();
        rows.sort_by(|(_, a), (_, b)| a.ns_per_op.median.total_cmp(&b.ns_per_op.median));
        rows.retain(|(row, _)| row.role != Role::Shadow);
        let (floors, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|(row, _)| row.role == Role::Floor);
        Sheet {
            heading: heading_of(case),
            floors: floors.iter().map(|(row, numbers)| floor_line(row, numbers)).collect(),
            numberless: case.rows.iter().filter_map(|row| numberless(row, planned_blocks)).collect(),
            columns: if rows.is_empty() { Vec::new() } else { columns(rows, case, planned_blocks) },
            trust: trust::lines(case),
            caution: case.caution.clone(),
        }
    }
}

/// `Overall: time / glibc, geometric mean over 6 cases`.
pub(super) fn overall_heading(analysis: &Analysis) -> String {
    let cases = analysis.overall.iter().map(|one| one.cases).max().unwrap_or(0);
    format!(
        "Overall: time / {}, geometric mean over {} [95 % from whole blocks]",
        analysis.baseline,
        text::count(cases, "case")
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

/// The command that was tried, or the workload and its threads.
pub(super) fn heading_of(case: &Case) -> String {
    match &case.trial {
        Some(tried) => trial::heading(tried),
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
    let failed = matches!(row.state, State::Failed(_));
    Some(Numberless { allocator: row.allocator.clone(), reason, failed })
}

/// Why a row has no numbers that was not measured.
pub(super) fn missing(planned_blocks: u32) -> String {
    format!("missing: 0 of {} measured", text::count(planned_blocks as usize, "block"))
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
        let column = Column::numbers(title, self.cells(cell));
        self.columns.push(column);
    }

    /// Numbers that a narrow page can do without.
    pub fn spare(&mut self, title: &str, cell: impl Fn(&Row, &Numbers) -> String) {
        let column = Column::numbers(title, self.cells(cell)).spare();
        self.columns.push(column);
    }

    /// Words that a narrow page can do without.
    pub fn spare_words(&mut self, title: &str, cell: impl Fn(&Row, &Numbers) -> String) {
        let column = Column::words(title, self.cells(cell)).spare();
        self.columns.push(column);
    }

    /// A column of words.
    pub fn words(&mut self, title: &str, cell: impl Fn(&Row, &Numbers) -> String) {
        let column = Column::words(title, self.cells(cell));
        self.columns.push(column);
    }

    fn cells(&self, cell: impl Fn(&Row, &Numbers) -> String) -> Vec<String> {
        self.rows.iter().map(|(row, numbers)| cell(row, numbers)).collect()
    }
}

fn columns(rows: Vec<(&Row, &Numbers)>, case: &Case, planned_blocks: u32) -> Vec<Column> {
    let mut table = Table { rows, columns: Vec::new() };
    let of_programs = case.whole_process && case.trial.is_none();
    table.words(if of_programs { "row" } else { "allocator" }, |row, _| row.allocator.clone());
    if case.trial.is_some() {
        trial::columns(&mut table, case);
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

pub(super) fn ratio(row: &Row, ratio: Option<&Ratio>) -> String {
    match ratio {
        None => "-".into(),
        Some(_) if row.role == Role::Baseline => "1 (baseline)".into(),
        Some(ratio) => interval(ratio),
    }
}

/// `0.704 [0.690, 0.719]`.
pub(super) fn interval(Ratio { ratio, interval, pairs }: &Ratio) -> String {
    match interval {
        Some((low, high)) => format!("{} [{}, {}]", units::ratio(*ratio), units::ratio(*low), units::ratio(*high)),
        None => format!("{} [n = {pairs}]", units::ratio(*ratio)),
    }
}

pub(super) fn call(call: Option<Call>) -> String {
    match call {
        Some(Call::Unclear { blocks_more: Some(more) }) => format!("unclear (+{more})"),
        call => call.map_or_else(String::new, |call| call.word().to_owned()),
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
    if numbers.blocks < planned_blocks as usize {
        notes.push(format!("{} of {} blocks", numbers.blocks, planned_blocks));
    }
    if let Some(TwoModes { low, low_count, high, high_count }) = numbers.modes {
        let unit = units::time(low);
        let mode = |value: f64, count: usize| format!("{} ({count}x)", units::digits(value / unit.size));
        notes.push(format!("two modes: {} and {} {}", mode(low, low_count), mode(high, high_count), unit.name));
    }
    if let Some(pairs) = numbers.ratio.map(|ratio| ratio.pairs).filter(|pairs| *pairs < numbers.blocks) {
        notes.push(text::count(pairs, "pair"));
    }
    if numbers.unusable > 0 {
        notes.push(format!("{} unusable", numbers.unusable));
    }
    notes.join(", ")
}
