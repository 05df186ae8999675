//! What can be counted instead of timed.

use heapmark_guest::counted::{kernel, perf};
use serde::{Deserialize, Serialize};

/// The method of counting.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Counter {
    /// Instructions, by valgrind's callgrind.
    Callgrind,
    /// The hardware and kernel events that the machine makes available: instructions, cycles, cache
    /// misses and page faults.
    Perf,
    /// System calls that get memory from the kernel or return it.
    Kernel,
}

impl Counter {
    /// Returns the counter's name on the command line and in a job.
    pub fn word(self) -> &'static str {
        match self {
            Counter::Callgrind => "callgrind",
            Counter::Perf => "perf",
            Counter::Kernel => "kernel",
        }
    }

    /// Returns the counted events, in the order of the tables.
    pub fn events(self) -> Vec<&'static str> {
        match self {
            Counter::Callgrind => vec![perf::INSTRUCTIONS.name],
            Counter::Perf => perf::EVENTS.iter().map(|event| event.name).collect(),
            Counter::Kernel => kernel::CALLS.iter().map(|(name, _)| *name).collect(),
        }
    }
}
