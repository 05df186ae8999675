//! Tables -> terminal, Markdown, CSV, JSON, an HTML page and other tools' files. Pure: values in,
//! text out. Never measures, never judges.

pub mod again;
mod allocators;
#[doc(hidden)]
pub mod benchres;
mod best_and_worst;
mod compare;
#[doc(hidden)]
pub mod conclusion;
mod count;
mod csv;
#[doc(hidden)]
pub mod document;
#[doc(hidden)]
pub mod doubts;
mod drained;
mod factor;
#[doc(hidden)]
pub mod first_screen;
mod flags;
mod footprint;
mod format;
mod hardening;
mod heading;
mod json;
#[doc(hidden)]
pub mod known_faults;
mod latency;
mod legend;
mod limit;
#[doc(hidden)]
pub mod machine;
#[doc(hidden)]
pub mod matrix;
mod memory_answer;
mod metrics;
mod names;
mod operations;
mod other_tools;
#[doc(hidden)]
pub mod page;
mod pr;
mod real_programs;
#[doc(hidden)]
pub mod render;
mod run;
#[doc(hidden)]
pub mod screen;
#[doc(hidden)]
pub mod sheet;
#[doc(hidden)]
pub mod text;
mod timed;
pub mod units;
mod user_command;
mod whole;
mod workloads;

#[cfg(test)]
pub(crate) mod tests;

pub use allocators::allocators;
pub use compare::{ComparisonSubject, comparison, comparison_json};
pub use first_screen::first_screen;
pub use flags::text as flags;
pub use format::{Exported, Format, export, write_raw};
pub use machine::{doctor, price_warning, prices, warnings};
pub use matrix::provisional;
pub use metrics::metrics;
pub use other_tools::perfetto;
pub use page::{PageRun, page, section::Section};
pub use run::terminal;
pub use screen::{Screen, plain_lines};
pub use text::{count, json, plain, short};
pub use workloads::workloads;

use crate::analyse::Analysis;

/// The verdict in words, without escape sequences: the last line of a terminal report, or the first
/// of a page.
pub fn conclusion(analysis: &Analysis) -> String {
    text::plain(&conclusion::conclusion(analysis))
}
