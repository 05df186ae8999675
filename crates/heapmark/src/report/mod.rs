//! Tables -> terminal, Markdown, CSV, JSON and an HTML page. Pure: values in, text out. Never measures, never judges.

mod claims;
mod count;
mod csv;
mod footprint;
mod json;
mod latency;
mod legend;
mod machine;
mod markdown;
mod operations;
mod page;
mod reproduction;
mod sentence;
mod sheet;
mod terminal;
mod text;
mod trust;
pub mod units;
mod whole;
mod workloads;

#[cfg(test)]
mod tests;

pub use claims::{claims, claims_json, claims_markdown, reason};
pub use machine::{doctor, warnings};
pub use page::{PageRun, page};
pub use reproduction::reproduction;
pub use terminal::{Screen, terminal};
pub use text::plain;
pub use workloads::workloads;

use crate::analyse::{Analysis, analyse};
use crate::store::{Record, RunFile};

/// What a run can be exported to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Raw: one line per iteration of each sample.
    Csv,
    /// Derived: one line per row of the tables.
    Rows,
    /// Derived: one line per function of each row of a run that timed single calls.
    Latency,
    /// Everything, in one document.
    Json,
    /// The tables for people.
    Markdown,
}

impl Format {
    /// All of them, in the order of `--help`.
    pub const ALL: [Format; 5] = [Format::Csv, Format::Rows, Format::Latency, Format::Json, Format::Markdown];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Format::Csv => "csv",
            Format::Rows => "csv-rows",
            Format::Latency => "csv-latency",
            Format::Json => "json",
            Format::Markdown => "md",
        }
    }
}

/// A run in a format for files.
pub fn export(format: Format, run: &RunFile, records: &[Record]) -> String {
    let analysis = analyse(run, records);
    match format {
        Format::Csv => csv::samples(&analysis, records),
        Format::Rows => csv::rows(&analysis),
        Format::Latency => csv::latency(&analysis),
        Format::Json => json::json(run, &analysis, records),
        Format::Markdown => markdown::markdown(run, &analysis),
    }
}

/// The verdict in words, without escape sequences: the last line of a terminal report, or the first of a page.
pub fn verdict(analysis: &Analysis) -> String {
    text::plain(&sentence::verdict(analysis))
}
