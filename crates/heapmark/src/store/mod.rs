//! The append-only run directory: `run.json` and `samples.jsonl`. Raw samples only; whatever can be derived is derived.

pub mod record;
pub mod run;

pub use crate::plan::Case;
pub use record::{Purpose, Record};
pub use run::{AllocatorInfo, RunFile, SCHEMA};
