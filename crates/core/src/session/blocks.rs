//! The blocks: runs each part of each block, repeats disturbed parts, and stops when there are
//! enough blocks.

use super::calibrate::{Pace, without_capacity};
use super::runner::Due;
use super::{Progress, Session};
use crate::analyse::interference::disturbed_by;
use crate::analyse::standings;
use crate::execute::Job;
use crate::plan::{Cell, Part};
use crate::store::{Purpose, Record, RunFile, seconds_of_processes};
use anyhow::Result;
use heapmark_stats::{Next, Shift, Stopping};
use std::time::{Duration, Instant};

impl Session {
    pub(super) fn blocks(
        &mut self,
        head: &RunFile,
        paces: &[Pace],
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let mut left_over = Vec::new();
        let mut had_intervals = false;
        progress.plan(&self.plan);
        if self.plan.budget_of_suite {
            self.began = Instant::now();
            self.before_s = self.processes_s();
        }
        for block in 0..self.plan.most_blocks() {
            let began_s = self.used_s();
            let mut disturbed = Vec::new();
            let parts = self.plan.block(block);
            if self.plan.mode.spec().follows_memory {
                self.followed(parts.concat(), paces, progress)?;
            } else {
                self.runner.place_anew();
                for parts in parts.chunk_by(|one, next| one[0].case == next[0].case) {
                    if self.takes_turns(&parts[0]) {
                        self.duets(block, parts, head, paces, progress)?;
                        continue;
                    }
                    for part in parts {
                        let part = self.whole(part.clone());
                        let quiet = self.part(&part, paces, progress)?;
                        disturbed.extend((!quiet).then_some(part));
                        progress.part(block, head, self.known.all(), self.used_s());
                    }
                }
            }
            left_over.extend(self.repeat(disturbed, paces, progress)?);
            let standings = standings(head, self.known.all());
            let compared = standings.iter().filter(|standing| !standing.is_copy);
            let shifts: Vec<Option<Shift>> = compared.map(|standing| standing.shift).collect();
            let blocks = block as usize + 1;
            let took_s = self.block_s(block).max(self.used_s() - began_s);
            // A block that an earlier session has begun is completed.
            let has_next = self.block_s(block + 1) > 0.0;
            let is_late = !has_next && self.over_budget(took_s);
            let may_end = !self.plan.budget_of_suite || block + 1 >= self.plan.blocks;
            let next = self.stopping().after(blocks, &shifts, is_late && may_end);
            progress.block(block, &standings, self.used_s(), next);
            if next != Next::GoOn {
                break;
            }
            if !had_intervals
                && shifts
                    .iter()
                    .flatten()
                    .any(|shift| shift.interval.is_some())
            {
                had_intervals = true;
                progress.provisional(block + 1, head, self.known.all());
            }
        }
        // What disturbed these parts before may be over now.
        self.repeat(left_over, paces, progress)?;
        Ok(())
    }

    /// Returns the part, or its next attempt if an earlier session was interrupted in the middle of
    /// it: processes that are compared must run close together in time.
    pub(super) fn whole(&self, mut part: Part) -> Part {
        while self.is_torn(&part) {
            part = self.plan.again(&part);
        }
        part
    }

    fn is_torn(&self, part: &[Cell]) -> bool {
        // A side that fails ends its duet: the other one has no record, and never will.
        let failed = |cell: &Cell| {
            self.known
                .get(&cell.id)
                .is_some_and(|record| !record.outcome.is_ok())
        };
        if self.due_turn(part).is_some() && part.iter().any(failed) {
            return false;
        }
        part.iter().any(|cell| self.known.has(&cell.id))
            && part.iter().any(|cell| self.is_due(cell))
    }

    /// Whether a process is neither stored nor one of a row that has failed too often.
    pub(super) fn is_due(&self, cell: &Cell) -> bool {
        !self.known.has(&cell.id) && !self.failures.are_enough(self.case(cell), cell)
    }

