//! What a run measures: one thing, never two at once.

use super::Counter;
use serde::{Deserialize, Serialize};

/// What the processes of a run measure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
}

impl Mode {
    /// Whether only kernels can tell it, each call of which goes through the guest.
    pub fn is_for_kernels(self) -> bool {
        self != Mode::Time
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
            Mode::Memory => Some(3),
        }
    }
}
