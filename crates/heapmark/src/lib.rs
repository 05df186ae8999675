//! heapmark finds out which memory allocator suits a program and a machine, and by how much.
//!
//! The host is a library: stages, which are the core, and features above them. A module uses only modules to its left:
//! `file < catalog < build < plan < execute, observe < store < metric < analyse < session, report < cmd < check, capture, pool < claims < cli`
//! (`tests/core/source/ladder.rs` reads the `use crate::` lines and checks that order).

#[macro_use]
pub mod cmd;

pub mod analyse;
pub mod build;
pub mod capture;
pub mod catalog;
pub mod check;
pub mod claims;
pub mod cli;
pub mod execute;
pub mod file;
pub mod metric;
pub mod observe;
pub mod plan;
pub mod pool;
pub mod report;
pub mod session;
pub mod store;
