//! The rows of an analysis as tables of a document, and words that many of these share.

use super::document::{Cell, Mark, Note, Sheet};
use super::text;
use super::units::{self, bounds};
use crate::analyse::{Analysis, Failed, Overall, Role, TableRow};
use crate::metric::Unit;

/// How much a table shows.
#[derive(Clone, Copy, PartialEq)]
pub enum Extent {
    /// Only what decides the answer.
    Brief,
    /// Everything that is known.
    Full,
}

/// A table under construction, with a row for each of `rows`.
pub struct SheetOf<'a, R> {
    /// What the rows are made from, in the order of the table.
    pub rows: Vec<&'a R>,
    /// The table as far as it is built.
    pub sheet: Sheet,
}

impl<'a, R> SheetOf<'a, R> {
    /// A table without columns.
    pub fn new(heading: impl Into<String>, rows: impl IntoIterator<Item = &'a R>) -> Self {
        let rows: Vec<&R> = rows.into_iter().collect();
        let sheet = Sheet {
            heading: heading.into(),
            rows: vec![Vec::new(); rows.len()],
            ..Sheet::default()
        };
        SheetOf { rows, sheet }
    }

    /// Adds a column.
    pub fn add<C: Into<Cell>>(&mut self, title: impl Into<String>, cell: impl Fn(&'a R) -> C) {
        self.sheet.columns.push(title.into());
        for (cells, row) in self.sheet.rows.iter_mut().zip(&self.rows) {
            cells.push(cell(row).into());
        }
    }
}

impl SheetOf<'_, TableRow> {
    /// Adds the column of a metric.
    pub fn metric(&mut self, title: &str, key: &str) {
        self.add(title, |row| row.cell(key));
    }

    /// Adds the column of a metric if some row has it.
    pub fn metric_of_some(&mut self, title: &str, key: &str) {
        if self.rows.iter().any(|row| row.cell(key).is_some()) {
            self.metric(title, key);
        }
    }

    /// Adds columns for the time over the baseline's, and for the verdict on it.
    pub fn judged(&mut self, baseline: &str) {
        self.add(format!("time / {baseline} [95 %]"), time_ratio);
        self.add("verdict", |row| verdict(row, "ns_per_op"));
    }

    /// Adds a column for memory at its peak.
    pub fn memory(&mut self) {
        let overhead = |row: &TableRow| row.median("overhead");
        let rows = self.rows.iter().filter(|row| overhead(row).is_some());
        let title = match rows.count() {
            0 => "peak RSS",
            all if all == self.rows.len() => "overhead",
            _ => "overhead or peak RSS",
        };
        self.add(title, |row| {
            row.cell("overhead").or(row.cell("peak_rss_bytes"))
        });
    }
}

/// `<= ` or `>= ` before a ratio that a high floor moves towards 1.
pub fn bound(row: &TableRow) -> &'static str {
    match row.time().ratio {
        Some(ratio) if row.ratio_is_bound && ratio.ratio < 1.0 => "<= ",
        Some(_) if row.ratio_is_bound => ">= ",
        _ => "",
    }
}

/// Returns the time over the baseline's as a cell.
pub fn time_ratio(row: &TableRow) -> Cell {
    let cell = match row.role {
        Role::Baseline if row.time().ratio.is_some() => "1 (baseline)".into(),
        _ => row.time().ratio.into(),
    };
    Cell {
        sign: bound(row),
        ..cell
    }
}

/// The verdict on a row by a metric; empty for a row that is not judged.
pub fn verdict(row: &TableRow, key: &str) -> Cell {
    row.cell(key).map_or("".into(), |cell| {
        Cell::verdict(cell.verdict, cell.metric, cell.ratio)
    })
}

/// A metric over the baseline's, without its interval.
pub fn over_baseline(row: &TableRow, key: &str) -> Cell {
    match row.ratio(key) {
        Some(_) if row.role == Role::Baseline => (1.0, Unit::Count).into(),
        ratio => ratio.map(|ratio| Cell::ratio(ratio.ratio)).into(),
    }
}

/// A row without numbers: how it failed, or another reason.
pub fn numberless(
    allocator: &str,
    failed: Option<&Failed>,
    otherwise: impl FnOnce() -> String,
) -> Note {
    let reason = failed.map_or_else(otherwise, Failed::summary);
    let mark = match failed {
        Some(failed) if !failed.first.is_absent() => Mark::Failed,
        _ => Mark::Gap,
    };
    Note::marked(format!("{allocator}: {reason}"), mark)
}

/// `Overall: time / glibc, geometric mean over 6 cases`.
pub fn overall_heading(analysis: &Analysis) -> String {
    let cases = analysis.overall.iter().map(|one| one.cases).max();
    format!(
        "Overall: time / {}, geometric mean over {}",
        analysis.baseline,
        text::count(cases.unwrap_or_default(), "case")
    )
}

/// The ratio of each allocator over all cases, the fastest first.
pub fn overall(analysis: &Analysis) -> Sheet {
    let mut table = SheetOf::new(overall_heading(analysis), &analysis.overall);
    table.add("allocator", |one: &Overall| &one.allocator);
    table.add("ratio [95 %]", |one| {
        let interval = one.interval.map(bounds).unwrap_or_default();
        match one.allocator == analysis.baseline {
            true => "1 (baseline)".to_owned(),
            false => units::ratio(one.ratio) + &text::enclosed(" ", &interval, ""),
        }
    });
    table.add("next run [95 %]", |one| one.run_to_run.map(bounds));
    if analysis.overall.iter().any(|one| one.alone.is_some()) {
        table.add("malloc alone [95 %]", |one| one.alone);
    }
    table.add("user time", |one| one.user_ratio.map(Cell::ratio));
    table.add("memory", |one| Some((one.memory?.ratio, Unit::Times)));
    table.add("kernel", |one| Some((one.kernel_share?, Unit::Share)));
    if !analysis.held.is_empty() {
        let held = |one: &Overall| analysis.held_by(&one.allocator);
        let times = |ratio: Option<f64>| Some((ratio?, Unit::Times));
        table.add("peak/live", |one| times(held(one)?.peak));
        table.add("pool", |one| times(held(one)?.worst()));
        table.add("idle back", |one| Some((held(one)?.returned?, Unit::Share)));
    }
    table.sheet
}

/// `processes: hoard 1 of 3`: rows that have fewer processes than planned.
pub fn fewer(rows: &[&TableRow], planned: u32) -> Option<String> {
    let of_row = |row: &&TableRow| {
        let n = row.cells.iter().map(|cell| cell.n).max()?;
        (n < u64::from(planned)).then(|| format!("{} {n} of {planned}", row.allocator))
    };
    named("processes", &Vec::from_iter(rows.iter().filter_map(of_row)))
}

/// `what: one, other`; `None` without rows.
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
