//! `heapmark tune`: which settings of allocators help a program. What is searched, and in which order, stands in
//! `search`; processes stand behind its trait.

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
