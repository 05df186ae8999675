//! The append-only run directory: `run.json`, `samples.jsonl`, `series/`, `latency/` and `machine/`. Raw samples only; whatever can be derived is derived.
//! A process that was killed at any moment leaves a directory that every reader accepts.

mod latency;
pub mod looks;
pub mod record;
mod records;
pub mod run;
pub mod series;

pub use crate::plan::Case;
pub use looks::Looks;
pub use record::{Purpose, Record};
pub use records::Records;
pub use run::{AllocatorInfo, RunFile, SCHEMA};
pub use series::{Columns, Point, Series, columns, series};

use crate::sample::preflight::{Preflight, When};
use anyhow::{Context, Result, bail};
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

/// A run directory that is being written to.
pub struct Store {
    dir: PathBuf,
    samples: File,
}

/// A run directory as it was read.
pub struct Run {
    /// What was known before its first sample.
    pub head: RunFile,
    /// One record per cell, the last attempt of each, in the order they were first written.
    pub records: Vec<Record>,
    /// Lines that are no record: the torn end of a run that was killed, or damage.
    pub unreadable_lines: usize,
}

impl Store {
    /// A new run directory; refuses one that already holds a run.
    pub fn create(dir: &Path, head: &RunFile) -> Result<Store> {
        fs::create_dir_all(dir).with_context(|| format!("cannot create {}", dir.display()))?;
        let file = dir.join("run.json");
        let refuse_a_run = || match file.exists() {
            true => bail!(
                "{} already holds a run: give another directory with -o, or go on with --resume {}",
                dir.display(),
                dir.display()
            ),
            false => Ok(()),
        };
        refuse_a_run()?;
        // The lock comes before the head: of two that begin here at once, one must not write over the head of the other.
        let store = Store::open(dir)?;
        refuse_a_run()?;
        if store.samples.metadata().is_ok_and(|metadata| metadata.len() > 0) {
            bail!("{} holds samples of a run whose run.json is gone: give another directory with -o", dir.display());
        }
        let text = serde_json::to_string_pretty(head).context("cannot write the run's head")?;
        replace(&file, &text)?;
        Ok(store)
    }

    /// Goes on with a run directory.
    pub fn open(dir: &Path) -> Result<Store> {
        let path = dir.join("samples.jsonl");
        let mut samples = OpenOptions::new()
            .create(true)
            .append(true)
            .read(true)
            .open(&path)
            .with_context(|| format!("cannot open {}", path.display()))?;
        if flock(&samples, FlockOperation::NonBlockingLockExclusive).is_err() {
            bail!("{} is being written to by another heapmark", dir.display());
        }
        // A line torn by a kill must not swallow the next one.
        if fs::read(&path).is_ok_and(|bytes| bytes.last().is_some_and(|last| *last != b'\n')) {
            samples.write_all(b"\n").with_context(|| format!("cannot write {}", path.display()))?;
        }
        Ok(Store { dir: dir.to_path_buf(), samples })
    }

    /// Stores one record; when this returns, a crash of the machine does not lose it.
    pub fn append(&mut self, record: &Record) -> Result<()> {
        // Before the record: whoever finds the record finds the counts whole.
        if let Some(latency) = record.measurement.as_ref().and_then(|measurement| measurement.latency.as_ref()) {
            self.keep(LATENCY, &record.cell, &latency::table(latency))?;
        }
        let mut line = serde_json::to_string(record).context("cannot write a record")?;
        line.push('\n');
        let write = |file: &mut File| file.write_all(line.as_bytes()).and_then(|()| file.sync_data());
        write(&mut self.samples).with_context(|| format!("cannot write to {}", self.dir.display()))
    }

    /// Stores the memory over time of one process, in place of what an earlier attempt has left.
    pub fn keep_series(&self, cell: &str, table: &str) -> Result<()> {
        self.keep(SERIES, cell, table)
    }

