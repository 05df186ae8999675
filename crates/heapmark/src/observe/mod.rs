//! What heapmark observes of the machine and of processes before, during and after a run.

pub mod cgroup;
pub mod counters;
pub mod interference;
pub mod machine;
pub mod maps;
pub mod mean_heap;
pub mod memory_profile;
pub mod memory_sampler;
mod pace;
pub mod preflight;
pub mod root;
pub mod series;
pub mod tree;

use anyhow::Result;
use heapmark_wire::Page;
use mean_heap::MeanHeap;
use memory_profile::MemoryProfile;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::time::Duration;

/// A sampler of a process's memory while it runs.
pub trait Watcher {
    /// The word for it in the guest's job.
    fn word(&self) -> String;
    /// Whether it samples the process from outside.
    fn looks(&self) -> bool;
    /// Takes a sample; returns the wait until the next one.
    fn look(&mut self, pid: i32, page: &Page) -> Duration;
    /// The profile of the workload, given how much was resident before, without the harness's
    /// tables.
    fn profile(&self, _before_bytes: u64) -> Option<MemoryProfile> {
        None
    }
    /// The mean resident heap in the measured iterations, given how much was resident before and
    /// how long each took.
    fn mean_heap(&self, _before_bytes: u64, _iteration_ns: u64) -> Option<MeanHeap> {
        None
    }
    /// All samples as a table, once the process has ended; `None` if there are none.
    fn csv(self: Box<Self>) -> Result<Option<String>>;
}

/// The guest's clock.
fn now_ns() -> u64 {
    clock_ns(ClockId::Monotonic)
}

/// CPU time of this thread.
fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::ThreadCPUTime)
}

/// Reads a kernel file that is kept open again: opening it costs as much as reading.
fn reread<'t>(file: &mut File, text: &'t mut String) -> std::io::Result<&'t str> {
    text.clear();
    file.seek(SeekFrom::Start(0))?;
    file.read_to_string(text)?;
    Ok(text)
}

fn clock_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
