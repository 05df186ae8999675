//! The core of heapmark: measures allocators, compares them and reports the results. Contains no features: these are crates above this one.
//!
//! A library of stages. A stage uses only the stages to its left:
//! `execute < store < metric < analyse < session, report < cmd`
//! (`crates/heapmark/tests/core/source/ladder.rs` reads the `use crate::` lines and checks that order).

// Lets a test file that other crates include use the same paths in this crate.
#[cfg(test)]
extern crate self as heapmark_core;

#[macro_use]
pub mod cmd;

// The crates below this one: what can be measured; files that are complete or absent; builds, plans and observations.
pub use heapmark_build as build;
pub use heapmark_catalog as catalog;
pub use heapmark_catalog::file;
pub use heapmark_observe as observe;
pub use heapmark_plan as plan;

pub mod analyse;
pub mod execute;
pub mod metric;
pub mod report;
pub mod session;
pub mod store;
