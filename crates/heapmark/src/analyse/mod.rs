//! Records -> Tables. Pure: no process, no clock, no file. `stats` inside knows nothing of allocators.
//!
//! A row, an allocator in a case, has numbers only if every process of it ended `ok`. That is decided in one place, `group`;
//! all that follows sees a failed row as a row without processes.

pub mod contest;
mod entrant;
pub mod failure;
mod group;
pub mod memory;
pub mod process;
pub mod ratio;
pub mod row;
pub mod stats;
pub mod verdict;
pub mod whole;

#[cfg(test)]
pub(crate) mod artificial;
#[cfg(test)]
mod tests;

pub use contest::{Contest, Doubt};
pub use failure::{Failed, Failure};
pub use memory::{Memory, MemoryMeasure, MemoryRatio};
pub use ratio::Ratio;
pub use row::{Numbers, Purge, Role, Row, Spread, State};
pub use verdict::{LeftOut, Standing, Verdict};
pub use whole::Whole;

use crate::plan::Case as PlannedCase;
use crate::store::{Record, RunFile};
use group::Group;
use serde::Serialize;

pub use group::latest;

/// All that is derived from a run.
#[derive(Clone, Debug, Serialize)]
pub struct Analysis {
    /// Name of the allocator that the others are compared with.
    pub baseline: String,
    /// Blocks that the run asked for.
    pub planned_blocks: u32,
    /// One table per workload and thread count, in plan order.
    pub cases: Vec<Case>,
    /// Every process that did not end `ok`, whatever it was run for.
    pub failures: Vec<Failure>,
    /// Checks and samples of a case or an allocator that the plan does not name; they enter nothing.
    pub strays: usize,
    /// Which one?
    pub verdict: Verdict,
    /// Allocators that the verdict cannot speak about.
    pub left_out: Vec<LeftOut>,
}

/// One table: a workload at a thread count.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// Workload name.
    pub workload: String,
    /// The row that the others are compared with.
    pub baseline: String,
    /// Worker threads.
    pub threads: u32,
    /// More threads than usable CPUs.
    pub oversubscribed: bool,
    /// Whether the times include the purge.
    pub counts_purge: bool,
    /// Whether the rows are whole processes.
    pub whole_process: bool,
    /// What nobody should read the table without.
    pub caution: Option<String>,
    /// One per allocator of the run, in plan order, and one per program.
    pub rows: Vec<Row>,
}

/// Derives everything from the records of a run. Of records with the same cell name the last one counts.
pub fn analyse(run: &RunFile, records: &[Record]) -> Analysis {
    let records = latest(records);
    let grid: Vec<Vec<Group>> = run
        .plan
        .cases
        .iter()
        .map(|case| run.entrants(case).map(|entrant| Group::new(case, entrant, &records)).collect())
        .collect();
    let cases: Vec<Case> = run.plan.cases.iter().zip(&grid).map(|(case, groups)| table(run, case, groups)).collect();
    let (verdict, left_out) = verdict::judge(run, &cases, &grid);
    Analysis {
        baseline: run.plan.baseline.clone(),
        planned_blocks: run.plan.blocks,
        failures: failure::collect(&records),
        strays: group::strays(run, &records),
        cases,
        verdict,
        left_out,
    }
}

fn table(run: &RunFile, case: &PlannedCase, groups: &[Group]) -> Case {
    let name = case.baseline(&run.plan.baseline);
    let baseline = groups.iter().find(|group| group.allocator.name == name);
    let floor_ns = groups
        .iter()
        .filter(|group| row::is_floor(group.allocator))
        .filter_map(|group| group.median_ns_per_op())
        .min_by(f64::total_cmp);
    Case {
        workload: case.workload.clone(),
        baseline: name.to_string(),
        threads: case.threads,
        oversubscribed: case.oversubscribed,
        counts_purge: case.counts_purge,
        whole_process: case.whole_process,
        caution: case.caution.clone(),
        rows: groups.iter().map(|group| Row::new(group, baseline, floor_ns)).collect(),
    }
}
