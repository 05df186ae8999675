//! The append-only run directory: `run.json`, `samples.jsonl`, `series/`, `latency/` and
//! `machine/`. Raw samples only; everything else is derived when it is read. A process killed at
//! any moment leaves a directory that every reader accepts.

mod checked;
mod checksum;
mod latency;
mod light_record;
mod line;
pub mod preflights;
mod published;
mod read;
pub mod record;
mod record_index;
mod records;
pub mod run;
pub mod series;
mod tables;

pub use crate::plan::{Case, Purpose};
pub use checked::{CheckVerdict, Checked, CheckedShelf, Detection, KnownFault, Standing};
pub use checksum::sealed;
pub use preflights::Preflights;
pub use published::{Paths, published};
pub use read::{Run, head, read, read_for_tables, read_published};
pub use record::{Passed, Record};
pub use record_index::Lines;
pub use records::{Records, seconds_of_processes};
pub use run::{AllocatorInfo, HEAPMARK, OLDEST_SCHEMA, RunFile, SCHEMA};
pub use series::{Columns, Point, Series, columns, series};

use crate::file::{
    self, PUBLIC, RESULTS, WithPath, is_there, make_folder, mode_of, open_stored, read_stored,
};
use crate::observe::Prices;
use crate::observe::preflight::{Preflight, When};
use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::Deserialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The head of a run directory.
pub const HEAD: &str = "run.json";
/// The file that holds a run's records.
const SAMPLES: &str = "samples.jsonl";
/// Names in a run directory besides its head and its samples.
const OTHERS: [&str; 5] = ["report.html", "report.md", "series", "latency", "machine"];
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

    fn begin(dir: &Path, mode: u32) -> Result<Store> {
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

/// Returns the path of a run directory's head. All files derived from a run are as private as it.
pub fn head_of(dir: &Path) -> PathBuf {
    dir.join(HEAD)
}

/// Writes a file of a run directory: complete or absent, on the disk, and as private as the head.
pub fn keep(dir: &Path, name: impl AsRef<Path>, content: impl AsRef<[u8]>) -> Result<()> {
    let file = dir.join(name);
    file::replace(&file, content.as_ref(), mode_of([head_of(dir)])).with_path("cannot write", &file)
}

fn no_run(dir: &Path) -> String {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut documents = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let dir = dir.display();
    match documents.find(|name| name.ends_with(".json")) {
        Some(other) => {
            format!("no run in {dir}: it holds {other}, for which there is heapmark report {dir}")
        }
        None => format!(
            "no run in {dir}: a run directory holds run.json (`heapmark run` says where it puts it)"
        ),
    }
}

/// Refuses to continue what another user has begun, because that would start the programs and load
/// the libraries that this document in the directory names. `way_out` describes what users can do
/// if they trust it.
pub fn refuse_of_others(dir: &Path, document: &str, way_out: &str) -> Result<()> {
    for path in [dir, &dir.join(document)] {
        let owner = path.metadata().with_path("cannot find", path)?.uid();
        if owner != 0 && owner != geteuid().as_raw() {
            bail!(
                "{} belongs to user {owner}, and going on with it starts what its {document} names: if you trust that, {way_out}",
                path.display()
            );
        }
    }
    Ok(())
}

/// Returns the path of the file that holds a run's records.
pub fn samples_of(dir: &Path) -> PathBuf {
    dir.join(SAMPLES)
}

/// Finds the run directory for `RUN` as users write it: a directory, or `latest`. Refuses one that holds no run.
pub fn find(run: &str) -> Result<PathBuf> {
    if run != "latest" {
        let dir = PathBuf::from(run);
        if !head_of(&dir).is_file() {
            bail!(no_run(&dir));
        }
        return Ok(dir);
    }
    runs()
        .pop()
        .with_context(|| format!("no run in ./{RESULTS}: name a run directory"))
}

/// Returns the run directories in `heapmark-results`, the newest last.
pub fn runs() -> Vec<PathBuf> {
    let mut runs: Vec<PathBuf> = fs::read_dir(RESULTS)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|folder| head_of(folder).is_file())
        .collect();
    runs.sort_by_cached_key(|folder| (began(folder), number(folder)));
    runs
}

/// Returns when a run began; `None` if its head does not contain that.
fn began(folder: &Path) -> Option<Timestamp> {
    #[derive(Deserialize)]
    struct Began {
        started: String,
    }
    let text = read_stored(&head_of(folder)).ok()?;
    let began: Began = serde_json::from_slice(&text).ok()?;
    began.started.parse().ok()
}

