//! The raw export with types: the columns and lines of the CSV as a Parquet table.

use super::csv::{SampleLine, sample_lines};
use crate::analyse::Analysis;
use crate::store::Record;
use anyhow::Result;
use parquet::file::writer::SerializedFileWriter;
use parquet::record::RecordWriter;
use std::io::Write;

/// Approximate lines in a group: they stay in memory until it is written.
const GROUP: usize = 100_000;

/// One line per iteration, as in `--to csv-samples`. A value that is no number there is null here.
pub fn samples(
    analysis: &Analysis,
    mut records: impl Iterator<Item = Result<Record>>,
    out: impl Write + Send,
) -> Result<()> {
    let mut lines: Vec<SampleLine> = Vec::new();
    let mut writer =
        SerializedFileWriter::new(out, lines.as_slice().schema()?, Default::default())?;
    loop {
        let record = records.next().transpose()?;
        lines.extend(
            record
                .iter()
                .flat_map(|record| sample_lines(analysis, record)),
        );
        if lines.len() >= GROUP || record.is_none() && !lines.is_empty() {
            let mut group = writer.next_row_group()?;
            lines.as_slice().write_to_row_group(&mut group)?;
            group.close()?;
            lines.clear();
        }
        if record.is_none() {
            writer.close()?;
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::analyse;
    use crate::analyse::fake_run::{FakeRun, crash};
    use parquet::file::reader::{FileReader, SerializedFileReader};

    /// The lines of a run, read back.
    fn read(lab: &FakeRun) -> Vec<String> {
        let mut file = tempfile::tempfile().unwrap();
        samples(
            &analyse(&lab.run, &lab.records),
            lab.records.iter().cloned().map(Ok),
            &mut file,
        )
        .unwrap();
        let reader = SerializedFileReader::new(file).unwrap();
        let lines = reader.get_row_iter(None).unwrap();
        lines.map(|line| line.unwrap().to_string()).collect()
    }

    #[test]
    fn a_failed_process_is_a_line_of_nulls_and_odd_text_stays_in_its_column() {
        let odd = "\"a\",b\nc";
        let lab = FakeRun::new(&["glibc", odd], &["larson"], 2).fill(|_, _, _| 20.0);
        let lab = lab.fail(&format!("larson@2/b01/{odd}"), crash());
        let lines = read(&lab);
        assert_eq!(lines.len(), 3 * 3 + 1, "{lines:#?}");
        let failed = lines
            .iter()
            .find(|line| line.contains(", outcome: \"crash\""))
            .unwrap();
        assert!(failed.contains(r#"allocator: ""a",b c""#), "{failed}");
        assert!(
            failed.contains("iteration: null, cold: null, wall_ns: null,"),
            "{failed}"
        );
        assert!(
            lines[1].contains("iteration: 1, cold: false, wall_ns: 10000000,"),
            "{}",
            lines[1]
        );
    }

    #[test]
    fn a_run_without_lines_is_a_table_without_lines() {
        assert!(read(&FakeRun::new(&["glibc"], &["larson"], 2)).is_empty());
    }
}
