//! Processes in which nothing is timed, side by side while there are idle CPUs.

use super::Progress;
use super::run::Session;
use super::runner::{Due, Ending};
use crate::execute::Outcome;
use crate::observe::machine::usable_cpus;
use crate::store::{Purpose, Record};
use anyhow::Result;
use std::collections::BTreeMap;

/// Another allocator may need this many times the memory of the baseline.
const MEMORY: u64 = 3;

/// Returns how many processes may run at a time, if each needs this many CPUs and this much of the memory that is left;
/// 1 if it is not known how much is left.
pub fn lanes(cpus: u32, bytes: u64, memory_left: Option<u64>) -> usize {
    let by_cpus = usable_cpus() / cpus;
    let by_memory = memory_left.map_or(1, |left| left / bytes.max(1));
    u64::from(by_cpus).min(by_memory).max(1) as usize
}

impl Session {
    /// Runs all processes that are due, as many at a time as each kind allows.
    pub(super) fn together(&mut self, work: Vec<Due>, progress: &mut dyn Progress) -> Result<()> {
        let mut by_lanes: BTreeMap<usize, Vec<Due>> = BTreeMap::new();
        for due in work {
            by_lanes.entry(self.lanes(&due)).or_default().push(due);
        }
        for (lanes, work) in by_lanes {
            self.side_by_side(lanes, &work, progress)?;
        }
        Ok(())
    }

    /// How many processes like this one may run at a time: each needs its own CPUs and memory.
    fn lanes(&self, due: &Due) -> usize {
        let plan = &self.selection.plan;
        let case = self.case(&due.cell);
        let may_share = match due.purpose {
            Purpose::Memory => self.runs_kernel(&due.cell) && case.may_share_the_machine(),
            _ => due.place.is_some(),
        };
        let peak = self
            .known
            .get(&plan.check_of_baseline(due.cell.case).id)
            .and_then(Record::peak_rss_bytes);
        match peak {
            Some(peak) if may_share => lanes(case.busy_cpus(), peak * MEMORY, self.memory_bytes),
            _ => 1,
        }
    }

    /// Runs processes of kernels, this many at a time. Each is stored as soon as it has ended.
    pub(super) fn side_by_side(
        &mut self,
        lanes: usize,
        work: &[Due],
        progress: &mut dyn Progress,
    ) -> Result<()> {
        if lanes == 1 {
            for due in work {
                progress.begin(&due.cell.id);
                self.once(due, progress)?;
                progress.step(true);
            }
            return Ok(());
        }
        let runner = self.runner.clone();
        let mut again = Vec::new();
        let mut ended = |(index, started, observed): Ending| {
            // The process runs again by itself: another process may have caused the lack of memory.
            if matches!(
                observed.attempt.outcome,
                Outcome::Oom { .. } | Outcome::Unsupported { .. }
            ) {
                again.push(index);
                return Ok(());
            }
            self.ended(&work[index], started, observed, progress)?;
            progress.step(true);
            Ok(())
        };
        runner.side_by_side(lanes, work, &mut ended)?;
        for index in again {
            self.once(&work[index], progress)?;
            progress.step(true);
        }
        Ok(())
    }
}
