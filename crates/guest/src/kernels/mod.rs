//! The list of kernels: one file each, named as in `workloads/*.toml`. A kernel depends neither on its allocator, nor
//! on how often it runs, nor on which program reads its numbers.

mod aligned;
mod aligned_churn;
mod batch_order;
mod calloc;
mod chain;
mod churn;
mod cross_vector;
mod false_sharing;
mod fan_in;
mod fork_cow;
mod glibc_thread;
mod grow;
mod handover;
mod hot_ring;
mod idle_return;
mod ladder;
mod laps;
mod larson;
pub(crate) mod late_free;
mod medium;
mod memory;
mod open_loop;
mod pair_edge;
mod pin;
mod ratchet;
mod relay;
mod replaced;
mod replay;
mod robson;
mod same_thread;
mod scatter_loops;
mod shape;
mod shift;
mod sized;
mod speed;
pub(crate) mod start;
mod steady;
mod stranded;
mod thread_churn;
mod touch;
mod traverse;
mod zalloc;

// Items that most kernels need and import with `use super::*`.
use crate::api::Api;
use crate::bench::{Bench, KernelWork};
use crate::clock::now_ns;
use crate::measured::{Moment, Span};
use crate::memory::{HarnessTable, InTurn, Padded};
use crate::null;
use crate::report;
use crate::retained;
use crate::rng::SplitMix;
use crate::sizes::sum;
use crate::sys;
use crate::threads::{Rendezvous, Semaphore};
use crate::timed_phases::Load;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use laps::{LapPlan, Works};
use shape::{Blocks, Shape, ShapeThread, StampedBlock, freed_again};

/// Where the memory figures of a kernel come from in a process that measures memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPoints {
    /// The host samples the process while every call is watched; afterwards the process idles.
    Sampled,
    /// The kernel takes points at moments that its definition names, and counts the live bytes itself. The kernel's
    /// calls go straight to the allocator.
    Own,
    /// Like [`MemoryPoints::Own`], but the kernel only runs in processes that measure memory, and the times of its
    /// rounds mean nothing.
    OwnOnly,
    /// Like [`MemoryPoints::Own`], but the figures include times, so no other process runs meanwhile.
    OwnAlone,
    /// Like [`MemoryPoints::OwnOnly`], and no other process runs meanwhile.
    OwnOnlyAlone,
}

impl MemoryPoints {
    /// Returns whether the kernel only runs in processes that measure memory.
    pub fn only(self) -> bool {
        matches!(self, MemoryPoints::OwnOnly | MemoryPoints::OwnOnlyAlone)
    }

    /// Returns whether another process may run on another CPU while the kernel's memory is measured.
    pub fn may_share_the_machine(self) -> bool {
        matches!(self, MemoryPoints::Own | MemoryPoints::OwnOnly)
    }
}

/// A workload's code.
pub struct Kernel {
    /// The kernel's name in workload files.
    pub name: &'static str,
    /// The functions of the malloc family that the kernel calls. The kernel cannot run under an allocator that leaves
    /// one of them to libc.
    pub calls: &'static [&'static str],
    /// The kernel's parameters, all of which a job must specify.
    pub parameters: &'static [&'static str],
    /// Where the kernel's memory figures come from.
    pub memory: MemoryPoints,
    /// Whether the null allocator, whose blocks overlap, can serve as the kernel's floor.
    pub has_floor: bool,
    /// Runs all rounds of a job.
    pub run: fn(&mut Bench),
}

impl Kernel {
    /// Makes a kernel that is timed and only calls malloc and free. Other kernels override what differs.
    const fn timed(
        name: &'static str,
        parameters: &'static [&'static str],
        run: fn(&mut Bench),
    ) -> Kernel {
        Kernel {
            name,
            calls: &["malloc", "free"],
            parameters,
            memory: MemoryPoints::Sampled,
            has_floor: true,
            run,
        }
    }

    /// Does the same as [`Kernel::timed`], for a kernel whose result is its memory at points of its own. The kernel
    /// reads the contents of its blocks, so it has no floor.
    const fn of_memory(
        name: &'static str,
        parameters: &'static [&'static str],
        run: fn(&mut Bench),
    ) -> Kernel {
        Kernel {
            memory: MemoryPoints::OwnOnly,
            has_floor: false,
            ..Kernel::timed(name, parameters, run)
        }
    }
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
    robson::KERNEL,
    ladder::KERNEL,
    pin::KERNEL,
    shift::KERNEL,
    stranded::KERNEL,
    ratchet::KERNEL,
    ratchet::TIMED,
    calloc::KERNEL,
    chain::KERNEL,
    idle_return::KERNEL,
    fan_in::KERNEL,
    relay::KERNEL,
    fork_cow::KERNEL,
    thread_churn::KERNEL,
    start::KERNEL,
    late_free::KERNEL,
    traverse::KERNEL,
    open_loop::KERNEL,
    steady::KERNEL,
    pair_edge::KERNEL,
    medium::KERNEL,
    grow::KERNEL,
    aligned::KERNEL,
    aligned_churn::KERNEL,
    sized::KERNEL,
    batch_order::KERNEL,
    glibc_thread::KERNEL,
    hot_ring::KERNEL,
    replay::KERNEL,
];

/// Kernels that report times from clocks of their own. If another process shared the CPU, these times would include its
/// turns.
pub const WITH_OWN_CLOCKS: [&str; 13] = [
    "batch-order",
    "fork-cow",
    "idle-return",
    "late-free",
    "open-loop",
    "ratchet-timed",
    "scatter-loops",
    "scatter-loops-legacy",
    "sized",
    "speed",
    "start",
    "thread-churn",
    "traverse",
];

/// Finds the kernel with this name.
pub fn find(name: &str) -> Option<&'static Kernel> {
    ALL.iter().find(|kernel| kernel.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kernel_with_clocks_of_its_own_exists() {
        for name in WITH_OWN_CLOCKS {
            assert!(find(name).is_some(), "{name}");
        }
    }
}
