//! What a run measures: one thing, never two at once.

use super::{Counter, LimitKind};
use serde::{Deserialize, Serialize};

/// What the processes of a run measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// The time of whole measured phases, and the memory of their processes.
    #[default]
    Time,
    /// The time of single calls.
    Latency {
        /// One call in so many of each thread is timed.
        every: u32,
    },
    /// Events; no time of such a process means anything.
    Count(Counter),
    /// What memory is resident for what is live; nor does a time of these.
    Memory,
    /// The smallest limit on memory that does, and what time costs near it.
    Limit(LimitKind),
}

impl Mode {
    /// Whether no program of the catalogue can tell it, and no whole process is timed.
    pub fn is_for_kernels(self) -> bool {
        self != Mode::Time
    }

    /// What is limited, if something is.
    pub fn limit(self) -> Option<LimitKind> {
        match self {
            Mode::Limit(kind) => Some(kind),
            _ => None,
        }
    }

    /// What counts, if something does.
    pub fn counter(self) -> Option<Counter> {
        match self {
            Mode::Count(counter) => Some(counter),
            _ => None,
        }
    }

    /// Blocks of a run for which nothing else decides how many; `None`: as many as a verdict needs.
    pub fn blocks(self) -> Option<u32> {
        match self {
            Mode::Time | Mode::Latency { .. } => None,
            // Valgrind counts the same each time.
            Mode::Count(Counter::Callgrind) => Some(1),
            Mode::Count(Counter::Perf | Counter::Kernel) => Some(5),
            Mode::Memory | Mode::Limit(_) => Some(3),
        }
    }
}
