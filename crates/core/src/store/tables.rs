//! The tables of a process beside its record, in `series/` and `latency/`: one file each, whose
//! checksum is in the record. The record is sealed, so it shows whether a file is as it was
//! written.

use super::Record;
use super::checksum::checksum;
use super::files;
use crate::file::{WithPath, make_folder, open_stored, up_to};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};

/// The folder of the memory over time in a run directory.
pub const SERIES: &str = "series";
/// The folder of the latencies of single calls.
pub const LATENCY: &str = "latency";

/// The most bytes of a table: a point of memory over time has a few hundred.
const MOST_TABLE: u64 = 512 << 20;

/// Stores a table of a process, replacing that of an earlier attempt, and its checksum in the
/// record.
pub fn keep(dir: &Path, folder: &str, record: &mut Record, table: &str) -> Result<()> {
    ensure!(
        table.len() as u64 <= MOST_TABLE,
        "{folder} of {} has more than {} MiB: give --series a longer interval",
        record.cell,
        MOST_TABLE >> 20
    );
    let path = dir.join(folder);
    make_folder(&path).with_path("cannot create", &path)?;
    files::keep(dir, name_of(folder, record), table)?;
    let checksum = checksum(table.as_bytes());
    record.tables.insert(folder.into(), checksum);
    Ok(())
}

/// Reads a table as it was written; `None` if there is none, or its file has changed.
pub fn read(dir: &Path, folder: &str, record: &Record) -> Option<String> {
    let sum = record.tables.get(folder)?;
    let file = open_stored(&dir.join(name_of(folder, record)), MOST_TABLE).ok()?;
    let text = up_to(file, MOST_TABLE).ok()?;
    let is_told = *sum == checksum(&text);
    is_told.then(|| String::from_utf8(text).ok())?
}

/// Returns the files that records name and that are missing or not as they were written.
pub fn damaged(dir: &Path, records: &[Record]) -> Vec<PathBuf> {
    let mut damaged = Vec::new();
    for record in records {
        for folder in [SERIES, LATENCY] {
            if record.tables.contains_key(folder) && read(dir, folder, record).is_none() {
                damaged.push(dir.join(name_of(folder, record)));
            }
        }
    }
    damaged
}

/// Returns whether a file in one of these folders has the name of a table.
pub fn is_table(file: &Path) -> bool {
    file.extension().is_some_and(|extension| extension == "csv")
}

/// Returns the file of a process in a folder: that of `memory@2/b03/jemalloc` is
/// `series/memory@2_b03_jemalloc.csv`.
fn name_of(folder: &str, record: &Record) -> String {
    format!("{folder}/{}.csv", record.cell.file_stem())
}
