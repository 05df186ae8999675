//! What can be counted instead of timed.

use heapmark_guest::counted::{kernel, perf};
use serde::{Deserialize, Serialize};

/// Who counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Instructions, by valgrind's callgrind.
    Callgrind,
    /// What the machine lets us have of instructions, cycles, cache misses and page faults.
    Perf,
    /// Calls that get memory from the kernel or give it back.
    Kernel,
}

impl Counter {
    /// Its name on the command line and in a job.
    pub fn word(self) -> &'static str {
        match self {
            Counter::Callgrind => "callgrind",
            Counter::Perf => "perf",
            Counter::Kernel => "kernel",
        }
    }

    /// What it counts, in the order of the tables.
    pub fn events(self) -> Vec<&'static str> {
        match self {
            Counter::Callgrind => vec![perf::INSTRUCTIONS.name],
            Counter::Perf => perf::EVENTS.iter().map(|event| event.name).collect(),
            Counter::Kernel => kernel::CALLS.iter().map(|(name, _)| *name).collect(),
        }
    }

    /// Blocks where nobody says how many: valgrind counts the same each time.
    pub fn blocks(self) -> u32 {
        match self {
            Counter::Callgrind => 1,
            Counter::Perf | Counter::Kernel => 5,
        }
    }
}
