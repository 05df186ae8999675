//! The directories of runs: which there are, and how one is begun or removed.

use super::files::{HEAD, SAMPLES, head_of, samples_of};
use super::{preflights, tables};
use crate::file::{RESULTS, WithPath, is_there, make_folder, open_stored, read_stored};
use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::Deserialize;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Names in a run directory besides its head and its samples.
const OTHERS: [&str; 5] = ["report.html", "report.md", "series", "latency", "machine"];

/// Documents that other commands leave in a directory, each with the command that shows it.
const SHOWN_BY: [(&str, &str); 2] = [("check.json", "report"), ("plan.json", "campaign status")];

pub(super) fn no_run(dir: &Path) -> String {
    let shown = SHOWN_BY.iter().find(|(file, _)| dir.join(file).is_file());
    // Tunings and histories have theirs one level below.
    let below = dir.join("runs/1");
    let dir = dir.display();
    match shown {
        Some((file, command)) => {
            format!("no run in {dir}: it holds {file}, for which there is heapmark {command} {dir}")
        }
        None if is_there(&below) => format!(
            "no run in {dir}: its runs stand below it, the first one in {}",
            below.display()
        ),
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

/// Returns date and number of a run directory, so that `2026-01-02-10` comes after `2026-01-02-9`.
pub(super) fn number(folder: &Path) -> (String, u32) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    name.rsplit_once('-')
        .and_then(|(date, n)| Some((date.to_string(), n.parse().ok()?)))
        .unwrap_or_else(|| (name.to_string(), 0))
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

/// The most bytes of `samples.jsonl`: the line of a process has a few thousand.
const MOST_SAMPLES: u64 = 8 << 30;

/// Opens the file of a run's records.
pub fn open_samples(dir: &Path) -> io::Result<File> {
    open_stored(&samples_of(dir), MOST_SAMPLES)
}

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

pub(super) fn holds_no_run(dir: &Path) -> Result<()> {
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
pub(super) fn holds_no_samples(dir: &Path) -> Result<()> {
    let samples = samples_of(dir).symlink_metadata();
    if samples.is_ok_and(|known| known.is_file() && known.len() > 0) {
        bail!(
            "{} holds samples of a run whose run.json is gone: give another directory with -o",
            dir.display()
        );
    }
    Ok(())
}
