//! One line of a table: an allocator in a case. Numbers, or the reason why there are none; never
//! both.

use super::failure::Failed;
use super::group::Group;
use super::measured_cell::Beside;
use super::numbers::Numbers;
use super::role::Role;
use serde::Serialize;
use std::collections::BTreeMap;

/// An allocator in a case.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Allocator name.
    pub allocator: String,
    /// Its tier, as the run recorded it.
    pub tier: String,
    /// What it is in the comparison.
    pub role: Role,
    /// Functions of the malloc family that it leaves to libc; a row with any is `partial`.
    pub left_to_libc: Vec<String>,
    /// Faults in functions that few workloads call; a row with any is `flawed`.
    pub findings: Vec<String>,
    /// How it returns memory in this case.
    pub purge: Purge,
    /// The catalogue family whose purge is used, for a library given by its path.
    pub purged_as: Option<String>,
    /// The allocator that serves behind it, if its check found one.
    pub served: Option<String>,
    /// The date of its sources; empty if its version contains it.
    pub sources: String,
    /// Parameters of the workload that have other values in this row.
    pub parameters: BTreeMap<String, String>,
    /// Its result so far.
    pub state: State,
}

/// How an allocator is made to return memory, the weakest guarantee first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Purge {
    /// The run reports another value, or none.
    Unknown,
    /// It is not made to.
    None,
    /// By its settings.
    Configured,
    /// By a call.
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

/// The result of a row so far.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum State {
    /// Every process so far ended `ok`.
    Measured(Box<Numbers>),
    /// At least one process did not end `ok`.
    Failed(Failed),
    /// No sample with a number yet.
    Missing {
        /// Samples that ended `ok` without operations, time or iterations to divide.
        unusable: usize,
    },
}

impl Row {
    pub(super) fn new(group: &Group, beside: &Beside) -> Row {
        let state = match (&group.failed, Numbers::new(group, beside)) {
            (Some(failed), _) => State::Failed(failed.clone()),
            (None, Some(numbers)) => State::Measured(Box::new(numbers)),
            (None, None) => State::Missing {
                unusable: group.unusable,
            },
        };
        Row {
            allocator: group.allocator.name.clone(),
            tier: group.allocator.tier.clone(),
            role: group.role,
            left_to_libc: group.allocator.left_to_libc.clone(),
            findings: group.findings.clone(),
            purge: purge(group),
            purged_as: group.allocator.purged_as.clone(),
            served: group.check.and_then(|it| it.notes.get("served").cloned()),
            sources: group.allocator.sources.clone(),
            parameters: other_parameters(group),
            state,
        }
    }

    /// The row's numbers, if it has any.
    pub fn numbers(&self) -> Option<&Numbers> {
        match &self.state {
            State::Measured(numbers) => Some(numbers),
            State::Failed(_) | State::Missing { .. } => None,
        }
    }
}

fn other_parameters(group: &Group) -> BTreeMap<String, String> {
    let usual = &group.case.parameters;
    let mut own = group
        .case
        .row(&group.allocator.name)
        .map(|row| row.parameters.clone())
        .unwrap_or_default();
    own.retain(|name, value| usual.get(name).is_some_and(|usual| usual != value));
    own
}

/// The weakest of the methods that the plan and the processes report.
fn purge(group: &Group) -> Purge {
    group
        .processes
        .values()
        .map(|(measurement, _)| Purge::from(measurement.purge.as_str()))
        .fold(Purge::from(group.allocator.purge.as_str()), Purge::min)
}
