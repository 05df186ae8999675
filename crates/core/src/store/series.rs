//! Reads the files in `series/`: memory over time, column by column, or the points of the main
//! columns.

use super::{Purpose, Record, tables};
use crate::plan::CellId;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// Memory over time of one process, in order of time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Phase of each point.
    pub phases: Vec<String>,
    /// The other columns by name; `None` if the process did not publish a number.
    pub columns: BTreeMap<String, Vec<Option<u64>>>,
}

impl Columns {
    /// Returns a column without gaps; `None` if some point is missing.
    pub fn column(&self, name: &str) -> Option<Vec<u64>> {
        self.columns.get(name)?.iter().copied().collect()
    }

    fn at(&self, name: &str, point: usize) -> Option<u64> {
        *self.columns.get(name)?.get(point)?
    }
}

/// The memory of one process over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// The cell of the process.
    pub cell: CellId,
    /// Workload name.
    pub workload: String,
    /// The number of worker threads.
    pub threads: u32,
    /// Allocator name.
    pub allocator: String,
    /// The moments, in order of time.
    pub points: Vec<Point>,
}

/// A moment, with the main columns of the file.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Time since just before the process was started, or since its first sample.
    pub time_ns: u64,
    /// Bytes requested so far; only for a replay in strict order, whose time means nothing.
    pub allocated_bytes: Option<u64>,
    /// Bytes requested and not freed; `None` if the process does not report it.
    pub requested_live_bytes: Option<u64>,
    /// Bytes of the heap and of mappings; `None` if they were not read.
    pub total_dynamic_bytes: Option<u64>,
    /// Resident bytes.
    pub rss_bytes: u64,
}

/// Returns the series of a process; `None` if none was recorded, or the file is not as it was written.
pub fn columns(dir: &Path, record: &Record) -> Option<Columns> {
    parse(&tables::read(dir, tables::SERIES, record)?)
}

/// Returns the memory over time of the first process of each allocator in each case that ended `ok` and whose file
/// exists.
pub fn series(dir: &Path, records: &[Record]) -> Vec<Series> {
    if !dir.join(tables::SERIES).is_dir() {
        return Vec::new();
    }
    let mut known = HashSet::new();
    let mut all = Vec::new();
    for record in records {
        let row = (&record.workload, record.threads, &record.allocator);
        if matches!(record.purpose, Purpose::Sample | Purpose::Memory)
            && record.outcome.is_ok()
            && !known.contains(&row)
            && let Some(columns) = columns(dir, record)
        {
            known.insert(row);
            all.push(Series {
                cell: record.cell.clone(),
                workload: record.workload.to_string(),
                threads: record.threads,
                allocator: record.allocator.to_string(),
                points: points(&columns),
            });
        }
    }
    all
}

fn points(columns: &Columns) -> Vec<Point> {
    (0..columns.phases.len())
        .filter_map(|place| {
            Some(Point {
                time_ns: columns.at("time_ns", place)?,
                allocated_bytes: columns.at("allocated_bytes", place),
                requested_live_bytes: columns.at("requested_live_bytes", place),
                total_dynamic_bytes: columns.at("total_dynamic_bytes", place),
                rss_bytes: columns.at("rss_bytes", place)?,
            })
        })
        .collect()
}

/// Parses a table up to the first line that is no point. The end of an older run's file may be
/// torn: a number without the end of its line may be truncated.
fn parse(table: &str) -> Option<Columns> {
    let (lines, _) = table.rsplit_once('\n')?;
    let mut reader = csv::Reader::from_reader(lines.as_bytes());
    let heads = reader.headers().ok()?.clone();
    let phase = heads.iter().position(|head| head == "phase")?;
    let mut found = Columns::default();
    for line in reader.into_records().map_while(Result::ok) {
        let numbers: Option<Vec<_>> = heads
            .iter()
            .zip(&line)
            .filter(|(head, _)| *head != "phase")
            .map(|(head, cell)| match cell {
                "" => Some((head, None)),
                _ => Some((head, Some(cell.parse().ok()?))),
            })
            .collect();
        let Some(numbers) = numbers else {
            break;
        };
        found.phases.push(line[phase].into());
        for (head, number) in numbers {
            found.columns.entry(head.into()).or_default().push(number);
        }
    }
    (!found.phases.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_a_gap_stays_one_and_a_torn_end_is_left_out() {
        let whole = "time_ns,phase,requested_live_bytes,rss_bytes\n5,setup,,30\n6,run,10,31\n";
        let columns = parse(whole).unwrap();
        for torn in ["7", "7,ru", "7,run,12", "7,run,12,3"] {
            assert_eq!(
                parse(&format!("{whole}{torn}")).as_ref(),
                Some(&columns),
                "{torn}"
            );
        }
        assert_eq!(columns.phases, ["setup", "run"]);
        assert_eq!(
            (
                columns.column("time_ns"),
                columns.column("requested_live_bytes")
            ),
            (Some(vec![5, 6]), None)
        );
        let wanted =
            [(5, None, 30), (6, Some(10), 31)].map(|(time_ns, requested_live_bytes, rss_bytes)| {
                Point {
                    time_ns,
                    allocated_bytes: None,
                    requested_live_bytes,
                    total_dynamic_bytes: None,
                    rss_bytes,
                }
            });
        assert_eq!(points(&columns), wanted);
        assert_eq!(
            (parse("no table"), parse("time_ns,phase\nx,run\n")),
            (None, None)
        );
    }
}