    /// Repeats disturbed parts, in total at most as many as were planned; returns the attempts that
    /// were disturbed again.
    fn repeat(
        &mut self,
        parts: Vec<Part>,
        paces: &[Pace],
        progress: &mut dyn Progress,
    ) -> Result<Vec<Part>> {
        let plan = self.plan.clone();
        let planned = plan.blocks as usize * plan.block(0).len();
        let mut still = Vec::new();
        for part in parts {
            if !plan.repeats || self.repeats >= planned || self.over_budget(0.0) {
                break;
            }
            self.repeats += 1;
            let again = self.whole(plan.again(&part));
            progress.more(again.len());
            let quiet = self.part(&again, paces, progress)?;
            still.extend((!quiet).then_some(again));
        }
        Ok(still)
    }

    /// Runs one part: the baseline and a few others, one after the other. Returns whether nothing
    /// disturbed them.
    pub(super) fn part(
        &mut self,
        part: &[Cell],
        paces: &[Pace],
        progress: &mut dyn Progress,
    ) -> Result<bool> {
        for cell in part {
            progress.begin(&cell.id);
            let run = self.is_due(cell);
            if run {
                let pace = &paces[cell.case];
                let due = self.measured(cell, pace.iterations, pace.timeout)?;
                self.once(&due, progress)?;
            }
            progress.step(run);
        }
        let mut found = part
            .iter()
            .filter_map(|cell| self.known.get(&cell.id)?.interference.as_ref());
        Ok(found.all(|one| disturbed_by(one).is_empty()))
    }

    /// Runs processes whose memory is followed. Nothing is timed, so they may run side by side.
    pub(super) fn followed(
        &mut self,
        cells: Vec<Cell>,
        paces: &[Pace],
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let mut work = Vec::new();
        for cell in cells {
            if !self.is_due(&cell) {
                progress.step(false);
                continue;
            }
            let pace = &paces[cell.case];
            work.push(self.measured(&cell, pace.iterations, pace.timeout)?);
        }
        self.together(work, progress)
    }

    fn stopping(&self) -> Stopping {
        let plan = &self.plan;
        Stopping {
            least: plan.blocks as usize,
            most: plan.most_blocks() as usize,
            precision: plan.precision.unwrap_or(0.0),
            far_precision: plan.far_precision.unwrap_or(0.0),
        }
    }

    /// Whether something that takes this long would end after the budget is used up.
    fn over_budget(&self, seconds: f64) -> bool {
        let budget_s = self.plan.budget_s;
        budget_s.is_some_and(|budget_s| self.used_s() + seconds >= budget_s)
    }

    /// Returns how many seconds of the budget are used up: for the earlier sessions of an interrupted run, the time
    /// of their processes, so that the run ends about when it would have ended without the interruption; for this
    /// session, all of its time.
    pub(super) fn used_s(&self) -> f64 {
        let here_s = self.before_s + self.began.elapsed().as_secs_f64();
        self.processes_s().max(here_s)
    }

    /// Returns how many seconds the stored processes of a block took.
    fn block_s(&self, block: u32) -> f64 {
        let purpose = self.plan.mode.spec().purpose;
        let is_of_block = |record: &&Record| record.purpose == purpose && record.block == block;
        seconds_of_processes(self.known.all().iter().filter(is_of_block))
    }

    /// Returns how many seconds the processes took that count towards the budget.
    fn processes_s(&self) -> f64 {
        let of_suite = self.plan.budget_of_suite;
        let all = self.known.all().iter();
        seconds_of_processes(all.filter(|record| !of_suite || record.purpose == Purpose::Sample))
    }

    /// Returns the process that is due for a cell of a block.
    pub(super) fn measured(&self, cell: &Cell, iterations: u32, timeout: Duration) -> Result<Due> {
        let case = self.case(cell);
        let mode = self.plan.mode_of(case);
        let spec = mode.spec();
        let cold = if spec.warms_up { case.cold } else { 0 };
        let iterations = iterations.min(spec.most_iterations);
        let job = self.under_factor(cell, Job::new(case, cell, cold, iterations, false)?);
        let mut job = if spec.plain {
            self.at_capacity(cell, job)
        } else {
            without_capacity(job)
        };
        job.mode = mode;
        job.idles = !case.beside;
        Ok(Due {
            purpose: spec.purpose,
            cell: cell.clone(),
            job,
            timeout,
            place: None,
        })
    }
}
