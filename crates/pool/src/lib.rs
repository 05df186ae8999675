//! Pools runs of several machines: `heapmark campaign`.

#[macro_use]
extern crate heapmark_core;

// The tests of this crate need some of this module.
#[cfg(test)]
#[allow(dead_code)]
#[path = "../../core/src/analyse/fake_run.rs"]
mod fake_run;

mod campaign;
mod command;
mod judge;
mod report;

pub use command::{CampaignArgs, page_beside, run};
