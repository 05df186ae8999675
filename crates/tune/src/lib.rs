//! `heapmark tune`: which settings of allocators help a program. The module `search` defines what is searched and in which
//! order; it starts processes through a trait only.

#[macro_use]
extern crate heapmark_core;

mod arrival;
mod command;
mod copied;
mod judged;
mod page;
mod report;
mod rounds;
mod search;
mod setting;

pub use command::{TuneArgs, run};
