//! The files in `series/` read back: memory over time, one process of each row.

use super::{Purpose, Record, SERIES, file_of};
use serde::Deserialize;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// What one process held over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Its cell.
    pub cell: String,
    /// Workload name.
    pub workload: String,
    /// Worker threads.
    pub threads: u32,
    /// Allocator name.
    pub allocator: String,
    /// In order of time.
    pub points: Vec<Point>,
}

/// One moment of it: of the columns of the file those that people look at first.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Point {
    /// Since just before the process was started.
    pub time_ns: u64,
    /// Asked for and not given back; `None` where the process does not tell.
    pub requested_live_bytes: Option<u64>,
    /// Heap and mappings.
    pub total_dynamic_bytes: u64,
    /// Resident.
    pub rss_bytes: u64,
}

/// Of each allocator in each case the first process that ended `ok` and whose file is there.
pub fn series(dir: &Path, records: &[Record]) -> Vec<Series> {
    let (mut known, mut all) = (HashSet::new(), Vec::new());
    if !dir.join(SERIES).is_dir() {
        return all;
    }
    for record in records.iter().filter(|record| record.purpose == Purpose::Sample && record.outcome.is_ok()) {
        let row = (record.workload.as_str(), record.threads, record.allocator.as_str());
        if known.contains(&row) {
            continue;
        }
        let points = points(&fs::read_to_string(file_of(dir, SERIES, &record.cell)).unwrap_or_default());
        if !points.is_empty() {
            known.insert(row);
            all.push(Series {
                cell: record.cell.clone(),
                workload: record.workload.clone(),
                threads: record.threads,
                allocator: record.allocator.clone(),
                points,
            });
        }
    }
    all
}

/// Up to the first line that is no point: the end of a file may be torn.
fn points(table: &str) -> Vec<Point> {
    csv::Reader::from_reader(table.as_bytes()).into_deserialize().map_while(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_found_by_name_and_a_torn_end_is_left_out() {
        let table =
            "time_ns,phase,requested_live_bytes,total_dynamic_bytes,rss_bytes\n5,run,,20,30\n6,run,10,21,31\n7,ru";
        let told = [(5, None, 20, 30), (6, Some(10), 21, 31)];
        let told = told.map(|(time_ns, requested_live_bytes, total_dynamic_bytes, rss_bytes)| Point {
            time_ns,
            requested_live_bytes,
            total_dynamic_bytes,
            rss_bytes,
        });
        assert_eq!(points(table), told);
        assert_eq!(points("no table"), []);
    }
}
