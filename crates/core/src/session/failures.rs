//! How often the processes of a row have failed. Failures are counted as they are stored, so that
//! not all records are searched before each process.

use crate::plan::{Case, Cell};
use crate::store::{Purpose, Record};
use std::collections::HashMap;

/// The rest of a row is skipped after this many failed processes of one allocator and case.
const MOST: usize = 2;

/// A row: workload, threads, allocator.
type FailedRow = (String, u32, String);

/// Failed processes by row; a failed check counts as `MOST`.
#[derive(Default)]
pub struct Failures(HashMap<FailedRow, usize>);

impl Failures {
    pub fn of(records: &[Record]) -> Failures {
        let mut failures = Failures::default();
        records.iter().for_each(|record| failures.add(record));
        failures
    }

    /// Counts one more record.
    pub fn add(&mut self, record: &Record) {
        if !record.has_failed() {
            return;
        }
        let row = (
            record.workload.to_string(),
            record.threads,
            record.allocator.to_string(),
        );
        *self.0.entry(row).or_default() += match record.purpose {
            Purpose::Check => MOST,
            _ => 1,
        };
    }

    /// Whether the check of a cell's row has failed, or enough of its processes to report the row.
    pub fn are_enough(&self, case: &Case, cell: &Cell) -> bool {
        let row = (case.workload.clone(), case.threads, cell.allocator.clone());
        self.0.get(&row).is_some_and(|failed| *failed >= MOST)
    }
}
