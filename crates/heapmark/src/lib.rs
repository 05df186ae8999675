//! heapmark finds out which memory allocator suits a program and a machine, and by how much.
//!
//! This crate has the list of commands, over a core and the features above it. Cargo enforces the order of these crates:
//! `core < check, capture, pool, history, which < tune, claims < heapmark`.

#[macro_use]
extern crate heapmark_core;

pub mod cli;

pub use heapmark_capture as capture;
pub use heapmark_check as check;
pub use heapmark_claims as claims;
pub use heapmark_core::{
    analyse, build, catalog, cmd, execute, file, metric, observe, plan, report, session, store,
};
pub use heapmark_history as history;
pub use heapmark_pool as pool;
pub use heapmark_tune as tune;
pub use heapmark_which as which;
