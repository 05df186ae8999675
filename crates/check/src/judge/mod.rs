//! From the processes of a check of `heapmark check` to the check's result, to what later runs need
//! from it, and to the differences between two results.

mod changes;
mod gathered;
mod known;
mod outcome;
mod verdict;

pub use changes::{Changed, Changes, changes};
pub use known::known;
pub use outcome::{detected, why_not_well};
pub use verdict::has_failed;

use crate::definition::{Check, Form};
use crate::file::{Found, MisuseResult};
use crate::processes::Trial;

/// The processes of a cell of a check.
pub struct Tried {
    /// The cell's size and form.
    pub cell: (u64, Form),
    /// The process without the misuse, if there is one.
    pub twin: Option<Trial>,
    /// All other trials.
    pub trials: Vec<Trial>,
}

/// Returns the result of a check; `again` is the command that repeats it.
pub fn found(check: &Check, tried: &[Tried], again: &str) -> Found {
    match check.standing {
        Some(standing) => {
            let trials = tried.iter().flat_map(|cell| &cell.trials).collect();
            Found::Verdict(verdict::result(check, standing, trials, again))
        }
        None => Found::Outcomes(MisuseResult {
            check: check.name.clone(),
            group: check.group.clone(),
            ends: check.ends,
            cells: tried
                .iter()
                .map(|cell| outcome::cell(check, cell, again))
                .collect(),
        }),
    }
}
