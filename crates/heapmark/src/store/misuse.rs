//! What `heapmark check` has found of hardening, in `check.json`. docs/FORMAT.md describes it.

use crate::catalog::misuse::{Ends, Form};
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
    /// If they did not all end alike: how often `outcome` is to be expected.
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
    /// How one of those processes ended that had `outcome`.
    pub reasons: Vec<String>,
    /// The command that makes it again.
    pub again: String,
}

/// A share of processes, with its 95 % interval of Wilson.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// Of those that were made.
    pub of_processes: f64,
    /// The true one is not smaller,
    pub low: f64,
    /// and not larger.
    pub high: f64,
}

/// What an allocator makes of a wrong program. The order is that of how far an attacker gets, and no
/// score: an outcome of one small program says little about a clever one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseOutcome {
    /// It ended the process on purpose, inside the bad call.
    Stopped,
    /// The hardware did, on the bad access itself.
    Trapped,
    /// It ended the process on purpose, some calls later.
    StoppedLate,
    /// Nothing ended, and the heap is whole.
    Absorbed,
    /// Nothing wrong was done: the check ends in values.
    Observed,
    /// It cannot apply to this allocator or here.
    Unsupported,
    /// It did not end within its time.
    Hang,
    /// A fault that is not on purpose.
    Crashed,
    /// Bytes of another live block were changed, and it was not noticed.
    Spilled,
    /// A block got two owners, or bytes that were not written into it.
    Corrupted,
    /// The check itself went wrong, another library served, or the benign twin did not end well:
    /// nothing is known of the allocator.
    Error,
}

impl MisuseOutcome {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            MisuseOutcome::Stopped => "stopped",
            MisuseOutcome::Trapped => "trapped",
            MisuseOutcome::StoppedLate => "stopped-late",
            MisuseOutcome::Absorbed => "absorbed",
            MisuseOutcome::Observed => "observed",
            MisuseOutcome::Unsupported => "unsupported",
            MisuseOutcome::Hang => "hang",
            MisuseOutcome::Crashed => "crashed",
            MisuseOutcome::Spilled => "spilled",
            MisuseOutcome::Corrupted => "corrupted",
            MisuseOutcome::Error => "error",
        }
    }
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
