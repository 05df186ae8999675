//! Long, tidy CSV with fixed units in the names. A process or row that is not `ok` is a line
//! without numbers, never a gap.

mod latency;
mod rows;
mod samples;
mod table;

pub use latency::latency;
pub use rows::rows;
pub use samples::samples;
pub use table::tables;

use super::text::plain;
use crate::analyse::TableRow;
use serde_json::Value;

/// `ok`, the word of the first failure, or `missing`.
fn outcome(row: &TableRow) -> &'static str {
    match &row.failed {
        Some(failed) => failed.word(),
        None if row.has_run() => "ok",
        None => "missing",
    }
}

/// Columns: the name of each, and the place of its value in the document of a line.
type CsvColumns = &'static [(&'static str, &'static str)];

/// Writes a line per document. A value that a document lacks is an empty field; without lines there is no header.
fn write(columns: CsvColumns, lines: &[Value]) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    if !lines.is_empty() {
        let names = columns.iter().map(|(name, _)| name);
        writer.write_record(names).expect("memory takes any header");
    }
    for line in lines {
        writer
            .serialize(
                columns
                    .iter()
                    .map(|(_, pointer)| match line.pointer(pointer) {
                        Some(Value::String(text)) => plain(text).into(),
                        other => other.cloned().unwrap_or_default(),
                    })
                    .collect::<Vec<Value>>(),
            )
            .expect("memory takes any line of plain fields");
    }
    let bytes = writer.into_inner().expect("memory needs no flushing");
    String::from_utf8(bytes).expect("every field is UTF-8")
}
