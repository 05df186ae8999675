//! What reference documents claim, and whether it holds: `heapmark claims`.

#[macro_use]
extern crate heapmark_core;

// Tests here need some of it.
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
