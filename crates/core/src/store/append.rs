//! Appends records to a run.

use super::checksum::sealed;
use super::directory::{holds_no_run, holds_no_samples, may_begin};
use super::files::{SAMPLES, head_of, samples_of};
use super::record::Record;
use super::run::RunFile;
use super::{latency, preflights, tables};
use crate::file::{self, PUBLIC, WithPath, make_folder, mode_of};
use crate::observe::Prices;
use crate::observe::preflight::{Preflight, When};
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The mode of a run's files if it contains a user's command line, before the umask.
const PRIVATE: u32 = 0o600;

/// A run directory open for writing.
pub struct Store {
    dir: PathBuf,
    samples: File,
}

/// Unlocks when dropped, not with the last copy of the descriptor: a child that another thread has
/// forked, and that has not yet executed its program, holds the lock, too.
impl Drop for Store {
    fn drop(&mut self) {
        let _ = flock(&self.samples, FlockOperation::Unlock);
    }
}

impl Store {
    /// Makes a new run directory; refuses one that already holds a run.
    pub fn create(dir: &Path, head: &RunFile) -> Result<Store> {
        make_folder(dir).with_path("cannot create", dir)?;
        let file = head_of(dir);
        may_begin(dir)?;
        // The lock comes before the head: if two runs begin here at once, one must not overwrite
        // the head of the other.
        let mode = if head.is_private() { PRIVATE } else { PUBLIC };
        let store = Store::begin(dir, mode)?;
        holds_no_run(dir)?;
        holds_no_samples(dir)?;
        let text = serde_json::to_string_pretty(head).context("cannot write the run's head")?;
        file::replace(&file, sealed(&text).as_bytes(), mode).with_path("cannot write", &file)?;
        Ok(store)
    }

    /// Opens a run directory to resume it.
    pub fn open(dir: &Path) -> Result<Store> {
        // What is appended must not be written anywhere else through a link.
        for name in [SAMPLES, tables::SERIES, tables::LATENCY, preflights::FOLDER] {
            let path = dir.join(name);
            if path.is_symlink() {
                bail!("{} is a link; heapmark stores none", path.display());
            }
        }
        let mut store = Store::begin(dir, mode_of([head_of(dir)]))?;
        // A line torn by a kill must not swallow the next one.
        last_byte(&mut store.samples)
            .and_then(|last| match last {
                None | Some(b'\n') => Ok(()),
                Some(_) => store.samples.write_all(b"\n"),
            })
            .with_path("cannot mend", &samples_of(dir))?;
        Ok(store)
    }

    pub(super) fn begin(dir: &Path, mode: u32) -> Result<Store> {
        let path = samples_of(dir);
        let samples = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .mode(mode)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(&path)
            .with_path("cannot open", &path)?;
        if !samples.metadata().is_ok_and(|known| known.is_file()) {
            bail!("{} is no regular file", path.display());
        }
        match flock(&samples, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                bail!("{} is being written to by another heapmark", dir.display())
            }
            // Without a lock, two heapmark processes could write at once.
            locked => locked.with_context(|| {
                format!(
                    "cannot lock {} (a network's file systems may have no locks: name a folder elsewhere with -o)",
                    path.display()
                )
            })?,
        }
        Ok(Store {
            dir: dir.to_path_buf(),
            samples,
        })
    }

    /// Stores one record and its memory over time, if it has one; when this returns, a crash of the
    /// machine does not lose them.
    pub fn append(&mut self, record: &mut Record, series: Option<&str>) -> Result<()> {
        let measurement = record.measurement.as_ref();
        let latency = measurement.and_then(|measurement| measurement.latency.as_deref());
        let latency = latency.map(latency::table);
        // Tables come before the record: a reader that finds the record finds its tables complete.
        for (folder, table) in [
            (tables::SERIES, series),
            (tables::LATENCY, latency.as_deref()),
        ] {
            if let Some(table) = table {
                tables::keep(&self.dir, folder, record, table)?;
            }
        }
        let line = line(record)?;
        self.samples
            .write_all(line.as_bytes())
            .and_then(|()| self.samples.sync_data())
            .with_path("cannot write to", &self.dir)
    }

    /// Stores a preflight of the machine beside those of earlier parts of the run.
    pub fn keep_preflight(&self, when: When, look: Preflight) -> Result<()> {
        preflights::add(&self.dir, when, look)
    }

    /// Stores the prices of the machine beside those of earlier parts of the run.
    pub fn keep_prices(&self, prices: Prices) -> Result<()> {
        preflights::append(&self.dir, preflights::PRICES, prices)
    }

    /// Returns the run directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Returns a record as a line of `samples.jsonl`.
pub fn line(record: &Record) -> Result<String> {
    Ok(sealed(&serde_json::to_string(record).context("cannot write a record")?) + "\n")
}

/// Returns the last byte of a file; `None` if the file is empty.
fn last_byte(file: &mut File) -> std::io::Result<Option<u8>> {
    let mut last = [0];
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(None);
    }
    file.seek(SeekFrom::End(-1))?;
    file.read_exact(&mut last)?;
    Ok(Some(last[0]))
}
