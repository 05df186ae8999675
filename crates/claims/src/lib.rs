//! Checks whether the claims of reference documents hold: `heapmark claims`.

#[macro_use]
extern crate heapmark_core;

// The tests of this crate need some of its functions.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../core/src/analyse/fake_run.rs"]
mod fake_run;

mod command;
mod document;
mod judge;
mod list;
mod report;

pub use command::{ClaimsArgs, run, sections_of_check, sections_of_runs};
pub use list::listed;
