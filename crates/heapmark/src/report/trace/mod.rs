//! Traces for people and programs: events one per line, and what all of them come to.

mod dump;
mod stats;

pub use dump::Dump;
pub use stats::{histogram_csv, stats, stats_json, timeline_csv};
pub(super) use stats::{program, summary};
