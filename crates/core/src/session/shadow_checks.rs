//! The checked processes: each makes as many iterations as a timed process; they run side by side
//! while there are idle CPUs. Checks that an earlier run has passed are not repeated.

use super::Progress;
use super::calibrate::{Pace, without_capacity};
use super::passed::{self, Kept};
use super::run::{CONTROL, Session, now};
use super::runner::Due;
use crate::execute::{Job, Outcome, Subject};
use crate::plan::Cell;
use crate::store::{Purpose, Record};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// A workload with a time limit gets this many times the limit in a check, whose calls take longer.
const LONGER: f64 = 4.0;
/// The parameters that are time limits.
const TIMES: [&str; 2] = ["seconds", "cap-seconds"];

impl Session {
    /// The job of a check, in a case whose timed processes make this many iterations, cold ones
    /// included.
    pub(super) fn checked(&self, cell: &Cell, iterations: u32) -> Result<Job> {
        let case = self.case(cell);
        // The output of a program is checked once.
        let of_kernel = self.runs_kernel(cell);
        let mut job = Job::new(case, cell, 0, if of_kernel { iterations } else { 1 }, true)?;
        for name in TIMES {
            if let Some(value) = job.parameters.get_mut(name).filter(|_| of_kernel)
                && let Ok(seconds) = value.parse::<f64>()
            {
                *value = (seconds * LONGER).to_string();
            }
        }
        Ok(without_capacity(self.under_factor(cell, job)))
    }

    pub(super) fn runs_kernel(&self, cell: &Cell) -> bool {
        let case = self.case(cell);
        case.kernel().is_some() && case.row(&cell.allocator).is_none()
    }

    /// Runs all checks of the plan.
    pub(super) fn checks(&mut self, paces: &[Pace], progress: &mut dyn Progress) -> Result<()> {
        let cells = self.selection.plan.checks();
        // The litter of aged cases is derived from the checks of the other cases.
        let (aged, fresh): (Vec<&Cell>, Vec<&Cell>) = cells
            .iter()
            .partition(|cell| self.case(cell).age().is_some());
        self.checks_of(&fresh, paces, progress)?;
        self.checks_of(&aged, paces, progress)?;
        let known = self.known.all().iter();
        let passed = known
            .filter(|record| record.purpose == Purpose::Check && record.passed.is_some())
            .count();
        if passed > 0 {
            let of = cells.len();
            progress
                .say(&format!("{passed} of {of} checks were passed in earlier runs (--check-again runs them again)"));
        }
        Ok(())
    }

    fn checks_of(
        &mut self,
        cells: &[&Cell],
        paces: &[Pace],
        progress: &mut dyn Progress,
    ) -> Result<()> {
        let mut due = Vec::new();
        for cell in cells {
            let pace = &paces[cell.case];
            let known = self.known.has(&cell.id);
            match self.due(cell, pace.checked, self.check_timeout(cell, pace))? {
                Some(check) => due.push(check),
                None => progress.step(!known),
            }
        }
        // How much memory a case needs is not known before the baseline's check.
        let (first, others): (Vec<Due>, _) = due
            .into_iter()
            .partition(|check| self.is_of_baseline(&check.cell));
        self.side_by_side(1, &first, progress)?;
        self.together(others, progress)
    }

