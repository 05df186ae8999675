//! How far a run has come, for code that shows it.

use crate::analyse::Standing;
use crate::plan::Plan;
use crate::store::{Record, RunFile};
use heapmark_stats::Next;

/// Is told what happens in a run.
pub trait Progress {
    /// A process begins.
    fn begin(&self, what: &str);
    /// A planned process has ended (`run`), or it was left out or is known from an earlier session.
    fn step(&mut self, run: bool);
    /// Processes that were not planned are added.
    fn more(&mut self, processes: usize);
    /// Shows a line that stays.
    fn say(&self, line: &str);
    /// The blocks of this plan follow.
    fn plan(&mut self, plan: &Plan);
    /// A part of this block is over: these records are stored so far, and this many seconds of the budget are used.
    fn part(&mut self, _block: u32, _head: &RunFile, _records: &[Record], _used_s: f64) {}
    /// A block is over: where each comparison stands, the seconds of the budget that are used, and what comes next.
    fn block(&mut self, block: u32, standings: &[Standing], used_s: f64, next: Next);
    /// The first block after which there are intervals is over, others follow: what is stored so far.
    fn provisional(&mut self, _done: u32, _head: &RunFile, _records: &[Record]) {}
}
