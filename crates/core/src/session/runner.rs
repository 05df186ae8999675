//! What the run loop needs from outside: processes, and what is observed of them.

use super::passed::Shelf;
use crate::execute::{Attempt, Corner, Job, Subject};
use crate::observe::{Demand, Interference, MeanHeap, MemoryProfile};
use crate::plan::{Cell, Turn};
use crate::store::{Purpose, Record};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// A process that must run unless it is stored.
pub struct Due {
    /// Why the process runs.
    pub purpose: Purpose,
    /// The cell of the plan that the process belongs to.
    pub cell: Cell,
    /// The work that the process does.
    pub job: Job,
    /// How long the process may take.
    pub timeout: Duration,
    /// Where the result of a check is kept if it passes.
    pub place: Option<PathBuf>,
}

/// The result of a process, and what was seen of it from outside.
pub struct Observed {
    /// The result of the process.
    pub attempt: Attempt,
    /// What else the machine did meanwhile; only for processes of a block.
    pub interference: Option<Interference>,
    /// The process's memory, if the process ran to measure it.
    pub memory: Option<MemoryProfile>,
    /// What was resident on average, if the process's memory was sampled often enough.
    pub mean_heap: Option<MeanHeap>,
    /// The process's memory over time, as a table.
    pub series: Option<String>,
    /// How much the process took of the kind of memory that is to be limited, if the process ran to measure that.
    pub demand: Option<Demand>,
}

impl From<Attempt> for Observed {
    /// The result of a process that was not observed from outside.
    fn from(attempt: Attempt) -> Observed {
        Observed {
            attempt,
            interference: None,
            memory: None,
            mean_heap: None,
            series: None,
            demand: None,
        }
    }
}

/// A process that has ended beside others: its index, when it began, what was seen of it.
pub type Ending = (usize, String, Observed);

/// Two streams of processes that are to take turns.
pub struct DueDuet {
    /// How the two sides take turns.
    pub turn: Turn,
    /// The processes that the two streams repeat.
    pub sides: [Due; 2],
    /// The largest resident set that a process of the case has had.
    pub largest_bytes: u64,
}

/// A side of a duet that has ended: when it began, what was seen of it.
pub type SideEnded = (String, Observed);

/// A duet that has ended: its index, and its sides; `None` for a side that did nothing before the other failed.
pub type DuetEnding = (usize, [Option<SideEnded>; 2]);

/// Starts processes. Each method fails with [`crate::execute::Interrupted`] if a signal has stopped
/// the run.
pub trait Runner {
    /// Runs the guest without any preload.
    fn control(&self) -> Result<Attempt>;
    /// Tests one kind of call that few workloads make.
    fn corner(&self, subject: &Subject, corner: &str) -> Result<Corner>;
    /// Makes free memory present in the machine, before the first block.
    fn make_present(&self, bytes: u64);
    /// Moves the pages of the compared libraries and programs to other places in memory, before a block.
    fn place_anew(&self);
    /// Runs one process by itself. No process of its case has had a larger resident set than `largest_bytes`.
    fn run(&self, due: &Due, largest_bytes: u64) -> Result<Observed>;
    /// Runs duets, this many at a time; `ended` gets each as soon as it has ended.
    fn duets(
        &self,
        lanes: usize,
        work: &[DueDuet],
        ended: &mut dyn FnMut(DuetEnding) -> Result<()>,
    ) -> Result<()>;
    /// Runs processes of kernels in which nothing is timed, this many at a time; `ended` gets each as soon as it has
    /// ended.
    fn side_by_side(
        &self,
        lanes: usize,
        work: &[Due],
        ended: &mut dyn FnMut(Ending) -> Result<()>,
    ) -> Result<()>;
    /// Returns where passed checks are kept; `None` if nowhere. `control` is the record of the
    /// negative control.
    fn shelf(&self, control: &Record) -> Result<Option<Shelf>>;
}
