//! What the run loop needs of the world: processes, and what is seen of them.

use super::passed::Shelf;
use crate::execute::{Attempt, Corner, Job, Subject};
use crate::observe::{Interference, MeanHeap, MemoryProfile};
use crate::plan::{Case, Cell};
use crate::store::{Purpose, Record};
use anyhow::Result;
use std::time::Duration;

/// One process to run.
pub struct Task<'a> {
    /// Why it runs.
    pub purpose: Purpose,
    /// Its case.
    pub case: &'a Case,
    /// Its place in the plan.
    pub cell: &'a Cell,
    /// Its work.
    pub job: &'a Job,
    /// How long it may take.
    pub timeout: Duration,
    /// The largest resident set that any process of its case has had.
    pub largest_bytes: u64,
}

/// The result of a process, and what was seen of it from outside.
pub struct Observed {
    /// The result.
    pub attempt: Attempt,
    /// What else the machine did meanwhile; only of processes of a block.
    pub interference: Option<Interference>,
    /// Its memory, if that is what it ran for.
    pub memory: Option<MemoryProfile>,
    /// What was resident on average, if its memory was sampled often enough.
    pub mean_heap: Option<MeanHeap>,
    /// Its memory over time, as a table.
    pub series: Option<String>,
}

impl From<Attempt> for Observed {
    /// Of a process that was not observed from outside.
    fn from(attempt: Attempt) -> Observed {
        Observed {
            attempt,
            interference: None,
            memory: None,
            mean_heap: None,
            series: None,
        }
    }
}

/// A check that has ended: its index, when it began, its result.
pub type Ending = (usize, String, Attempt);

/// Starts processes. Each method returns `None` if a signal has stopped the run: the process is
/// gone, and nothing was learned.
pub trait Runner {
    /// The guest without any preload.
    fn control(&self) -> Result<Option<Attempt>>;
    /// One kind of call that few workloads make.
    fn corner(&self, subject: &Subject, corner: &str) -> Result<Option<Corner>>;
    /// One process, by itself.
    fn run(&self, task: &Task) -> Result<Option<Observed>>;
    /// Checks of kernels, this many at a time; `ended` gets each as soon as it has ended.
    fn side_by_side(
        &self,
        lanes: usize,
        tasks: &[Task],
        ended: &mut dyn FnMut(Ending) -> Result<()>,
    ) -> Result<Option<()>>;
    /// Where passed checks are kept; `None`: nowhere. The record is the negative control's.
    fn shelf(&self, control: &Record) -> Result<Option<Shelf>>;
}
