//! The whole run as one JSON document: for a program that needs more than the tables; it includes
//! all measurements.

use super::text::Escaping;
use crate::analyse::Analysis;
use crate::store::{Preflights, Record, RunFile};
use anyhow::Result;
use serde::{Serialize, Serializer, ser};
use std::cell::RefCell;
use std::io::Write;

#[derive(Serialize)]
struct RunDocument<'a, R: Iterator<Item = Result<Record>>> {
    run: &'a RunFile,
    machine: &'a Preflights,
    analysis: &'a Analysis,
    #[serde(serialize_with = "one_by_one")]
    records: RefCell<R>,
}

/// `run` as in `run.json`, the machine as in `machine/`, the derived analysis, and all records in
/// stored order.
pub fn json(
    run: &RunFile,
    analysis: &Analysis,
    records: impl Iterator<Item = Result<Record>>,
    out: impl Write,
) -> Result<()> {
    let document = RunDocument {
        run,
        machine: &run.preflights,
        analysis,
        records: records.into(),
    };
    let mut out = Escaping(out);
    serde_json::to_writer_pretty(&mut out, &document)?;
    Ok(writeln!(out)?)
}

/// Writes each record as it comes, since all records together may exceed the memory. A measurement next to an outcome that is not `ok`
/// breaks the store's promise and is left out.
fn one_by_one<R, S>(records: &RefCell<R>, serializer: S) -> Result<S::Ok, S::Error>
where
    R: Iterator<Item = Result<Record>>,
    S: Serializer,
{
    use ser::{Error, SerializeSeq};
    let mut list = serializer.serialize_seq(None)?;
    for record in records.borrow_mut().by_ref() {
        let mut record = record.map_err(|error| S::Error::custom(format!("{error:#}")))?;
        if !record.outcome.is_ok() {
            record.measurement = None;
        }
        list.serialize_element(&record)?;
    }
    list.end()
}
