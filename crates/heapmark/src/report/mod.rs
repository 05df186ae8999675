//! Tables -> terminal, Markdown, CSV, JSON, an HTML page and other tools' files. Pure: values in,
//! text out. Never measures, never judges.

mod allocators;
mod check;
mod claims;
mod compare;
mod conclusion;
mod count;
mod csv;
mod factor;
mod flags;
mod footprint;
mod format;
mod hardening;
mod hardening_claims;
mod json;
mod latency;
mod legend;
mod limit;
mod machine;
mod markdown;
mod matrix;
mod metrics;
mod operations;
mod other_tools;
mod page;
mod pool;
mod real_programs;
mod recorded;
mod reproduction;
mod screen;
mod sheet;
mod sheets;
mod terminal;
mod text;
mod timed;
mod trace;
pub mod units;
mod user_command;
mod whole;
mod workloads;

#[cfg(test)]
pub(crate) mod tests;

pub use allocators::allocators;
pub use check::{check, check_changes};
pub use claims::{claims, claims_json, claims_markdown, reason};
pub use compare::{ComparisonSubject, comparison, comparison_json, comparison_markdown};
pub use flags::text as flags;
pub use format::{Exported, Format, export, write_raw};
pub use hardening_claims::{
    claims as hardening_claims, claims_json as hardening_claims_json,
    claims_markdown as hardening_claims_markdown,
};
pub use machine::{doctor, price_warning, prices, warnings};
pub use matrix::{matrix, provisional};
pub use metrics::metrics;
pub use page::{
    PageRun, PooledPage, checked as check_page, page, page_beside, pooled as pool_page,
    traced as trace_page,
};
pub use pool::{pool, pool_json, pool_markdown};
pub use real_programs::programs;
pub use recorded::{RecordedProcess, recorded};
pub use reproduction::reproduction;
pub use screen::{Screen, plain_lines};
pub use terminal::terminal;
pub use text::{count, json, plain};
pub use trace::{Dump, histogram_csv, joint_csv, stats, stats_json, timeline_csv};
pub use workloads::workloads;

use crate::analyse::Analysis;

/// The verdict in words, without escape sequences: the last line of a terminal report, or the first
/// of a page.
pub fn conclusion(analysis: &Analysis) -> String {
    text::plain(&conclusion::conclusion(analysis))
}
