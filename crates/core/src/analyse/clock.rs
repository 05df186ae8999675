//! What allocators are ranked by: a time of their processes, or a number that these report.

use crate::execute::user_command::VALUE_COST;
use crate::metric::Process;
use serde::Serialize;

/// A clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// Wall time.
    Wall,
    /// CPU time, if other programs disturbed everything: a process that waits for a CPU uses none.
    Cpu,
    /// The number that a command reports of itself, in the direction in which less is better.
    Own,
}

impl Clock {
    /// Nanoseconds per operation; `None` if this clock counted none.
    pub fn of(self, process: &Process) -> Option<f64> {
        match self {
            Clock::Wall => Some(process.ns_per_op),
            Clock::Cpu => process.cpu_ns_per_op,
            Clock::Own => process.value_cost,
        }
    }

    /// The key of its metric.
    pub fn metric(self) -> &'static str {
        match self {
            Clock::Wall => "ns_per_op",
            Clock::Cpu => "cpu_ns_per_op",
            Clock::Own => VALUE_COST,
        }
    }

    /// What the clock measures, in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Clock::Wall => "time",
            Clock::Cpu => "CPU time",
            Clock::Own => "own value",
        }
    }
}
