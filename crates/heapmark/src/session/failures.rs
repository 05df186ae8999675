//! How often the processes of a row have failed. Counted as they are stored, so that not all
//! records are searched before each process.

use crate::plan::{Case, Cell};
use crate::store::{Purpose, Record};
use std::collections::HashMap;

/// The rest of a row is skipped after this many failed processes of one allocator and case.
const MOST: usize = 2;

/// Workload, threads, allocator.
type FailedRow = (String, u32, String);

/// By row, for rows with a failure.
#[derive(Default)]
pub(super) struct Failures(HashMap<FailedRow, Failed>);

#[derive(Default)]
struct Failed {
    check: bool,
    others: usize,
}

impl Failures {
    pub(super) fn of(records: &[Record]) -> Failures {
        let mut failures = Failures::default();
        records.iter().for_each(|record| failures.add(record));
        failures
    }

    /// Counts one more record.
    pub(super) fn add(&mut self, record: &Record) {
        if record.outcome.is_ok() {
            return;
        }
        let row = (
            record.workload.clone(),
            record.threads,
            record.allocator.clone(),
        );
        let failed = self.0.entry(row).or_default();
        match record.purpose {
            Purpose::Check => failed.check = true,
            _ => failed.others += 1,
        }
    }

    /// Whether the check of a cell's row has failed, or enough of its processes to report the row.
    pub(super) fn are_enough(&self, case: &Case, cell: &Cell) -> bool {
        let row = (case.workload.clone(), case.threads, cell.allocator.clone());
        self.0
            .get(&row)
            .is_some_and(|failed| failed.check || failed.others >= MOST)
    }
}
