//! From the processes of a check of `heapmark check` to its result, to what later runs need of it, and
//! to what differs between two results.

mod changes;
mod gathered;
mod known;
mod outcome;
mod verdict;

pub use changes::{Changed, changes};
pub use known::known;
pub use outcome::{detected, why_not_well};
pub use verdict::has_failed;

use crate::definition::{Check, Form};
use crate::file::{Found, MisuseResult};
use crate::processes::Trial;

/// The processes of a cell of a check.
pub struct Tried {
    /// Size and form.
    pub cell: (u64, Form),
    /// The process without what is wrong, if there is one.
    pub twin: Option<Trial>,
    /// All other trials.
    pub trials: Vec<Trial>,
}

/// The result of a check, and the command that makes it again.
pub fn found(check: &Check, tried: &[Tried], again: &str) -> Found {
    match check.standing {
        Some(standing) => {
            let trials = tried.iter().flat_map(|it| &it.trials).collect();
            Found::Verdict(verdict::result(check, standing, trials, again))
        }
        None => Found::Outcomes(MisuseResult {
            check: check.name.clone(),
            group: check.group.clone(),
            ends: check.ends,
            cells: tried
                .iter()
                .map(|it| outcome::cell(check, it, again))
                .collect(),
        }),
    }
}
