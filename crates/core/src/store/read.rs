//! Reads a run directory. After a kill, a full disk or a changed byte, each line is either a record
//! as it was written, or none.

use super::checksum::is_intact;
use super::directory::no_run;
use super::line::next_line;
use super::{
    Case, Lines, OLDEST_SCHEMA, Paths, Purpose, Record, Records, RunFile, SCHEMA, latency,
    light_record, open_samples, preflights, samples_of, tables,
};
use crate::file::{WithPath, is_there, read_stored};
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::io::{self, BufRead, BufReader, ErrorKind};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread::{self, available_parallelism};

/// A run directory as read.
pub struct Run {
    /// The run's head.
    pub head: RunFile,
    /// One record per cell, the last attempt of each, in the order they were first written.
    pub records: Vec<Record>,
    /// The positions of the records' lines, for reading records again.
    pub lines: Lines,
    /// Lines that are no record: the torn end of a run that was killed, or damage.
    pub unreadable_lines: usize,
    /// Files in `series/` and `latency/` that are missing or not as written: nothing of them is
    /// shown.
    pub damaged_tables: Vec<PathBuf>,
}

/// A function that parses a line into a record.
type Parse<'a> = &'a (dyn Fn(&[u8]) -> serde_json::Result<Record> + Sync);

/// Reads a run directory. The latest record of a cell counts.
pub fn read(dir: &Path) -> Result<Run> {
    read_with(dir, Paths::Stored, &|line| serde_json::from_slice(line))
}

/// Reads a run with paths as anybody may read them.
pub fn read_published(dir: &Path) -> Result<Run> {
    let parse = |line: &[u8]| serde_json::from_slice(&Paths::Published.of(line));
    read_with(dir, Paths::Published, &parse)
}

/// Reads a run without what no table shows: for a million samples, that is most of it. A sample
/// keeps the figures that `reads` accepts.
pub fn read_for_tables(dir: &Path, paths: Paths, reads: fn(&str) -> bool) -> Result<Run> {
    read_with(dir, paths, &|line| {
        light_record::record(&paths.of(line), reads)
    })
}

fn read_with(dir: &Path, paths: Paths, parse: Parse) -> Result<Run> {
    let mut head = head_with(dir, paths)?;
    head.preflights = preflights::read(dir, paths)?;
    let samples = samples_of(dir);
    let found = if is_there(&samples) {
        open_samples(dir).and_then(|file| records(BufReader::new(file), parse))
    } else {
        Ok(FoundRecords::default())
    };
    let found = found.with_path("cannot read", &samples)?;
    let mut records = found.kept.into_all();
    for record in &mut records {
        latency::count(dir, record);
    }
    let alone = |case: &Case| {
        let of_case = |record: &&Record| record.is_of(&case.workload, case.threads);
        let mut trials = records.iter().filter(of_case);
        trials.any(|trial| trial.purpose == Purpose::Trial && !trial.outcome.is_ok())
    };
    for case in &mut head.plan.cases {
        case.turns = case.turns.filter(|_| !alone(case));
    }
    Ok(Run {
        head,
        lines: Lines {
            dir: dir.to_path_buf(),
            paths,
            places: found.places,
        },
        unreadable_lines: found.unreadable_lines,
        damaged_tables: tables::damaged(dir, &records),
        records,
    })
}

/// Reads the head of a run directory alone.
pub fn head(dir: &Path) -> Result<RunFile> {
    head_with(dir, Paths::Stored)
}

fn head_with(dir: &Path, paths: Paths) -> Result<RunFile> {
    let path = dir.join("run.json");
    let damaged = || {
        format!(
            "{} is damaged: without it no line of samples.jsonl means anything",
            path.display()
        )
    };
    let text = match read_stored(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(no_run(dir)),
        text => text.with_path("cannot read", &path)?,
    };
    let Version { schema } = serde_json::from_slice(&text).with_context(damaged)?;
    // Checked before the checksum, which a newer schema may place elsewhere.
    if !(u64::from(OLDEST_SCHEMA)..=u64::from(SCHEMA)).contains(&schema) {
        let age = if schema > u64::from(SCHEMA) {
            "a newer"
        } else {
            "an older"
        };
        bail!(
            "{} has schema {schema}, this heapmark reads {OLDEST_SCHEMA} to {SCHEMA}: read it with {age} heapmark, or run it again",
            path.display()
        );
    }
    if !is_intact(&text) {
        bail!(
            "{}: its checksum does not fit; bring back the file as it was written",
            damaged()
        );
    }
    serde_json::from_slice(&paths.of(&text)).with_context(damaged)
}

/// The one key that every head has.
#[derive(Deserialize)]
struct Version {
    schema: u64,
}

/// The records of `samples.jsonl`.
#[derive(Default)]
pub struct FoundRecords {
    pub kept: Records,
    /// Where the line of each record begins.
    pub places: Vec<u64>,
    pub unreadable_lines: usize,
}

/// Reads records line by line: the file may be larger than the records that are kept.
pub fn records(mut samples: impl BufRead, parse: Parse) -> io::Result<FoundRecords> {
    let mut found = FoundRecords::default();
    let mut at = 0;
    loop {
        let lines = next_lines(&mut samples)?;
        if lines.is_empty() {
            return Ok(found);
        }
        for (line, record) in lines.iter().zip(parsed(&lines, parse)) {
            match record {
                Some(record) => {
                    let number = found.kept.add(record);
                    found.places.resize(found.places.len().max(number + 1), at);
                    found.places[number] = at;
                }
                None => found.unreadable_lines += usize::from(!line.kept.trim_ascii().is_empty()),
            }
            at += line.length;
        }
    }
}

/// A line of `samples.jsonl`.
struct RawLine {
    /// Its length.
    length: u64,
    /// Its bytes; of a line that is too long to be a record, the first ones.
    kept: Vec<u8>,
}

/// So many lines, or bytes of lines, are read before they are parsed.
pub const LINES_AT_ONCE: usize = 4096;
const BYTES_AT_ONCE: u64 = 4 << 20;

/// Reads the next lines; none at the end.
fn next_lines(samples: &mut impl BufRead) -> io::Result<Vec<RawLine>> {
    let (mut lines, mut bytes) = (Vec::new(), 0);
    while lines.len() < LINES_AT_ONCE && bytes < BYTES_AT_ONCE {
        let mut kept = Vec::new();
        let length = next_line(samples, &mut kept)?;
        if length == 0 {
            break;
        }
        lines.push(RawLine { length, kept });
        bytes += length;
    }
    Ok(lines)
}

/// A thread parses at least this many lines: to start one for fewer takes longer.
const LEAST_OF_THREAD: usize = 256;

/// Parses lines on all CPUs. Returns `None` for a line that is no record, or not as it was written.
fn parsed(lines: &[RawLine], parse: Parse) -> Vec<Option<Record>> {
    let parsed = |lines: &[RawLine]| -> Vec<Option<Record>> {
        let record = |RawLine { kept, .. }: &RawLine| parse(kept).ok().filter(|_| is_intact(kept));
        lines.iter().map(record).collect()
    };
    if lines.len() < 2 * LEAST_OF_THREAD {
        return parsed(lines);
    }
    let cpus = available_parallelism().map_or(1, NonZero::get);
    let share = lines.len().div_ceil(cpus).max(LEAST_OF_THREAD);
    thread::scope(|scope| {
        let threads: Vec<_> = lines
            .chunks(share)
            .map(|lines| scope.spawn(move || parsed(lines)))
            .collect();
        let records = threads.into_iter().map(|thread| thread.join());
        records
            .flat_map(|records| records.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    })
}
