//! The whole run as one JSON document: for a program that wants more than the tables, and nothing measured left behind.

use super::text;
use crate::analyse::Analysis;
use crate::store::{Looks, Record, RunFile};
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    run: &'a RunFile,
    machine: &'a Looks,
    analysis: &'a Analysis,
    records: Vec<Record>,
}

/// `run` as in `run.json`, the machine as in `machine/`, what was derived from it, and all records in stored order. A measurement next to
/// an outcome that is not `ok` breaks the store's promise and is left out.
pub fn json(run: &RunFile, analysis: &Analysis, records: &[Record]) -> String {
    let mut records = records.to_vec();
    records.iter_mut().filter(|record| !record.outcome.is_ok()).for_each(|record| record.measurement = None);
    let document = Document { run, machine: &run.looks, analysis, records };
    text::json(&document)
}
