//! The columns of a sheet.

use super::cells::{self, peak_rss, ratio, verdict};
use crate::analyse::TableRow;
pub use crate::metric::Spare;
use crate::report::units;

/// A column of a sheet.
pub struct Column {
    /// Its heading.
    pub title: String,
    /// From the fastest row to the slowest.
    pub cells: Vec<String>,
    /// Numbers are right-aligned, words left.
    pub number: bool,
    /// Whether it may be left out if the page is too narrow; files keep it.
    pub spare: Spare,
    /// Words that may move below the table.
    pub notes: bool,
}

impl Column {
    /// A column of numbers.
    pub fn numbers(title: &str, cells: impl IntoIterator<Item = String>) -> Column {
        Column {
            number: true,
            ..Column::words(title, cells)
        }
    }

    /// A column of words.
    pub fn words(title: &str, cells: impl IntoIterator<Item = String>) -> Column {
        Column {
            title: title.to_owned(),
            cells: cells.into_iter().collect(),
            number: false,
            spare: Spare::Stays,
            notes: false,
        }
    }

    /// A column that a narrow page leaves out.
    pub fn spare(self) -> Column {
        Column {
            spare: Spare::Early,
            ..self
        }
    }
}

/// Columns under construction.
pub struct TableColumns<'a> {
    /// From the fastest to the slowest.
    pub rows: Vec<&'a TableRow>,
    /// Those that are there so far.
    pub columns: Vec<Column>,
}

impl TableColumns<'_> {
    /// A column of words.
    pub fn words(&mut self, title: &str, cell: impl Fn(&TableRow) -> String) -> &mut Column {
        let cells = self.rows.iter().map(|row| cell(row));
        self.columns.push(Column::words(title, cells));
        self.columns.last_mut().expect("one was just added")
    }

    /// A column of numbers.
    pub fn column(&mut self, title: &str, cell: impl Fn(&TableRow) -> String) -> &mut Column {
        let column = self.words(title, cell);
        column.number = true;
        column
    }

    /// A column of a metric, `-` if it is not known.
    pub fn metric(&mut self, title: &str, key: &str, text: fn(f64) -> String) -> &mut Column {
        self.column(title, |row| row.median(key).map_or("-".into(), text))
    }

    /// The same if some row has it.
    pub fn metric_of_some(
        &mut self,
        title: &str,
        key: &str,
        text: fn(f64) -> String,
        spare: Spare,
    ) {
        if self.rows.iter().any(|row| row.cell(key).is_some()) {
            self.metric(title, key, text).spare = spare;
        }
    }

    /// The time over the baseline's, and the verdict on it.
    pub fn judged(&mut self, baseline: &str) {
        self.words(&format!("time / {baseline} [95 %]"), |row| {
            format!(
                "{}{}",
                cells::bound(row),
                ratio(row, row.time().ratio.as_ref())
            )
        });
        self.words("verdict", |row| verdict(row.time().verdict));
    }

    /// Memory at its peak.
    pub fn memory(&mut self) {
        let overhead = |row: &TableRow| row.median("overhead");
        let told = self.rows.iter().filter(|row| overhead(row).is_some());
        let title = match told.count() {
            0 => "peak RSS",
            all if all == self.rows.len() => "overhead",
            _ => "overhead or peak RSS",
        };
        self.column(title, |row| {
            overhead(row).map_or_else(|| peak_rss(row), units::times)
        });
    }
}
