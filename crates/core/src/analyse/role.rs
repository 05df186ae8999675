//! The role of a row in the comparison.

use crate::store::AllocatorInfo;
use serde::Serialize;

/// The part of an allocator in the comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The allocator that the others are compared with.
    Baseline,
    /// An allocator that is compared with the baseline.
    #[default]
    Candidate,
    /// The A/A copy of the baseline, which shows how far equals differ in this run; never ranks.
    AaCopy,
    /// The null allocator, which shows the harness's own cost; never ranks.
    Floor,
    /// A program with its own memory management: compared with the baseline, never ranks.
    Program,
}

impl Role {
    /// The role of a candidate in a case.
    pub(crate) fn of(candidate: &AllocatorInfo, baseline: &str) -> Role {
        match candidate.tier.as_str() {
            "floor" => Role::Floor,
            "aa-copy" => Role::AaCopy,
            _ if candidate.name == baseline => Role::Baseline,
            "program" => Role::Program,
            _ => Role::Candidate,
        }
    }

    /// Whether the row is an allocator that has a place in the ranking.
    pub fn ranks(self) -> bool {
        matches!(self, Role::Baseline | Role::Candidate)
    }

    /// Whether the row only helps to judge the others.
    pub fn is_companion(self) -> bool {
        matches!(self, Role::AaCopy | Role::Floor)
    }
}
