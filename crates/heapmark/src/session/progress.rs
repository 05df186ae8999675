//! How far a run is, for those that show it.

use crate::plan::Plan;
use crate::store::{Record, RunFile};
use heapmark_stats::Next;

/// Gets to know what happens in a run.
pub trait Progress {
    /// A process begins.
    fn begin(&self, what: &str);
    /// A planned process has ended (`run`), or it was left out or is known from an earlier session.
    fn step(&mut self, run: bool);
    /// Processes that were not planned are added.
    fn more(&mut self, processes: usize);
    /// A line that stays.
    fn say(&self, line: &str);
    /// A block is over, with the half width of the interval of each row, and what comes next.
    fn block(&mut self, block: u32, plan: &Plan, widths: &[(String, Option<f64>)], next: Next);
    /// The first block after which there are intervals is over, others follow: what is stored so far.
    fn provisional(&mut self, _done: u32, _head: &RunFile, _records: &[Record]) {}
}
