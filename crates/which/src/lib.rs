//! `heapmark which`: which allocator serves a running process, which settings reached it, and what it holds. Read only:
//! nothing is stopped, attached to or written to.

#[macro_use]
extern crate heapmark_core;

mod command;
mod given;
mod held;
mod look;
mod objects;
mod preload;
mod process;
mod report;
mod serving;
pub mod settings;
mod started;
mod taken;

pub use command::{WhichArgs, run};
pub use given::{Given, SettingState, reads};
pub use look::ProcessView;
