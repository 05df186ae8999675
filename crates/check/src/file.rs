//! `check.json`: what `heapmark check` has found. docs/FORMAT.md describes it.

use crate::definition::{Ends, Form, MisuseOutcome};
use anyhow::{Context, Result, ensure};
use heapmark_core::file::{WithPath, read_named, read_stored};
use heapmark_core::store::AllocatorInfo;
use heapmark_core::store::CheckVerdict;
use heapmark_core::store::Standing;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file's name in its directory.
pub const CHECK_FILE: &str = "check.json";
const SCHEMA: u32 = 1;

/// The whole file.
#[derive(Serialize, Deserialize)]
pub struct CheckFile {
    schema: u32,
    /// Version of heapmark.
    pub heapmark: String,
    /// When the first check began.
    pub started: String,
    /// `quick` or `full`.
    pub preset: String,
    /// Kernel, C library, processor: as in `run.json`.
    pub machine: BTreeMap<String, String>,
    /// Whether checks are still to come, or never came, since something has stopped it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unfinished: bool,
    /// In the order in which they were checked.
    pub allocators: Vec<CheckedAllocator>,
}

/// An allocator and its results.
#[derive(Serialize, Deserialize)]
pub struct CheckedAllocator {
    #[serde(flatten)]
    /// The allocator's entry, as in `run.json`.
    pub info: AllocatorInfo,
    /// One for each check.
    pub results: Vec<CheckResult>,
    /// One for each check of hardening.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hardening: Vec<MisuseResult>,
}

/// What one check came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CheckResult {
    /// The check's name.
    pub check: String,
    /// The check's group.
    pub group: String,
    /// What says that a program may rely on it.
    pub standing: Standing,
    /// The worst of its processes.
    pub verdict: CheckVerdict,
    /// How many of its processes had that verdict, and of how many.
    pub times: (u32, u32),
    /// How many did not hold, with whatever verdict; 0 in results of before.
    #[serde(default)]
    pub failed: u32,
    /// What did not hold, the first few; how it ended, if not at its own end.
    pub reasons: Vec<String>,
    /// Values, where standards leave it open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The command that makes it again.
    pub again: String,
}

impl CheckedAllocator {
    /// Before its first check.
    pub fn new(info: AllocatorInfo) -> CheckedAllocator {
        CheckedAllocator {
            info,
            results: Vec::new(),
            hardening: Vec::new(),
        }
    }

    /// Adds a result at its place: they come in another order than they are kept in.
    pub fn add(&mut self, found: Found) {
        match found {
            Found::Verdict(result) => self.results.push(result),
            Found::Outcomes(result) => self.hardening.push(result),
        }
        self.results
            .sort_by_cached_key(|it| (it.group.clone(), it.check.clone()));
        self.hardening
            .sort_by_cached_key(|it| (it.group.clone(), it.check.clone()));
    }
}

/// What one check of hardening came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MisuseResult {
    /// The check's name.
    pub check: String,
    /// The check's group.
    pub group: String,
    /// The end that the wrong program meets.
    pub ends: Ends,
    /// One for each size and form.
    pub cells: Vec<MisuseCell>,
}

/// What a check came to, of either kind.
pub enum Found {
    /// A check that passes or fails.
    Verdict(CheckResult),
    /// A wrong program.
    Outcomes(MisuseResult),
}

/// Of blocks of one size, in one form.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MisuseCell {
    /// The size that was asked for.
    pub size_bytes: u64,
    /// What the attacker knows.
    pub form: Form,
    /// The most frequent; of several, the worst.
    pub outcome: MisuseOutcome,
    /// How many of its processes ended how.
    pub tally: BTreeMap<MisuseOutcome, u32>,
    /// How many of those that were stopped late the first correct call ended. Earlier versions did
    /// not count them.
    #[serde(default)]
    pub by_next_call: u32,
    /// If chance decides: how often `outcome` is to be expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// The worst of all its processes.
    pub impact: Impact,
    /// If `outcome` is stopped-late: calls until then, the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distance: Option<u64>,
    /// Values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// How one of those processes ended that had `outcome`; then, if others had errors, why one
    /// did, after `error: `.
    pub reasons: Vec<String>,
    /// The command that makes it again.
    pub again: String,
}

impl MisuseCell {
    /// How many of its processes say something of the allocator.
    pub fn answers(&self) -> u32 {
        let answers = self.tally.iter().filter(|(outcome, _)| outcome.is_answer());
        answers.map(|(_, times)| times).sum()
    }

    /// Whether one of its processes could not be checked, or its benign twin.
    pub fn has_error(&self) -> bool {
        self.outcome == MisuseOutcome::Error || self.tally.contains_key(&MisuseOutcome::Error)
    }
}

/// A share of processes, with its 95 % interval of Wilson.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Of those that say something of the allocator.
    pub of_processes: f64,
    /// The true one is not smaller,
    pub low: f64,
    /// and not larger.
    pub high: f64,
}

/// What an attacker has gained by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Impact {
    /// Nothing that was seen.
    None,
    /// Two live blocks overlap.
    Overlap,
    /// A block lies in memory of the attacker's choice.
    ChosenBlock,
    /// Memory of the attacker's choice was written.
    ChosenWrite,
}

impl CheckFile {
    /// Before the first check.
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

    /// Whether something could not be checked.
    pub fn has_error(&self) -> bool {
        self.allocators.iter().any(|one| {
            let mut results = one.results.iter();
            let mut cells = one.hardening.iter().flat_map(|it| &it.cells);
            results.any(|it| it.verdict == CheckVerdict::Error) || cells.any(MisuseCell::has_error)
        })
    }

    /// Reads the file, or that of a directory.
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
