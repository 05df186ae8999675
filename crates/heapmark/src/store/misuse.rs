//! What `heapmark check` has found of hardening, in `check.json`. docs/FORMAT.md describes it.

use crate::catalog::misuse::{Ends, Form, MisuseOutcome};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What one check of hardening came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct MisuseResult {
    /// Its name.
    pub check: String,
    /// Its group.
    pub group: String,
    /// What it ends in.
    pub ends: Ends,
    /// One for each size and form.
    pub cells: Vec<MisuseCell>,
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

impl Impact {
    /// Its words; empty if there is none.
    pub fn words(self) -> &'static str {
        match self {
            Impact::None => "",
            Impact::Overlap => "overlap of two live blocks",
            Impact::ChosenBlock => "a block at a chosen address",
            Impact::ChosenWrite => "a write to chosen memory",
        }
    }
}
