//! The data that a page is made from.

use crate::analyse::Table;
use crate::store::{Record, RunFile, Series};

/// A run to be shown on a page.
pub struct PageRun<'a> {
    /// The run's name, which is its directory.
    pub name: String,
    /// The run's head, the content of `run.json`.
    pub head: &'a RunFile,
    /// The run's records.
    pub records: &'a [Record],
    /// Memory over time, one series for each row that has one.
    pub series: Vec<Series>,
}

impl PageRun<'_> {
    /// Memory over time of a row.
    pub(super) fn series_of(&self, case: &Table, allocator: &str) -> Option<&Series> {
        self.series.iter().find(|series| {
            series.allocator == allocator
                && series.workload == case.workload
                && series.threads == case.threads
        })
    }
}
