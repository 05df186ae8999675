//! The columns of a sheet.

use crate::analyse::{Numbers, Row};

/// A column of a sheet.
pub(in crate::report) struct Column {
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
        let cells = cells.into_iter().collect();
        Column {
            title: title.to_owned(),
            cells,
            number: false,
            spare: Spare::No,
            notes: false,
        }
    }

    /// A column that only a very narrow page leaves out.
    pub fn spare_late(self) -> Column {
        Column {
            spare: Spare::Late,
            ..self
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

/// What happens to a column on a narrow page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::report) enum Spare {
    /// It stays.
    No,
    /// It is left out if the others do not fit even with their headings in several lines.
    Late,
    /// It is left out first.
    Early,
}

/// Columns under construction.
pub(in crate::report) struct TableColumns<'a> {
    /// From the fastest to the slowest.
    pub rows: Vec<(&'a Row, &'a Numbers)>,
    /// Those that are there so far.
    pub columns: Vec<Column>,
}

impl TableColumns<'_> {
    /// A column of numbers.
    pub fn column(&mut self, title: &str, cell: impl Fn(&Row, &Numbers) -> String) {
        let column = Column::numbers(title, self.cells(cell));
        self.columns.push(column);
    }

    /// Numbers that a narrow page leaves out.
    pub fn spare(&mut self, title: &str, cell: impl Fn(&Row, &Numbers) -> String) {
        let column = Column::numbers(title, self.cells(cell)).spare();
        self.columns.push(column);
    }

    /// Words that a narrow page leaves out.
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
        self.rows
            .iter()
            .map(|(row, numbers)| cell(row, numbers))
            .collect()
    }
}
