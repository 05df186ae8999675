//! What allocators are ranked by: the time of their processes, or a number that the processes report.

use crate::execute::user_command::VALUE_COST;
use crate::metric::Process;
use serde::Serialize;

/// What rows are ranked by: a time, or a number in place of a time.
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
    /// Returns the value of a process: nanoseconds per operation, or the command's own number; `None` if the
    /// process has none.
    pub fn of(self, process: &Process) -> Option<f64> {
        match self {
            Clock::Wall => Some(process.ns_per_op()),
            Clock::Cpu => process.cpu_ns_per_op(),
            Clock::Own => process.value_cost(),
        }
    }

    /// The key of the metric that holds the clock's values.
    pub fn metric(self) -> &'static str {
        match self {
            Clock::Wall => "ns_per_op",
            Clock::Cpu => "cpu_ns_per_op",
            Clock::Own => VALUE_COST,
        }
    }

    /// The noun for what the clock measures, for use in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Clock::Wall => "time",
            Clock::Cpu => "CPU time",
            Clock::Own => "own value",
        }
    }
}
