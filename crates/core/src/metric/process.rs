//! The figures of one process, from its measured iterations. The raw counters stay in
//! [`Measurement`]; these are quotients of their sums. Must not compare processes.

use crate::execute::user_command::VALUE_COST;
use crate::execute::{Iteration, Measurement};

/// The figures of one process, derived from its measured iterations, without the cold ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Process {
    /// Wall time x threads / operations: what one thread spends on one operation. CPU time in a process that took turns
    /// with another one.
    pub ns_per_op: f64,
    /// Operations of all threads per microsecond of the time that `ns_per_op` is computed from.
    pub mops_per_s: f64,
    /// CPU time / operations; `None` if the kernel's clock counted none.
    pub cpu_ns_per_op: Option<f64>,
    /// User time / operations: the program's part of the CPU time.
    pub user_ns_per_op: Option<f64>,
    /// Kernel time / operations: the kernel's part of the CPU time.
    pub kernel_ns_per_op: Option<f64>,
    /// The number that the program reports about itself, if it is judged by such a number, in the direction in which less
    /// is better.
    pub value_cost: Option<f64>,
    /// The allocator's memory at the peak of the resident set; `None` if that is zero or not known.
    pub grown_bytes: Option<f64>,
    /// The purge's part of the wall time, 0 to 1; `None` if it exceeds the wall time, or if the process took turns with another.
    pub purge_share: Option<f64>,
}

impl Process {
    /// Computes the figures; `None` if there is nothing to divide: no measured iteration, no operation, no time or no thread.
    pub fn new(measurement: &Measurement, threads: u32) -> Option<Process> {
        let sum = |of: fn(&Iteration) -> f64| measurement.measured().map(of).sum::<f64>();
        let ops = sum(|iteration| iteration.ops as f64);
        let wall_ns = sum(|iteration| iteration.wall_ns as f64);
        let purge_ns = sum(|iteration| iteration.purge_ns as f64);
        let user_ns = sum(|iteration| iteration.user_ns as f64);
        let kernel_ns = sum(|iteration| iteration.sys_ns as f64);
        let cpu_ns = user_ns + kernel_ns;
        // The wall time of a process that took turns includes the turns of the other process.
        let took_turns = measurement.turns.is_some();
        let ns = if took_turns { cpu_ns } else { wall_ns };
        if ops == 0.0 || ns == 0.0 || threads == 0 {
            return None;
        }
        Some(Process {
            ns_per_op: ns * f64::from(threads) / ops,
            mops_per_s: ops / ns * 1e3,
            cpu_ns_per_op: (cpu_ns > 0.0).then_some(cpu_ns / ops),
            user_ns_per_op: (user_ns > 0.0).then_some(user_ns / ops),
            kernel_ns_per_op: (cpu_ns > 0.0).then_some(kernel_ns / ops),
            value_cost: measurement.figures.get(VALUE_COST).copied(),
            grown_bytes: measurement
                .heap_peak_bytes()
                .filter(|bytes| *bytes > 0)
                .map(|bytes| bytes as f64),
            purge_share: (purge_ns <= wall_ns && !took_turns).then_some(purge_ns / wall_ns),
        })
    }

    /// `ns_per_op` without the purge's time.
    pub fn ns_per_op_without_purge(&self) -> Option<f64> {
        Some(self.ns_per_op * (1.0 - self.purge_share?))
    }
}
