//! How allocators are made to return memory.

use super::group::Group;
use serde::Serialize;

/// How an allocator is made to return memory, the weakest guarantee first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purge {
    /// The run reports another value, or none.
    #[default]
    Unknown,
    /// Nothing makes the allocator purge.
    None,
    /// The allocator's settings make it purge.
    Configured,
    /// A call makes the allocator purge.
    Called,
}

impl From<&str> for Purge {
    fn from(word: &str) -> Purge {
        match word {
            "called" => Purge::Called,
            "configured" => Purge::Configured,
            "none" => Purge::None,
            _ => Purge::Unknown,
        }
    }
}

impl Purge {
    /// The weakest of the methods that the plan and the processes report.
    pub(super) fn of(group: &Group) -> Purge {
        group
            .processes
            .values()
            .map(|process| Purge::from(process.measurement.purge.as_str()))
            .fold(Purge::from(group.allocator.purge.as_str()), Purge::min)
    }
}
