//! Passed checks, kept beside the builds: with the same library, guest and work a check gives the
//! same result again. A failed check is never kept.

use crate::build;
use crate::execute::{Guest, Measurement, Subject};
use crate::file::{self, WithPath};
use crate::store::{Passed, Record};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The format of kept checks, which changes whenever the same names get another meaning.
const FORMAT: &str = "heapmark check 1";

/// What is kept of a passed check.
#[derive(Serialize, Deserialize)]
pub struct Kept {
    pub passed: Passed,
    /// What the checked process reported.
    pub measurement: Option<Measurement>,
    pub findings: Vec<String>,
}

impl Kept {
    /// The entry of a process that has passed with this many iterations.
    pub fn of(record: &Record, iterations: u32) -> Kept {
        Kept {
            passed: Passed {
                cell: record.cell.clone(),
                at: record.started.clone(),
                iterations,
                wall_ns: record.wall_ns().unwrap_or(0),
                peak_rss_bytes: record.peak_rss_bytes().unwrap_or(0),
            },
            measurement: record.measurement.clone(),
            findings: record.findings.to_vec(),
        }
    }
}

/// The folder of passed checks.
pub struct Shelf {
    folder: PathBuf,
    /// Hashes of the files that every checked process uses: the guest, and the C library below all
    /// allocators.
    common: Vec<String>,
    /// Hashes that are already computed.
    hashes: HashMap<PathBuf, String>,
}

impl Shelf {
    /// The folder for this guest and for the C library that the negative control has shown.
    pub fn open(guest: &Guest, control: &Record) -> Result<Shelf> {
        let objects = control
            .proof
            .as_ref()
            .context("the negative control shows no C library")?
            .objects
            .iter()
            .map(|object| Path::new(&object.path));
        let common = objects
            .chain([guest.path()])
            .map(build::hash_of_file)
            .collect::<Result<_>>()?;
        Ok(Shelf {
            folder: build::cache_root()?.join("checks"),
            common,
            hashes: HashMap::new(),
        })
    }

    /// The file in which a passed check of this work is kept.
    pub fn place(&mut self, subject: &Subject, work: &str) -> Result<PathBuf> {
        let library = &subject.library;
        let files = library.files.iter().chain(&library.needs);
        for file in files.clone() {
            if !self.hashes.contains_key(file) {
                self.hashes.insert(file.clone(), build::hash_of_file(file)?);
            }
        }
        let of_files = files.map(|file| &self.hashes[file]);
        let of_files = self.common.iter().chain(of_files).map(String::as_str);
        let environment = format!("{:?}", subject.allocator.environment);
        let parts = [FORMAT].into_iter().chain(of_files);
        let name = build::hash(parts.chain([environment.as_str(), work]));
        Ok(self.folder.join(name + ".json"))
    }
}

/// The check that is kept in a file, if it made at least this many iterations.
pub fn find(place: &Path, iterations: u32) -> Option<Kept> {
    let text = file::read_stored(place).ok()?;
    let kept: Kept = serde_json::from_slice(&text).ok()?;
    (kept.passed.iterations >= iterations).then_some(kept)
}

/// Keeps a passed check; `None` removes an earlier one, because the check has failed.
pub fn keep(place: &Path, kept: Option<&Kept>) -> Result<()> {
    let Some(kept) = kept else {
        return match fs::remove_file(place) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            removed => removed.with_path("cannot forget", place),
        };
    };
    let text = serde_json::to_string(kept).context("cannot write a passed check")?;
    build::write_to_cache(place, text.as_bytes())
}
