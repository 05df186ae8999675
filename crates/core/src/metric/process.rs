//! The figures of one process, from its measured iterations. The raw counters stay in
//! [`Measurement`]; these are quotients of their sums. Must not compare processes.

use crate::execute::user_command::VALUE_COST;
use crate::execute::{Iteration, Measurement};

/// A process that can be divided: sums over its measured iterations, without the cold ones, and their quotients. A run of a
/// million samples holds a million of them.
#[derive(Clone, Copy, Debug)]
pub struct Process<'a> {
    /// What the process measured about itself.
    pub measurement: &'a Measurement,
    threads: f64,
    ops: f64,
    /// Wall time; CPU time in a process that took turns, because its wall time includes the turns of the other process.
    ns: f64,
    user_ns: f64,
    kernel_ns: f64,
    purge_ns: f64,
}

impl Process<'_> {
    /// Adds up the iterations; `None` if there is nothing to divide: no measured iteration, no operation, no time or no thread.
    pub fn new(measurement: &Measurement, threads: u32) -> Option<Process<'_>> {
        let sum = |of: fn(&Iteration) -> f64| measurement.measured().map(of).sum::<f64>();
        let ops = sum(|iteration| iteration.ops as f64);
        let user_ns = sum(|iteration| iteration.user_ns as f64);
        let kernel_ns = sum(|iteration| iteration.sys_ns as f64);
        let ns = match measurement.turns {
            Some(_) => user_ns + kernel_ns,
            None => sum(|iteration| iteration.wall_ns as f64),
        };
        (ops > 0.0 && ns > 0.0 && threads > 0).then(|| Process {
            measurement,
            threads: f64::from(threads),
            ops,
            ns,
            user_ns,
            kernel_ns,
            purge_ns: sum(|iteration| iteration.purge_ns as f64),
        })
    }

    /// Wall time x threads / operations: what one thread spends on one operation. CPU time in a process that took turns
    /// with another one.
    pub fn ns_per_op(&self) -> f64 {
        self.ns * self.threads / self.ops
    }

    /// Operations of all threads per microsecond of the time that `ns_per_op` is computed from.
    pub fn mops_per_s(&self) -> f64 {
        self.ops / self.ns * 1e3
    }

    /// CPU time / operations; `None` if the kernel's clock counted none.
    pub fn cpu_ns_per_op(&self) -> Option<f64> {
        let cpu_ns = self.user_ns + self.kernel_ns;
        (cpu_ns > 0.0).then_some(cpu_ns / self.ops)
    }

    /// User time / operations: the program's part of the CPU time.
    pub fn user_ns_per_op(&self) -> Option<f64> {
        (self.user_ns > 0.0).then_some(self.user_ns / self.ops)
    }

    /// Kernel time / operations: the kernel's part of the CPU time.
    pub fn kernel_ns_per_op(&self) -> Option<f64> {
        let cpu_ns = self.user_ns + self.kernel_ns;
        (cpu_ns > 0.0).then_some(self.kernel_ns / self.ops)
    }

    /// The number that the program reports about itself, if it is judged by such a number, in the direction in which less
    /// is better.
    pub fn value_cost(&self) -> Option<f64> {
        self.measurement.figures.get(VALUE_COST).copied()
    }

    /// The allocator's memory at the peak of the resident set; `None` if that is zero or not known.
    pub fn grown_bytes(&self) -> Option<f64> {
        let bytes = self.measurement.heap_peak_bytes()?;
        (bytes > 0).then_some(bytes as f64)
    }

    /// The purge's part of the wall time, 0 to 1; `None` if it exceeds the wall time, or if the process took turns with another.
    pub fn purge_share(&self) -> Option<f64> {
        let took_turns = self.measurement.turns.is_some();
        (self.purge_ns <= self.ns && !took_turns).then_some(self.purge_ns / self.ns)
    }

    /// `ns_per_op` without the purge's time.
    pub fn ns_per_op_without_purge(&self) -> Option<f64> {
        Some(self.ns_per_op() * (1.0 - self.purge_share()?))
    }
}
