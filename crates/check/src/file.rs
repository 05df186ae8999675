//! `check.json`: the results of `heapmark check`. docs/FORMAT.md describes it.

use crate::definition::{Ends, Form, MisuseOutcome};
use anyhow::{Context, Result, ensure};
use heapmark_core::file::{WithPath, read_named, read_stored};
use heapmark_core::store::AllocatorInfo;
use heapmark_core::store::CheckVerdict;
use heapmark_core::store::Standing;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The name of the file in a result's directory.
pub const CHECK_FILE: &str = "check.json";
const SCHEMA: u32 = 1;

/// The whole content of `check.json`.
#[derive(Serialize, Deserialize)]
pub struct CheckFile {
    schema: u32,
    /// The version of heapmark.
    pub heapmark: String,
    /// When the first check began.
    pub started: String,
    /// The preset: `quick` or `full`.
    pub preset: String,
    /// Kernel, C library, processor: as in `run.json`.
    pub machine: BTreeMap<String, String>,
    /// Whether checks are still to come, or never came because something stopped the command.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// The allocators, in the order in which they were checked.
    pub allocators: Vec<CheckedAllocator>,
}

/// An allocator and its results.
#[derive(Serialize, Deserialize)]
pub struct CheckedAllocator {
    #[serde(flatten)]
    /// The allocator's entry, as in `run.json`.
    pub info: AllocatorInfo,
    /// The results, one for each check that passes or fails.
    pub results: Vec<CheckResult>,
    /// The results of hardening, one for each check of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardening: Vec<MisuseResult>,
}

/// The result of one check that passes or fails.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckResult {
    /// The check's name.
    pub check: String,
    /// The check's group.
    pub group: String,
    /// The reason why a program may rely on the checked property.
    pub standing: Standing,
    /// The worst verdict of the check's processes.
    pub verdict: CheckVerdict,
    /// How many of the check's processes had that verdict, and how many processes there were.
    pub times: (u32, u32),
    /// How many of the processes failed, with whatever verdict; 0 in results of earlier versions.
    #[serde(default)]
    pub failed: u32,
    /// The first few things that did not hold, and how the process ended, if not at its regular
    /// end.
    pub reasons: Vec<String>,
    /// Values that the check observed, if standards leave the behaviour open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The command that repeats the check.
    pub again: String,
}

impl CheckedAllocator {
    /// An allocator before its first check.
    pub fn new(info: AllocatorInfo) -> CheckedAllocator {
        CheckedAllocator {
            info,
            results: Vec::new(),
            hardening: Vec::new(),
        }
    }

    /// Adds a result at its sorted place: checks do not end in the order of the file.
    pub fn add(&mut self, found: Found) {
        match found {
            Found::Verdict(result) => self.results.push(result),
            Found::Outcomes(result) => self.hardening.push(result),
        }
        self.results
            .sort_by_cached_key(|result| (result.group.clone(), result.check.clone()));
        self.hardening
            .sort_by_cached_key(|result| (result.group.clone(), result.check.clone()));
    }
}

/// The result of one check of hardening.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MisuseResult {
    /// The check's name.
    pub check: String,
    /// The check's group.
    pub group: String,
    /// The kind of result that the wrong program has.
    pub ends: Ends,
    /// The cells, one for each size and form.
    pub cells: Vec<MisuseCell>,
}

/// The result of a check of either kind.
pub enum Found {
    /// The result of a check that passes or fails.
    Verdict(CheckResult),
    /// The result of a wrong program.
    Outcomes(MisuseResult),
}

/// The result of a wrong program with blocks of one size, in one form.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MisuseCell {
    /// The requested size of the blocks.
    pub size_bytes: u64,
    /// What the attacker knows.
    pub form: Form,
    /// The most frequent outcome; the worst, if several are equally frequent.
    pub outcome: MisuseOutcome,
    /// How many of the cell's processes had each outcome.
    pub tally: BTreeMap<MisuseOutcome, u32>,
    /// How many of the processes that were stopped late were stopped by the first correct call.
    /// Earlier versions did not count them.
    #[serde(default)]
    pub by_next_call: u32,
    /// How often `outcome` is to be expected, if chance decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The worst impact in all of the cell's processes.
    pub impact: Impact,
    /// The median number of calls before the process was stopped, if `outcome` is stopped-late.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<u64>,
    /// Values that the program observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How a process with `outcome` ended; then, if others had errors, why one of them did, after
    /// `error: `.
    pub reasons: Vec<String>,
    /// The command that repeats the check.
    pub again: String,
}

impl MisuseCell {
    /// How many of the cell's processes show something about the allocator.
    pub fn answers(&self) -> u32 {
        let answers = self.tally.iter().filter(|(outcome, _)| outcome.is_answer());
        answers.map(|(_, times)| times).sum()
    }

    /// Whether one of the cell's processes, or its benign twin, could not be checked.
    pub fn has_error(&self) -> bool {
        self.outcome == MisuseOutcome::Error || self.tally.contains_key(&MisuseOutcome::Error)
    }
}

/// A share of processes, with its 95 % Wilson interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// The share among the processes that show something about the allocator.
    pub of_processes: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

/// What an attacker has gained at the end of a wrong program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Impact {
    /// No gain was observed.
    None,
    /// Two live blocks overlap.
    Overlap,
    /// A block lies in memory of the attacker's choice.
    ChosenBlock,
    /// Memory of the attacker's choice was written.
    ChosenWrite,
}

impl CheckFile {
    /// A file before the first check.
    pub fn new(preset: &str, machine: BTreeMap<String, String>) -> CheckFile {
        CheckFile {
            schema: SCHEMA,
            heapmark: env!("CARGO_PKG_VERSION").into(),
            started: jiff::Timestamp::now().to_string(),
            preset: preset.into(),
            machine,
            unfinished: true,
            allocators: Vec::new(),
        }
    }

    /// Whether some check could not be made.
    pub fn has_error(&self) -> bool {
        self.allocators.iter().any(|one| {
            let mut results = one.results.iter();
            let mut cells = one.hardening.iter().flat_map(|result| &result.cells);
            results.any(|result| result.verdict == CheckVerdict::Error)
                || cells.any(MisuseCell::has_error)
        })
    }

    /// Reads a file `check.json`, or that of a result's directory.
    pub fn read(path: &Path) -> Result<CheckFile> {
        let file = match path.is_dir() {
            true => path.join(CHECK_FILE),
            false => path.to_owned(),
        };
        let text = match path.is_dir() {
            true => read_stored(&file),
            false => read_named(&file).map(String::into_bytes),
        };
        let text = text.with_path("cannot read", &file)?;
        let read: CheckFile = serde_json::from_slice(&text)
            .with_context(|| format!("{} is no result of heapmark check", file.display()))?;
        ensure!(
            read.schema == SCHEMA,
            "{}: another version of heapmark wrote it (schema {}, this one reads {SCHEMA})",
            file.display(),
            read.schema
        );
        Ok(read)
    }
}