/// Removes a run unless a heapmark writes to it; returns whether it did. Other files in its directory stay, and their
/// folders stay with them.
pub fn remove(dir: &Path) -> io::Result<bool> {
    // The lock is held to the end, so that no heapmark goes on with the run meanwhile.
    let samples = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(samples_of(dir))?;
    if flock(&samples, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK) {
        return Ok(false);
    }
    for name in OTHERS.into_iter().chain([SAMPLES, HEAD]) {
        let path = dir.join(name);
        match path.symlink_metadata() {
            Ok(data) if data.is_dir() => remove_files_of_run(&path, name)?,
            Ok(data) if data.is_file() => fs::remove_file(path)?,
            _ => {}
        }
    }
    remove_if_empty(dir)?;
    Ok(true)
}

/// Removes what a run keeps in one of its folders, and the folder if nothing else is in it.
fn remove_files_of_run(folder: &Path, name: &str) -> io::Result<()> {
    let is_of_run: fn(&Path) -> bool = match name {
        tables::SERIES | tables::LATENCY => tables::is_table,
        preflights::FOLDER => preflights::is_list,
        // Files of a run have the other names.
        _ => return Ok(()),
    };
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && is_of_run(&entry.path()) {
            fs::remove_file(entry.path())?;
        }
    }
    remove_if_empty(folder)
}

fn remove_if_empty(folder: &Path) -> io::Result<()> {
    match fs::remove_dir(folder) {
        Err(error) if error.kind() != ErrorKind::DirectoryNotEmpty => Err(error),
        _ => Ok(()),
    }
}

/// Opens the file of a run's records.
pub fn open_samples(dir: &Path) -> io::Result<File> {
    open_stored(&samples_of(dir), MOST_SAMPLES)
}

/// The most bytes of `samples.jsonl`: the line of a process has a few thousand.
const MOST_SAMPLES: u64 = 8 << 30;

/// Returns whether a heapmark writes to this run now.
pub fn is_being_written(dir: &Path) -> bool {
    open_samples(dir).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
    })
}

/// Makes a fresh directory `heapmark-results/<date>-<n>`: if several heapmark processes begin at
/// once, each has its own.
pub fn fresh(date: &str) -> Result<PathBuf> {
    let made = (1_u32..)
        .map(|n| Path::new(RESULTS).join(format!("{date}-{n}")))
        .find_map(|name| match make_folder(&name) {
            Ok(false) => None,
            Ok(true) => Some(Ok(name)),
            // Another file has that name.
            Err(_) if is_there(&name) => None,
            Err(error) => Some(Err(error).with_path("cannot create", &name)),
        });
    made.unwrap_or_else(|| bail!("{RESULTS} is full"))
}

/// Refuses a directory that cannot become a run directory: one that already is, and one with files
/// that have the names of a run's files. Makes nothing.
pub fn may_begin(dir: &Path) -> Result<()> {
    if dir == Path::new("-") {
        bail!("-o -: a run is a folder, and cannot be printed");
    }
    if is_there(dir) && !dir.is_dir() {
        bail!(
            "{} is there already, and no folder: give another directory with -o",
            dir.display()
        );
    }
    holds_no_run(dir)?;
    holds_no_samples(dir)?;
    let mut others = OTHERS.iter().map(|name| dir.join(name));
    if let Some(other) = others.find(|other| is_there(other)) {
        bail!(
            "{} is there already, and of no run: give another directory with -o",
            other.display()
        );
    }
    Ok(())
}

fn holds_no_run(dir: &Path) -> Result<()> {
    let name = dir.display();
    if head_of(dir).exists() {
        bail!(
            "{name} already holds a run: give another directory with -o, or go on with --resume {name}"
        );
    }
    Ok(())
}

/// Fails if samples are left without a head. An empty file is accepted: a run that was killed before its first sample
/// may have left one.
fn holds_no_samples(dir: &Path) -> Result<()> {
    let samples = samples_of(dir).symlink_metadata();
    if samples.is_ok_and(|known| known.is_file() && known.len() > 0) {
        bail!(
            "{} holds samples of a run whose run.json is gone: give another directory with -o",
            dir.display()
        );
    }
    Ok(())
}

/// Returns date and number of a run directory, so that `2026-01-02-10` comes after `2026-01-02-9`.
fn number(folder: &Path) -> (String, u32) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-')
        .and_then(|(date, n)| Some((date.to_string(), n.parse().ok()?)))
        .unwrap_or_else(|| (name.to_string(), 0))
}

#[cfg(test)]
mod tests;
