//! Traces as text and for programs: events one per line, and statistics over all of them.

mod dump;
mod page;
mod recorded;
mod stats;

pub use dump::Dump;
pub use page::traced as trace_page;
pub use recorded::{RecordedProcess, recorded};
pub use stats::{
    border, calls, histogram_csv, joint_csv, low, program, stats, stats_json, summary,
    summary_table, timeline_csv,
};
