//! The raw export with types: the columns and lines of the CSV as a Parquet table.

use super::csv::sample_lines;
use crate::analyse::Analysis;
use crate::store::Record;
use parquet::errors::Result;
use parquet::file::writer::SerializedFileWriter;
use parquet::record::RecordWriter;

/// One line per iteration, as `--to csv` has them. What has no number there is null here.
pub fn samples(analysis: &Analysis, records: &[Record]) -> Result<Vec<u8>> {
    let lines = sample_lines(analysis, records);
    let lines = lines.as_slice();
    let mut writer = SerializedFileWriter::new(Vec::new(), lines.schema()?, Default::default())?;
    let mut group = writer.next_row_group()?;
    lines.write_to_row_group(&mut group)?;
    group.close()?;
    writer.into_inner()
}
