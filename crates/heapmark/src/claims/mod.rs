//! What reference documents claim, and whether it holds: `heapmark claims`.

pub(crate) mod command;
pub(crate) mod document;
pub(crate) mod judge;
mod list;
pub(crate) mod report;

pub use command::{ClaimsArgs, run, sections_of_check, sections_of_runs};
pub use list::listed;
