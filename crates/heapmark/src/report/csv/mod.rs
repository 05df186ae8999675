//! Long, tidy CSV with fixed units in the names. A process or row that is not `ok` is a line
//! without numbers, never a gap.

mod latency;
mod rows;
mod samples;
mod table;

pub(super) use latency::latency;
pub(super) use rows::rows;
pub(super) use samples::samples;
#[cfg(feature = "parquet")]
pub(super) use samples::{SampleLine, lines as sample_lines};
pub(super) use table::tables;

use crate::analyse::{Row, State};
use serde::Serialize;

/// `ok`, the word of the first failure, or `missing`.
fn outcome(row: &Row) -> &'static str {
    match &row.state {
        State::Measured(_) => "ok",
        State::Failed(failed) => failed.word(),
        State::Missing { .. } => "missing",
    }
}

/// The header comes from the fields, so an empty list writes nothing.
fn write(lines: &[impl Serialize]) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    for line in lines {
        writer
            .serialize(line)
            .expect("memory takes any line of plain fields");
    }
    let bytes = writer.into_inner().expect("memory needs no flushing");
    String::from_utf8(bytes).expect("every field is UTF-8")
}
