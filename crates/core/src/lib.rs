//! The core of heapmark: measures allocators, compares and reports. It knows no feature, which are crates above it.
//!
//! A library of stages. A stage uses only the stages to its left:
//! `file < catalog < build < plan < execute, observe < store < metric < analyse < session, report < cmd`
//! (`crates/heapmark/tests/core/source/ladder.rs` reads the `use crate::` lines and checks that order).

// So that a file of tests that other crates include has the same paths here.
#[cfg(test)]
extern crate self as heapmark_core;

#[macro_use]
pub mod cmd;

pub mod analyse;
pub mod build;
pub mod catalog;
pub mod execute;
pub mod file;
pub mod metric;
pub mod observe;
pub mod plan;
pub mod report;
pub mod session;
pub mod store;
