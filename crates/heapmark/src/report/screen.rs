//! The screen that a text is for.

use super::text::{plain, wrap};
use comfy_table::{CellAlignment, ContentArrangement, Row, Table, presets};

/// The properties of the output.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// Columns of characters in a line.
    pub width: usize,
    /// Whether escape sequences are allowed.
    pub colour: bool,
}

pub const BOLD: &str = "1";
pub const RED: &str = "31";
pub const GREEN: &str = "32";
pub const YELLOW: &str = "33";

impl Screen {
    /// Text in a colour, if the screen has any.
    pub(super) fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// A harmless paragraph in lines that fit, all but the first indented.
    pub(super) fn wrap(&self, text: &str, indent: usize) -> String {
        wrap(&plain(text), self.width, indent)
    }

    /// A table that fits.
    pub(super) fn table(&self, header: impl Into<Row>) -> Table {
        let mut table = borderless(header);
        table
            .set_content_arrangement(ContentArrangement::Dynamic)
            .set_width(self.width.min(u16::MAX.into()) as u16);
        table
    }
}

/// A table as wide as its cells: names, columns of numbers, and further words.
pub fn numbers_table(
    header: impl Into<Row>,
    numbers: usize,
    rows: impl Iterator<Item = impl Into<Row>>,
) -> String {
    let mut table = borderless(header);
    table.add_rows(rows);
    for column in table.column_iter_mut().skip(1).take(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt() + "\n"
}

fn borderless(header: impl Into<Row>) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}
