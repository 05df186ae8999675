//! The tables of a process beside its record, in `series/` and `latency/`: a file each, whose
//! checksum is in the record. The record is sealed, so it shows whether a file is as it was
//! written.

use super::{Record, checksum};
use crate::file::make_folder;
use crate::plan::CellId;
use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the memory over time in a run directory.
pub(super) const SERIES: &str = "series";
/// The folder of the latencies of single calls.
pub(super) const LATENCY: &str = "latency";

/// Stores a table of a process, replacing that of an earlier attempt, and its checksum in the
/// record.
pub(super) fn keep(dir: &Path, folder: &str, record: &mut Record, table: &str) -> Result<()> {
    make_folder(&dir.join(folder))
        .with_context(|| format!("cannot create {}", dir.join(folder).display()))?;
    super::keep(dir, name_of(folder, &record.cell), table)?;
    record
        .tables
        .insert(folder.into(), checksum::checksum(table.as_bytes()));
    Ok(())
}

/// A table as it was written; `None` if there is none, or it has changed.
pub(super) fn read(dir: &Path, folder: &str, record: &Record) -> Option<String> {
    let text = fs::read_to_string(file_of(dir, folder, &record.cell)).ok()?;
    let is_whole = |told: &String| *told == checksum::checksum(text.as_bytes());
    record
        .tables
        .get(folder)
        .is_some_and(is_whole)
        .then_some(text)
}

/// The files that records name and that are missing or not as they were written.
pub(super) fn damaged(dir: &Path, records: &[Record]) -> Vec<PathBuf> {
    let told = |folder: &&str, record: &Record| record.tables.contains_key(*folder);
    let of_record = |record| {
        let folders = [SERIES, LATENCY]
            .into_iter()
            .filter(move |folder| told(folder, record));
        let damaged = folders.filter(|folder| read(dir, folder, record).is_none());
        damaged.map(|folder| file_of(dir, folder, &record.cell))
    };
    records.iter().flat_map(of_record).collect()
}

/// The file of a cell in a folder: that of `memory@2/b03/jemalloc` is
/// `series/memory@2_b03_jemalloc.csv`.
fn file_of(dir: &Path, folder: &str, cell: &CellId) -> PathBuf {
    dir.join(name_of(folder, cell))
}

fn name_of(folder: &str, cell: &CellId) -> PathBuf {
    Path::new(folder).join(format!("{}.csv", cell.file_stem()))
}