    fn keep(&self, folder: &str, cell: &str, table: &str) -> Result<()> {
        let path = file_of(&self.dir, folder, cell);
        let write = || -> std::io::Result<()> {
            fs::create_dir_all(self.dir.join(folder))?;
            let mut file = File::create(&path)?;
            file.write_all(table.as_bytes())?;
            file.sync_data()
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }

    /// Stores a look at the machine beside those of earlier parts of the run.
    pub fn keep_look(&self, when: When, look: Preflight) -> Result<()> {
        looks::add(&self.dir, when, look)
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

/// Writes a file that a reader finds complete or not at all.
fn replace(file: &Path, text: &str) -> Result<()> {
    let mut temporary = file.as_os_str().to_owned();
    temporary.push(".new");
    let write = || -> std::io::Result<()> {
        let mut out = File::create(&temporary)?;
        out.write_all(text.as_bytes())?;
        out.sync_all()?;
        fs::rename(&temporary, file)
    };
    write().with_context(|| format!("cannot write {}", file.display()))
}

/// Reads a run directory. What was written later about the same cell counts.
pub fn read(dir: &Path) -> Result<Run> {
    read_with(dir, &|_| ())
}

/// The same without what no table shows: of a million samples, that is most of it. Of a sample's figures those stay that
/// `reads` names.
pub fn read_for_tables(dir: &Path, reads: fn(&str) -> bool) -> Result<Run> {
    read_with(dir, &|record| record.forget_evidence(reads))
}

fn read_with(dir: &Path, lighten: &dyn Fn(&mut Record)) -> Result<Run> {
    let path = dir.join("run.json");
    let text = fs::read_to_string(&path).with_context(|| no_run(dir))?;
    let value: serde_json::Value =
        serde_json::from_str(&text).with_context(|| format!("{} is damaged", path.display()))?;
    let schema = value.get("schema").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if schema > u64::from(SCHEMA) {
        bail!(
            "{} has schema {schema}, this heapmark reads up to {SCHEMA}: it was written by a newer heapmark",
            path.display()
        );
    }
    let mut head: RunFile = serde_json::from_value(value).with_context(|| format!("{} is damaged", path.display()))?;
    head.looks = looks::read(dir)?;
    let samples = dir.join("samples.jsonl");
    let read =
        || if samples.exists() { records(BufReader::new(File::open(&samples)?), lighten) } else { Ok((Vec::new(), 0)) };
    let (mut records, unreadable_lines) = read().with_context(|| format!("cannot read {}", samples.display()))?;
    for record in &mut records {
        let measurement = record.measurement.as_mut();
        if let Some(told) = measurement.map(|measurement| &mut measurement.latency).filter(|told| told.is_some()) {
            let table = fs::read_to_string(file_of(dir, LATENCY, &record.cell)).unwrap_or_default();
            *told = told.take().and_then(|told| latency::with_counts(*told, &table)).map(Box::new);
        }
    }
    Ok(Run { head, records, unreadable_lines })
}

fn no_run(dir: &Path) -> String {
    format!("no run in {}: a run directory holds run.json (`heapmark run` says where it puts it)", dir.display())
}

/// Line by line: the file may be larger than what is kept of it.
fn records(mut samples: impl BufRead, lighten: &dyn Fn(&mut Record)) -> std::io::Result<(Vec<Record>, usize)> {
    let (mut kept, mut unreadable, mut line) = (Records::default(), 0, Vec::new());
    while samples.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line);
        match serde_json::from_str(&text) {
            Ok(mut record) => {
                lighten(&mut record);
                kept.add(record);
            }
            Err(_) => unreadable += usize::from(!text.trim().is_empty()),
        }
        line.clear();
    }
    Ok((kept.into_all(), unreadable))
}

/// The folder of the memory over time in a run directory.
const SERIES: &str = "series";
/// The folder of how long single calls took.
const LATENCY: &str = "latency";

/// The file of a cell in a folder: that of `memory@2/b03/jemalloc` is `series/memory@2_b03_jemalloc.csv`.
fn file_of(dir: &Path, folder: &str, cell: &str) -> PathBuf {
    dir.join(folder).join(format!("{}.csv", cell.replace('/', "_")))
}

/// Where runs go when nobody says otherwise.
pub const RESULTS: &str = "heapmark-results";

/// `RUN` as people write it: a run directory, or `latest`. Refuses one that holds no run.
pub fn find(run: &str) -> Result<PathBuf> {
    if run != "latest" {
        let dir = PathBuf::from(run);
        return if dir.join("run.json").is_file() { Ok(dir) } else { bail!(no_run(&dir)) };
    }
    let folders = fs::read_dir(RESULTS).into_iter().flatten().flatten().map(|entry| entry.path());
    let newest = folders.filter(|folder| folder.join("run.json").is_file()).max_by_key(|folder| number(folder));
    newest.with_context(|| format!("no run in ./{RESULTS}: name a run directory"))
}

/// A fresh directory `heapmark-results/<date>-<n>`.
pub fn fresh(date: &str) -> PathBuf {
    let taken = |n: &u32| Path::new(RESULTS).join(format!("{date}-{n}")).exists();
    let n = (1..).find(|n| !taken(n)).unwrap_or(u32::MAX);
    Path::new(RESULTS).join(format!("{date}-{n}"))
}

/// Date and number of a run directory, so that `2026-01-02-10` comes after `2026-01-02-9`.
fn number(folder: &Path) -> (String, u32) {
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match name.rsplit_once('-').and_then(|(date, n)| Some((date.to_string(), n.parse().ok()?))) {
        Some(key) => key,
        None => (name, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::execute::{Iteration, Measurement, Outcome};

    fn record(cell: &str, outcome: Outcome) -> Record {
        Record {
            purpose: Purpose::Sample,
            cell: cell.into(),
            workload: "churn".into(),
            threads: 1,
            allocator: "glibc".into(),
            block: 0,
            part: 0,
            attempt: 0,
            position: 0,
            seed: 1,
            started: String::new(),
            outcome,
            measurement: None,
            usage: None,
            disturbance: None,
            course: None,
            proof: None,
            environment: Default::default(),
            stderr: String::new(),
        }
    }

    fn line(cell: &str, outcome: Outcome) -> String {
        serde_json::to_string(&record(cell, outcome)).unwrap()
    }

    #[test]
    fn the_last_attempt_of_a_cell_counts_and_a_torn_line_is_left_out() {
        let crash = Outcome::Crash { signal: "SIGSEGV".into(), phase: "run".into() };
        let text =
            format!("{}\n{}\n{}\n{{\"cell\":\"x", line("a", crash), line("b", Outcome::Ok), line("a", Outcome::Ok));
        let (records, unreadable) = records(text.as_bytes(), &|_| ()).unwrap();
        assert_eq!(records.iter().map(|r| r.cell.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert!(records[0].outcome.is_ok());
        assert_eq!(unreadable, 1);
    }

    #[test]
    fn a_torn_line_does_not_swallow_the_next_record() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("samples.jsonl"), "{\"torn").unwrap();
        Store::open(dir.path()).unwrap().append(&record("a", Outcome::Ok)).unwrap();
        let text = fs::read_to_string(dir.path().join("samples.jsonl")).unwrap();
        let (records, unreadable) = records(text.as_bytes(), &|_| ()).unwrap();
        assert_eq!((records.len(), unreadable), (1, 1));
    }

    #[test]
    fn for_tables_a_record_keeps_what_it_measured_and_loses_what_proves_it() {
        let mut whole = record("a", Outcome::Ok);
        let iteration = |cold, wall_ns| Iteration { cold, wall_ns, ..Iteration::default() };
        let iterations = vec![iteration(true, 9), iteration(false, 1), iteration(false, 2)];
        let figures = [("kept".to_string(), 1.0), ("lost".to_string(), 2.0)].into();
        whole.measurement = Some(Measurement { peak_rss_bytes: 7, iterations, figures, ..Measurement::default() });
        whole.environment = [("LD_PRELOAD".to_string(), "x.so".to_string())].into();
        whole.usage = Some(Default::default());
        let line = serde_json::to_string(&whole).unwrap();
        let (light, _) = records(line.as_bytes(), &|record| record.forget_evidence(|name| name == "kept")).unwrap();
        assert!(light[0].environment.is_empty() && light[0].usage.is_none());
        let measurement = light[0].measurement.as_ref().unwrap();
        assert_eq!((light[0].cell.as_str(), measurement.peak_rss_bytes), ("a", 7));
        assert_eq!(measurement.iterations, [iteration(false, 3)], "what is divided is the sum of what counts");
        assert_eq!(measurement.figures, [("kept".to_string(), 1.0)].into());
    }

    #[test]
    fn two_writers_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let _first = Store::open(dir.path()).unwrap();
        assert!(Store::open(dir.path()).err().unwrap().to_string().contains("another heapmark"));
    }

    #[test]
    fn a_newer_schema_is_refused_in_words() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("run.json"), "{\"schema\": 99}").unwrap();
        assert!(read(dir.path()).err().unwrap().to_string().contains("newer heapmark"));
        assert!(read(&dir.path().join("nowhere")).err().unwrap().to_string().contains("no run in"));
    }

    #[test]
    fn the_tenth_run_of_a_day_is_the_latest() {
        assert!(number(Path::new("r/2026-01-02-10")) > number(Path::new("r/2026-01-02-9")));
        assert!(number(Path::new("r/2026-01-03-1")) > number(Path::new("r/2026-01-02-10")));
    }
}
