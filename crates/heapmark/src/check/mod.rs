//! `heapmark check`: what a program may rely on of each allocator, and what becomes of wrong programs.

mod command;
pub(crate) mod definition;
pub(crate) mod file;
pub(crate) mod judge;
mod printed;
pub(crate) mod process_page;
pub(crate) mod processes;
pub(crate) mod report;
mod session;

pub use command::{CheckArgs, run, write_page};
pub use file::CHECK_FILE;