    /// A check that must run; `None` if it is stored, if an earlier run has passed it, or if it
    /// cannot run, which is then stored.
    pub(super) fn due(
        &mut self,
        cell: &Cell,
        iterations: u32,
        timeout: Duration,
    ) -> Result<Option<Due>> {
        if self.known.has(&cell.id) {
            return Ok(None);
        }
        if let Some(why) = self.cannot_age(cell) {
            self.cannot_run(Purpose::Check, cell, why)?;
            return Ok(None);
        }
        let mut job = self.checked(cell, iterations)?;
        let place = self.place(cell, &job)?;
        let Some(kept) = self.passed_before(&place, iterations) else {
            // The speed of a machine varies, and with it the number of iterations: twice as many
            // are enough for the next run, too.
            if job.iterations > 1 {
                job.iterations = job.iterations.saturating_mul(2);
            }
            return Ok(Some(Due {
                purpose: Purpose::Check,
                cell: cell.clone(),
                job,
                timeout,
                place,
            }));
        };
        let case = self.case(cell);
        let workload = &case.workload;
        let threads = case.threads;
        let record = Record {
            started: now(),
            measurement: kept.measurement,
            passed: Some(Box::new(kept.passed)),
            ..Record::new(Purpose::Check, cell, workload, threads, Outcome::Ok)
        };
        self.keep(record, None)?;
        Ok(None)
    }

    /// The check that an earlier run has kept in this file, unless all checks are to be repeated.
    fn passed_before(&self, place: &Option<PathBuf>, iterations: u32) -> Option<Kept> {
        let place = place.as_deref().filter(|_| !self.check_again)?;
        passed::find(place, iterations)
    }

    /// Where a passed check is kept; `None` for programs, which consist of more files than could be
    /// hashed.
    fn place(&mut self, cell: &Cell, job: &Job) -> Result<Option<PathBuf>> {
        if !self.runs_kernel(cell) {
            return Ok(None);
        }
        let subject = self.selection.subject(&cell.allocator)?.clone();
        self.place_of(&subject, &job.work(&subject))
    }

    /// Where the findings about a library in this work are kept.
    fn place_of(&mut self, subject: &Subject, work: &str) -> Result<Option<PathBuf>> {
        if self.shelf.is_none()
            && let Some(control) = self.known.get(CONTROL)
        {
            self.shelf = self.runner.shelf(control)?;
        }
        let shelf = self.shelf.as_mut().filter(|_| subject.refused.is_none());
        shelf.map(|shelf| shelf.place(subject, work)).transpose()
    }

    /// Tests once, for each allocator, the functions that few workloads call, unless all its checks
    /// have failed.
    pub(super) fn corners(&mut self, progress: &dyn Progress) -> Result<()> {
        for (cell, corner) in self.selection.plan.corners() {
            let checked = self.known.all().iter().any(|record| {
                record.purpose == Purpose::Check
                    && record.allocator == cell.allocator
                    && record.outcome.is_ok()
            });
            if !checked || self.known.has(&cell.id) {
                continue;
            }
            progress.begin(&cell.id);
            let subject = self.selection.subject(&cell.allocator)?.clone();
            let place = self.place_of(&subject, &format!("corner {corner}"))?;
            let mut record = Record::new(Purpose::Corners, &cell, "", 0, Outcome::Ok);
            record.started = now();
            if let Some(kept) = self.passed_before(&place, 0) {
                record.findings = kept.findings.into();
                record.passed = Some(Box::new(kept.passed));
            } else {
                let corner = self.runner.corner(&subject, corner)?;
                record.findings = corner.findings.into();
                record.environment = corner.environment.into();
                if let Some(place) = &place {
                    let kept = corner.is_certain.then(|| Kept::of(&record, 0));
                    passed::keep(place, kept.as_ref())?;
                }
            }
            self.keep(record, None)?;
        }
        Ok(())
    }

    fn is_of_baseline(&self, cell: &Cell) -> bool {
        cell.allocator == self.case(cell).baseline(&self.selection.plan.baseline)
    }

    /// Keeps a passed check for later runs; if the check failed, removes the stored one.
    pub(super) fn shelve(&self, check: &Due) -> Result<()> {
        let (Some(place), Some(record)) = (&check.place, self.known.get(&check.cell.id)) else {
            return Ok(());
        };
        let kept = record
            .outcome
            .is_ok()
            .then(|| Kept::of(record, check.job.iterations));
        passed::keep(place, kept.as_ref())
    }
}
