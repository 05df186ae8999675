//! Releases of an allocator, one after the other: `heapmark history`; and regressions that
//! shipped: `heapmark museum`.

#[macro_use]
extern crate heapmark_core;

// The tests here need only a part of that file.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../core/src/analyse/fake_run.rs"]
mod fake_run;

mod attempted;
mod command;
mod folder;
mod museum;
mod report;
mod series;
mod unchanged;

pub use command::{HistoryArgs, run};
pub use museum::{MuseumArgs, run as museum};
