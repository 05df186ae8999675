//! What `heapmark check` has found about libraries. The cache keeps one result of each check,
//! under a name made from everything that decides it; each run of such a library gets a copy, so
//! that reports show it on any machine. docs/FORMAT.md describes both.

use crate::build;
use crate::catalog::Source;
use crate::execute::Subject;
use crate::file::{WithPath, read_stored};
use anyhow::{Context, Result};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

/// The version of the names, which changes whenever the same names get another meaning.
const FORMAT: &str = "heapmark findings 1";

/// What is known about a library.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Checked {
    /// In the cache, each check that ended in a verdict; in a run, only those that did not pass,
    /// the worst first.
    #[serde(default)]
    pub findings: Vec<KnownFault>,
    /// Each misuse that was tried.
    #[serde(default)]
    pub hardening: Vec<Detection>,
}

/// A check that an allocator is known not to pass: how it ended last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KnownFault {
    /// The check's name.
    pub check: String,
    /// Why a program may rely on what is checked.
    pub standing: Standing,
    /// The worst verdict of the check's processes.
    pub verdict: CheckVerdict,
    /// What did not hold, or how the process ended.
    pub found: String,
    /// How many processes made the check.
    #[serde(default)]
    pub processes: u32,
    /// The version of the heapmark that made the check.
    pub heapmark: String,
    /// When the check began, UTC.
    pub at: String,
}

/// The authority by which a program may rely on what is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// ISO C or POSIX.
    Std,
    /// No standard, but programs for Linux rely on it.
    Gnu,
    /// Quality only: limits, forks, odd environments.
    Robust,
    /// Left open: it ends in values, not in a verdict.
    #[value(skip)]
    Observe,
}

/// How a check ended, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckVerdict {
    /// The check ran to its end, and everything held.
    Pass,
    /// The check does not apply to this allocator, or not on this machine.
    Unsupported,
    /// The check ran to its end, and something did not hold.
    Fail,
    /// The check did not end within its time.
    Hang,
    /// A signal ended the process, or the allocator made it exit.
    Crash,
    /// The check itself went wrong, or another library served: nothing is known about the allocator.
    Error,
}

impl CheckVerdict {
    /// Returns whether a program cannot rely on what was checked. An error is no evidence about the allocator.
    pub fn is_finding(self) -> bool {
        use CheckVerdict::{Crash, Fail, Hang};
        matches!(self, Fail | Hang | Crash)
    }
}

impl fmt::Display for CheckVerdict {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// How often a misuse was detected at once or by the next call, when it was tried last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// The check's name.
    pub check: String,
    /// Processes in which the misuse was detected, over all sizes and forms.
    pub detected: u32,
    /// Processes that could detect the misuse.
    pub of: u32,
    /// The version of the heapmark that made the check.
    pub heapmark: String,
    /// When the check began, UTC.
    pub at: String,
}

impl Checked {
    /// Returns the part that is copied into a run.
    fn for_a_run(mut self) -> Option<Checked> {
        self.findings.retain(|finding| finding.verdict.is_finding());
        self.findings.sort_by_key(|finding| {
            (
                finding.standing,
                Reverse(finding.verdict),
                finding.check.clone(),
            )
        });
        let is_empty = self.findings.is_empty() && self.hardening.is_empty();
        (!is_empty).then_some(self)
    }

    /// Merges newer results into these. A fault that fewer processes did not meet may still happen,
    /// so their result does not replace what more processes met.
    fn renewed(mut self, mut newer: Checked) -> Checked {
        let is_outdone = |new: &KnownFault, old: &KnownFault| {
            new.check == old.check && old.processes > new.processes && old.verdict > new.verdict
        };
        newer
            .findings
            .retain(|new| !self.findings.iter().any(|old| is_outdone(new, old)));
        let findings = &newer.findings;
        self.findings
            .retain(|old| !findings.iter().any(|new| new.check == old.check));
        let hardening = &newer.hardening;
        self.hardening
            .retain(|old| !hardening.iter().any(|new| new.check == old.check));
        self.findings.extend(newer.findings);
        self.hardening.extend(newer.hardening);
        self
    }
}

/// The folder of what is known about libraries.
pub struct CheckedShelf {
    folder: PathBuf,
    /// SHA-256 of the C library, which lies below all allocators, and is one itself.
    libc: String,
}

impl CheckedShelf {
    /// Opens the folder for the C library of this machine.
    pub fn open() -> Result<CheckedShelf> {
        let libc = build::find_library("libc.so.6")
            .context("libc.so.6 is not in the dynamic linker's folders")?;
        Ok(CheckedShelf {
            folder: build::cache_root()?.join("findings"),
            libc: build::hash_of_file(&libc)?,
        })
    }

    /// Returns the file for a library with these hashes; `None` if it is not known which library serves.
    fn place(&self, subject: &Subject, sha256: &[&str]) -> Option<PathBuf> {
        let allocator = &subject.allocator;
        let is_unknown = matches!(allocator.source, Source::Null | Source::AsCalled);
        if is_unknown || subject.refused.is_some() {
            return None;
        }
        let environment = format!("{:?}", allocator.environment);
        // Some runs preload the C library itself.
        let files = sha256.iter().copied().filter(|hash| *hash != self.libc);
        let common = [FORMAT, &self.libc, &environment].into_iter();
        let name = build::hash(common.chain(files));
        Some(self.folder.join(name + ".json"))
    }

    /// Keeps new results; those of checks that were not made again stay. A damaged file is replaced.
    pub fn keep(&self, subject: &Subject, sha256: &[&str], newer: Checked) -> Result<()> {
        let Some(place) = self.place(subject, sha256) else {
            return Ok(());
        };
        build::change_in_cache(&place, |known| {
            let known = known
                .ok()
                .and_then(|bytes| serde_json::from_slice(&bytes).ok());
            let known: Checked = known.unwrap_or_default();
            serde_json::to_vec(&known.renewed(newer)).context("cannot write what was found")
        })
    }

    /// Returns what a run of this library keeps; nothing if it was never checked, or there is nothing to report.
    pub fn find(&self, subject: &Subject, sha256: &[&str]) -> Result<Option<Checked>> {
        let Some(place) = self.place(subject, sha256) else {
            return Ok(None);
        };
        let text = match read_stored(&place) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            read => read.with_path("cannot read", &place)?,
        };
        let known: Checked = serde_json::from_slice(&text).with_path("damaged:", &place)?;
        Ok(known.for_a_run())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_few_processes_do_not_meet_does_not_replace_what_many_met() {
        let known = |verdict, processes| Checked {
            findings: vec![KnownFault {
                check: "cancel".into(),
                standing: Standing::Std,
                verdict,
                found: String::new(),
                processes,
                heapmark: String::new(),
                at: String::new(),
            }],
            hardening: Vec::new(),
        };
        let chance = known(CheckVerdict::Hang, 8);
        let renewed = |newer| chance.clone().renewed(newer);
        assert_eq!(renewed(known(CheckVerdict::Pass, 1)), chance);
        for newer in [
            known(CheckVerdict::Pass, 8),
            known(CheckVerdict::Hang, 1),
            known(CheckVerdict::Crash, 1),
        ] {
            assert_eq!(renewed(newer.clone()), newer);
        }
    }
}
