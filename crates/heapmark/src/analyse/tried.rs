//! What is known of a user's command beside its rows: how much any allocator can change, and what was out of reach. From the check
//! of its baseline. Must not judge.

use super::group::Group;
use super::row::{Role, Row};
use crate::execute::trial::{CALLS_PER_S, NO_CEILING, SHARE, UNPROVEN, UNSEARCHED};
use crate::plan::Trial;
use serde::Serialize;

/// Below this a process is mostly its own start.
const SHORT_NS: f64 = 5e6;

/// A command.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tried {
    /// As a person would type it.
    pub line: String,
    /// Who drives it, where it is a server.
    pub client: Option<String>,
    /// The share of the baseline's CPU time that calls of the malloc family take; `None` where too few were timed.
    pub malloc_share: Option<f64>,
    /// Such calls for each second of CPU time.
    pub calls_per_cpu_s: Option<f64>,
    /// Why that is not known, where it went wrong.
    pub no_ceiling: Option<String>,
    /// Programs of its tree that no preloaded allocator reaches, and why.
    pub unproven: Option<String>,
    /// Why such programs were not looked for to the end.
    pub unsearched: Option<String>,
    /// Rows whose command left processes behind, with how many.
    pub left_behind: Vec<(String, u64)>,
    /// Whether the baseline takes so little time that a process's start is most of it.
    pub short: bool,
}

impl Tried {
    pub(super) fn new(trial: &Trial, baseline: Option<&Group>, groups: &[Group], rows: &[Row]) -> Tried {
        let check = baseline.and_then(|group| group.check);
        let figure = |name: &str| check?.figures.get(name).copied();
        let note = |group: &Group, name: &str| group.check?.notes.get(name).cloned();
        let left = |group: &Group| Some((group.allocator.name.clone(), note(group, "left_behind")?.parse().ok()?));
        let wall_ns = rows.iter().find(|row| row.role == Role::Baseline).and_then(|row| row.numbers());
        Tried {
            line: trial.line(),
            client: trial.client.as_ref().map(|client| client.line()),
            malloc_share: figure(SHARE),
            calls_per_cpu_s: figure(CALLS_PER_S),
            no_ceiling: baseline.and_then(|group| note(group, NO_CEILING)),
            unproven: baseline.and_then(|group| note(group, UNPROVEN)),
            unsearched: baseline.and_then(|group| note(group, UNSEARCHED)),
            left_behind: groups.iter().filter_map(left).collect(),
            short: wall_ns.is_some_and(|numbers| numbers.ns_per_op.median < SHORT_NS),
        }
    }

    /// How much faster, at most, an allocator makes it that takes no time at all: 0.05 is five per cent.
    pub fn faster_at_most(&self) -> Option<f64> {
        self.malloc_share.map(|share| 1.0 / (1.0 - share) - 1.0)
    }
}
