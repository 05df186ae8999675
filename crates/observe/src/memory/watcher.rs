//! The interface of samplers that watch a process while it runs.

use super::{MeanHeap, MemoryProfile};
use anyhow::Result;
use heapmark_wire::Page;
use std::time::Duration;

/// A sampler of a process's memory while it runs.
pub trait Watcher {
    /// Returns the watcher's word in the guest's job.
    fn word(&self) -> String;
    /// Returns whether the watcher samples the process from outside.
    fn looks(&self) -> bool;
    /// Takes a sample; returns the wait until the next one.
    fn look(&mut self, pid: i32, page: &Page) -> Duration;
    /// Returns the profile of the workload, given how much was resident before, without the
    /// harness's tables.
    fn profile(&self, _before_bytes: u64) -> Option<MemoryProfile> {
        None
    }
    /// Returns the mean resident heap in the measured iterations, given how much was resident
    /// before and how long each took.
    fn mean_heap(&self, _before_bytes: u64, _iteration_ns: u64) -> Option<MeanHeap> {
        None
    }
    /// Returns all samples as a table, once the process has ended; `None` if there are none.
    fn csv(self: Box<Self>) -> Result<Option<String>>;
}
