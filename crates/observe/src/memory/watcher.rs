//! The interface of samplers that watch a process while it runs.

use super::{MeanHeap, MemoryProfile};
use anyhow::Result;
use heapmark_wire::Page;
use std::time::Duration;

/// A sampler of a process's memory while it runs.
pub trait Watcher {
    /// The watcher's word in the guest's job.
    fn word(&self) -> String;
    /// Whether the watcher samples the process from outside.
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
