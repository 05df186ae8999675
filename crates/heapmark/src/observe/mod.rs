//! What is known of the machine before, while and after a run goes on.

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

/// Somebody who looks at a process's memory while it runs.
pub trait Watcher {
    /// What the guest is told.
    fn word(&self) -> String;
    /// Whether the process wants to be looked at from outside.
    fn looks(&self) -> bool;
    /// Looks at it, and says how long to wait for the next look.
    fn look(&mut self, pid: i32, page: &Page) -> Duration;
    /// What it saw while the workload ran, given how much was resident before, the harness's tables taken out.
    fn course(&self, _before_bytes: u64) -> Option<MemoryProfile> {
        None
    }
    /// What was resident on average in the measured iterations, given how much was before and how long each took.
    fn mean_heap(&self, _before_bytes: u64, _iteration_ns: u64) -> Option<MeanHeap> {
        None
    }
    /// All that it saw as a table, once the process has ended; `None` where that is nothing.
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

/// A file of the kernel's that is kept open, as it is now: opening it costs as much as reading.
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
