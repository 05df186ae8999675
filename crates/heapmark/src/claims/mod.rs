//! What reference documents claim, and whether it holds: `heapmark claims`.

pub(crate) mod command;
pub(crate) mod document;
pub(crate) mod judge;
pub(crate) mod report;

pub use command::{ClaimsArgs, run};
