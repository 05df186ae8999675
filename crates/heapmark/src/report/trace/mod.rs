//! Traces as text and for programs: events one per line, and statistics over all of them.

mod dump;
mod stats;

pub use dump::Dump;
pub(super) use stats::{border, low, program, summary};
pub use stats::{histogram_csv, stats, stats_json, timeline_csv};
