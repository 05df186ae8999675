//! How far a run has come, for code that shows it.

use crate::analyse::Standing;
use crate::plan::Plan;
use crate::store::{Record, RunFile};
use heapmark_stats::Next;

/// A receiver of the events of a run.
pub trait Progress {
    /// Reports that a process begins.
    fn begin(&self, what: &str);
    /// Reports that a planned process has ended (`run`), or that it was left out or is known from
    /// an earlier session.
    fn step(&mut self, run: bool);
    /// Adds processes that were not planned.
    fn more(&mut self, processes: usize);
    /// Shows a line that stays.
    fn say(&self, line: &str);
    /// Reports that the blocks of this plan follow.
    fn plan(&mut self, plan: &Plan);
    /// Reports that a part of this block is over, with the records stored so far and the seconds of the budget that
    /// are used.
    fn part(&mut self, _block: u32, _head: &RunFile, _records: &[Record], _used_s: f64) {}
    /// Reports that a block is over: where each comparison stands, the seconds of the budget that are used, and
    /// what comes next.
    fn block(&mut self, block: u32, standings: &[Standing], used_s: f64, next: Next);
    /// Reports that the first block after which there are intervals is over and others follow, with
    /// what is stored so far.
    fn provisional(&mut self, _done: u32, _head: &RunFile, _records: &[Record]) {}
}
