//! The list of kernels: one file each, named as in `workloads/*.toml`. A kernel knows neither its
//! allocator, nor how often it runs, nor which program reads its numbers.

mod churn;
mod cross_vector;
mod false_sharing;
mod larson;
mod memory;
mod replay;
mod same_thread;
mod scatter_loops;
mod speed;
mod touch;
mod zalloc;

use crate::bench::Bench;

/// A workload's code.
pub struct Kernel {
    /// Its name in workload files.
    pub name: &'static str,
    /// The functions of the malloc family that it calls. An allocator that leaves one of them to
    /// libc cannot run it.
    pub calls: &'static [&'static str],
    /// Its parameters, all of which a job must carry.
    pub parameters: &'static [&'static str],
    /// Runs all rounds of a job.
    pub run: fn(&mut Bench),
}

/// All kernels.
pub const ALL: &[Kernel] = &[
    same_thread::KERNEL,
    cross_vector::KERNEL,
    larson::KERNEL,
    scatter_loops::CURRENT,
    scatter_loops::LEGACY,
    zalloc::KERNEL,
    churn::KERNEL,
    false_sharing::THRASH,
    false_sharing::SCRATCH,
    speed::KERNEL,
    memory::KERNEL,
    replay::KERNEL,
];

/// The kernel of this name.
pub fn find(name: &str) -> Option<&'static Kernel> {
    ALL.iter().find(|kernel| kernel.name == name)
}
