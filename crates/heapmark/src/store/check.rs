//! `check.json`: what `heapmark check` has found. docs/FORMAT.md describes it.

use super::AllocatorInfo;
pub use super::check_verdict::CheckVerdict;
use super::misuse::MisuseResult;
use crate::catalog::check::Standing;
use crate::file::{WithPath, read_named, read_stored};
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file's name in its directory.
pub const CHECK_FILE: &str = "check.json";
const SCHEMA: u32 = 1;

/// All of it.
#[derive(Serialize, Deserialize)]
pub struct CheckFile {
    schema: u32,
    /// Version of heapmark.
    pub heapmark: String,
    /// When the first check began.
    pub started: String,
    /// `quick` or `full`.
    pub preset: String,
    /// As in `run.json`: kernel, C library, processor.
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
    /// As in `run.json`.
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
    /// Its name.
    pub check: String,
    /// Its group.
    pub group: String,
    /// Who says that a program may rely on it.
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

    /// Puts its results into the order in which they are kept: not that in which they came.
    pub fn sort(&mut self) {
        self.results
            .sort_by(|a, b| (&a.group, &a.check).cmp(&(&b.group, &b.check)));
        self.hardening
            .sort_by(|a, b| (&a.group, &a.check).cmp(&(&b.group, &b.check)));
    }
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
