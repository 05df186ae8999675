//! `run.json`: everything about a run that is known before its first sample.

use crate::catalog::Sources;
use crate::execute::{Program, Subject};
use crate::plan::{Case, Plan};
use crate::store::{Checked, Preflights};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the store's format. Readers refuse newer ones, and those from before the oldest supported one: what
/// was stored is never read as something else.
pub const SCHEMA: u32 = 6;
/// The oldest schema that is read: schema 6 only added processes that take turns.
pub const OLDEST_SCHEMA: u32 = 5;

/// The head of a run directory.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunFile {
    /// The [`SCHEMA`] of the heapmark that wrote the run.
    pub schema: u32,
    /// heapmark's version.
    pub heapmark: String,
    /// SHA-256 of the program that ran under the allocators. Empty in older runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub guest: String,
    /// When the run was started: UTC, RFC 3339.
    pub started: String,
    /// The suite's name, or `custom`.
    pub suite: String,
    /// The preset's name.
    pub preset: String,
    /// The thread counts that the user gave, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<String>,
    /// The parameters that the user set: `larson.chunks=100`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,
    /// What is measured, how often and in which order.
    pub plan: Plan,
    /// The allocators of the comparison, in plan order, then the A/A copy and the floor, as reports
    /// describe them.
    pub allocators: Vec<AllocatorInfo>,
    /// The subjects as they are run: `--resume` starts these again.
    pub subjects: Vec<Subject>,
    /// Allocators that rows of programs always run under, and that are not compared.
    #[serde(default)]
    pub pinned: Vec<Subject>,
    /// Rows of programs, as reports describe them.
    #[serde(default)]
    pub rows: Vec<AllocatorInfo>,
    /// The programs, as they are run.
    #[serde(default)]
    pub programs: Vec<Program>,
    /// Seconds that a process may take, if the user set a limit.
    pub timeout_s: Option<f64>,
    /// The machine, as key and value.
    pub machine: BTreeMap<String, String>,
    /// The preflights of the run, if they were read: separate files, as each part of a run adds to
    /// them.
    #[serde(skip)]
    pub preflights: Preflights,
}

/// The facts that a run must share with one that continues it, or whose numbers stand beside its own.
pub const OF_MACHINE: [&str; 4] = ["architecture", "cpu_model", "usable_cpus", "c_library"];

/// The name in [`RunFile::other_here`] for another version of heapmark.
pub const HEAPMARK: &str = "heapmark";

impl RunFile {
    /// Returns the first fact that differs here: its name, its value for the run, and its value for this machine or this heapmark.
    pub fn other_here<'a>(&'a self, here: &'a BTreeMap<String, String>) -> Option<[&'a str; 3]> {
        let fact = |key: &'a str| Some([key, self.machine.get(key)?, here.get(key)?]);
        let version = [HEAPMARK, &self.heapmark, env!("CARGO_PKG_VERSION")];
        let mut facts = OF_MACHINE.into_iter().filter_map(fact).chain([version]);
        facts.find(|[_, then, now]| then != now)
    }

    /// Returns whether the run contains a user's command line.
    pub fn is_private(&self) -> bool {
        self.plan.cases.iter().any(|case| case.command().is_some())
    }

    /// Splits the run into one for each kind of measurement, for example times, and memory beside them.
    pub fn parts(&self) -> Vec<RunFile> {
        let part = |beside| RunFile {
            plan: self.plan.only(beside),
            ..self.clone()
        };
        let has_beside = self.plan.cases.iter().any(|case| case.beside);
        [part(false)]
            .into_iter()
            .chain(has_beside.then(|| part(true)))
            .collect()
    }

    /// Returns the rows of a case: its allocators in plan order, then its programs.
    pub fn rows_of<'a>(&'a self, case: &'a Case) -> impl Iterator<Item = &'a AllocatorInfo> {
        self.plan.rows_of(case).filter_map(|name| {
            self.allocators
                .iter()
                .chain(&self.rows)
                .find(|info| info.name == name)
        })
    }
}

/// An allocator, or the row of a program, as it was resolved for this run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AllocatorInfo {
    /// The row's name.
    pub name: String,
    /// The allocator's family.
    pub family: String,
    /// Tier as in the catalogue: `main`, `variant`, `floor`, …, or `program`.
    pub tier: String,
    /// Where the library came from, in words.
    pub origin: String,
    /// The version that the library reported, or the pinned source's.
    pub version: String,
    /// The date of the library's sources, from the catalogue; empty if the version contains it.
    #[serde(default)]
    pub sources: String,
    /// The release that the row's numbers are of: `mimalloc 2.5.2, 2026-09`. Empty in older runs.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub release: String,
    /// Preloaded files, in order, or the command that is started.
    pub files: Vec<String>,
    /// SHA-256 of each of `files`.
    pub sha256: Vec<String>,
    /// The libraries that `files` need, without those of the system, and the SHA-256 of each. Empty in older runs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub needs: BTreeMap<String, String>,
    /// GNU build-id of each of `files` in hex, empty if a file has none. Programs have no entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub build_ids: Vec<String>,
    /// Environment variables of the catalogue entry.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, String>,
    /// Functions of the malloc family that the library leaves to libc.
    pub left_to_libc: Vec<String>,
    /// The purge rule: `called`, `configured` or `none`.
    pub purge: String,
    /// The catalogue family whose purge is called, for a library given by its path.
    pub purged_as: Option<String>,
    /// What `heapmark check` had found about the library before the run; absent if nothing was
    /// known that a reader needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<Checked>,
}

impl AllocatorInfo {
    /// The hashes of the preloaded files, and of those that they need.
    pub fn hashes(&self) -> Vec<&str> {
        let all = self.sha256.iter().chain(self.needs.values());
        all.map(String::as_str).collect()
    }

    /// Returns the release that the row's numbers are of, as far as the run contains it.
    pub fn released(&self) -> String {
        if !self.release.is_empty() {
            return self.release.clone();
        }
        let sources = Sources {
            date: self.sources.clone(),
            ..Sources::default()
        };
        sources.release("", Some(&self.version))
    }
}
