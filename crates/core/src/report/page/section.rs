//! The parts of a page. Strings from outside are unchanged, except in charts: `lay_out` escapes all others.

use super::figure;
use crate::report::document::Sheet;
use serde::Serialize;
use serde_json::{Value, json};

/// A heading and its content.
#[derive(Default)]
pub struct Section {
    /// The target of links; also the name of downloaded files.
    pub id: String,
    /// The section's heading.
    pub heading: String,
    /// What the section shows, as paragraphs.
    pub text: Vec<String>,
    /// What the section does not show, if readers may look for that here.
    pub hides: &'static str,
    /// The page that the section leads to.
    pub link: Option<PageLink>,
    /// The section's charts.
    pub views: Vec<View>,
    /// Stacked bars, one chart for each case.
    pub parts: Vec<PartsChart>,
    /// The section's tables.
    pub tables: Vec<Sheet>,
    /// The meaning of the tables' columns.
    pub legend: Vec<String>,
}

/// A link to another page.
#[derive(Serialize)]
pub struct PageLink {
    pub href: String,
    pub words: String,
}

/// The charts of one workload, visible when it is selected.
#[derive(Serialize)]
pub struct View {
    /// The workload that must be selected; `None` if the charts are always visible.
    pub workload: Option<String>,
    pub plots: Vec<Plot>,
    /// All values of the charts, with more digits.
    pub data: Data,
}

/// One chart.
#[derive(Serialize)]
pub struct Plot {
    pub title: String,
    pub traces: Vec<Trace>,
    /// The plot's axes and lines across it, as plotly.js reads them.
    pub layout: Value,
}

/// An allocator or a program in one of the runs.
#[derive(Clone, Copy, PartialEq)]
pub struct Entry<'a> {
    /// Index of the run.
    pub run: usize,
    pub name: &'a str,
}

/// The part of one allocator in a chart. The script chooses its colour and its marker.
#[derive(Serialize)]
pub struct Trace {
    /// Place in the legend; `None` if the trace stays when allocators are switched off.
    pub entry: Option<usize>,
    /// Place among several lines of one allocator, which then have colours of their own.
    pub line: Option<usize>,
    /// The index of the trace's run.
    pub run: usize,
    /// The trace as plotly.js reads it.
    pub drawn: Value,
}

/// Numbers with fixed units in the column names, as in a file.
#[derive(Default, Serialize)]
pub struct Data {
    pub columns: Vec<String>,
    pub rows: Vec<Vec<Value>>,
}

/// Stacked bars of a case, the fastest allocator first.
#[derive(Serialize)]
pub struct PartsChart {
    pub workload: String,
    pub heading: String,
    pub unit: &'static str,
    pub bars: Vec<PartsBar>,
}

/// The harness's, the kernel's and the remaining part of an allocator's time.
#[derive(Serialize)]
pub struct PartsBar {
    /// The bar's place in the legend of the charts.
    pub entry: Option<usize>,
    pub name: String,
    /// The sum of the bar's parts, as text.
    pub total: String,
    /// The widths of the parts, in percent of the longest bar.
    pub widths: [f64; 3],
    /// The bar's tooltip.
    pub words: String,
}

impl Section {
    /// Adds what the section does not show.
    pub fn hiding(self, hides: &'static str) -> Section {
        Section { hides, ..self }
    }

    /// A section with charts below a paragraph.
    pub fn of_views(id: &str, heading: &str, text: &str, views: Vec<View>) -> Section {
        Section {
            id: id.into(),
            heading: heading.into(),
            text: vec![text.into()],
            views,
            ..Section::default()
        }
    }

    /// A section of the tables that have rows.
    pub fn of_tables(id: &str, heading: &str, tables: impl IntoIterator<Item = Sheet>) -> Section {
        let filled = tables.into_iter().filter(|table| !table.rows.is_empty());
        Section {
            id: id.into(),
            heading: heading.into(),
            tables: filled.collect(),
            ..Section::default()
        }
    }

    /// Whether the section has nothing to show and is left out.
    pub fn is_empty(&self) -> bool {
        self.views.is_empty()
            && self.tables.is_empty()
            && self.parts.is_empty()
            && self.link.is_none()
    }
}

impl Trace {
    /// The only line of an allocator; without a place in the legend it stays when allocators are switched off.
    pub fn new(entry: Option<usize>, run: usize, drawn: Value) -> Trace {
        Trace {
            entry,
            line: None,
            run,
            drawn,
        }
    }
}

impl Plot {
    pub fn new(title: impl Into<String>, traces: Vec<Trace>, x: Value, y: Value) -> Plot {
        Plot {
            title: title.into(),
            traces,
            layout: json!({ "xaxis": x, "yaxis": y }),
        }
    }

    /// Adds a line where this axis, `x` or `y`, is 1, across the whole chart: the compared values are equal there.
    pub fn with_line_at_one(mut self, axis: &str) -> Plot {
        self.layout["shapes"] = json!([figure::line_at_one(axis)]);
        self
    }
}

impl Data {
    /// A row: an object with the columns as its keys, the same in all rows. A number that is not
    /// finite becomes an empty cell.
    pub fn row(&mut self, cells: Value) {
        let Value::Object(cells) = cells else {
            unreachable!("a row names its columns");
        };
        let (columns, cells): (Vec<String>, Vec<Value>) = cells.into_iter().unzip();
        if self.rows.is_empty() {
            self.columns = columns;
        } else {
            assert_eq!(self.columns, columns, "all rows have the same columns");
        }
        self.rows.push(cells);
    }
}
