//! What a page is made of.

use crate::store::{Record, RunFile, Series};

/// A run to be shown on a page.
pub struct PageRun<'a> {
    /// Its name: the run directory.
    pub name: String,
    /// Its head.
    pub head: &'a RunFile,
    /// Its records.
    pub records: &'a [Record],
    /// Memory over time, one series for each row that has one.
    pub series: Vec<Series>,
}
