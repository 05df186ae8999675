//! `heapmark check`: what a program may rely on under each allocator, and what becomes of wrong
//! programs.

#[macro_use]
extern crate heapmark_core;

mod command;
pub mod definition;
pub mod file;
mod judge;
pub mod list;
mod printed;
mod process_page;
mod processes;
pub mod report;
mod session;

pub use command::{CheckArgs, run, write_page};
pub use file::CHECK_FILE;
