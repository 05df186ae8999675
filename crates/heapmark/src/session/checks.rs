//! The checked processes: each makes as many iterations as a timed process; they run side by side
//! while there are idle CPUs. Checks that an earlier run has passed are not repeated.

use super::calibrate::Pace;
use super::passed::{self, Kept};
use super::run::{CONTROL, Interrupted, Session, now, record};
use super::runner::{Ending, Task};
use super::{Progress, Selection};
use crate::execute::{Attempt, Corner, Job, Outcome, Subject};
use crate::observe::machine::usable_cpus;
use crate::plan::Cell;
use crate::store::{Passed, Purpose, Record};
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;

/// A workload with a time limit gets this many times the limit in a check, whose calls take longer.
const LONGER: f64 = 4.0;
/// The parameters that are such limits.
const TIMES: [&str; 2] = ["seconds", "cap-seconds"];
/// Another allocator may need this many times the memory of the baseline.
const MEMORY: u64 = 3;

/// A check that must run.
struct Due {
    cell: Cell,
    job: Job,
    timeout: Duration,
    /// Where its result is kept if it passes.
    place: Option<PathBuf>,
}

impl Due {
    fn task<'a>(&'a self, selection: &'a Selection) -> Task<'a> {
        Task {
            purpose: Purpose::Check,
            case: &selection.plan.cases[self.cell.case],
            cell: &self.cell,
            job: &self.job,
            timeout: self.timeout,
            largest_bytes: 0,
        }
    }
}

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
        Ok(job)
    }

    pub(super) fn runs_kernel(&self, cell: &Cell) -> bool {
        let case = self.case(cell);
        case.kernel().is_some() && case.row(&cell.allocator).is_none()
    }

    /// Runs one check alone, unless it is stored or was passed.
    pub(super) fn check(
        &mut self,
        cell: &Cell,
        iterations: u32,
        timeout: Duration,
        progress: &dyn Progress,
    ) -> Result<()> {
        match self.due(cell, iterations, timeout)? {
            Some(check) => self.alone(&check, progress),
            None => Ok(()),
        }
    }

    /// Runs all checks of the plan.
    pub(super) fn checks(&mut self, paces: &[Pace], progress: &mut dyn Progress) -> Result<()> {
        let cells = self.selection.plan.checks();
        let mut first = Vec::new();
        let mut others = Vec::new();
        for cell in &cells {
            let pace = &paces[cell.case];
            let known = self.known.has(&cell.id);
            let timeout = self.check_timeout(cell, pace);
            match self.due(cell, pace.checked, timeout)? {
                // How much memory a case needs is not known before the baseline's check.
                Some(check) if self.is_of_baseline(cell) => first.push(check),
                Some(check) => others.push(check),
                None => progress.step(!known),
            }
        }
        for check in &first {
            progress.begin(&check.cell.id);
            self.alone(check, progress)?;
            progress.step(true);
        }
        others.sort_by_cached_key(|check| self.lanes(check));
        while !others.is_empty() {
            let lanes = self.lanes(&others[0]);
            let rest = others.split_off(others.partition_point(|check| self.lanes(check) == lanes));
            self.side_by_side(lanes, &others, progress)?;
            others = rest;
        }
        let checks = self
            .known
            .all()
            .iter()
            .filter(|record| record.purpose == Purpose::Check);
        let passed = checks.filter(|record| record.passed.is_some()).count();
        if passed > 0 {
            let of = cells.len();
            progress
                .say(&format!("{passed} of {of} checks were passed in earlier runs (--check-again runs them again)"));
        }
        Ok(())
    }

    /// The check that must run; `None` if it is stored, or if an earlier run has passed it, which
    /// is then stored.
    fn due(&mut self, cell: &Cell, iterations: u32, timeout: Duration) -> Result<Option<Due>> {
        if self.known.has(&cell.id) {
            return Ok(None);
        }
        let job = self.checked(cell, iterations)?;
        let place = self.place(cell, &job)?;
        let known = place
            .as_deref()
            .filter(|_| !self.check_again)
            .and_then(|place| passed::find(place, iterations));
        let Some(Kept {
            passed,
            measurement,
            ..
        }) = known
        else {
            // The speed of a machine varies: with twice as many iterations the next run finds
            // enough of them.
            let iterations = if job.iterations > 1 {
                job.iterations.saturating_mul(2)
            } else {
                job.iterations
            };
            let job = Job { iterations, ..job };
            return Ok(Some(Due {
                cell: cell.clone(),
                job,
                timeout,
                place,
            }));
        };
        let case = self.case(cell);
        let record = Record::new(
            Purpose::Check,
            cell,
            &case.workload,
            case.threads,
            Outcome::Ok,
        );
        self.keep(
            Record {
                started: now(),
                measurement,
                passed: Some(Box::new(passed)),
                ..record
            },
            None,
        )?;
        Ok(None)
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
        if self.shelf.is_none() {
            let control = self.known.get(CONTROL);
            self.shelf = control
                .map(|control| self.runner.shelf(control))
                .transpose()?
                .flatten();
        }
        let shelf = self.shelf.as_mut().filter(|_| subject.refused.is_none());
        shelf.map(|shelf| shelf.place(subject, work)).transpose()
    }

    /// Tests once, for each allocator, the functions that few workloads call, unless all its checks
    /// have failed.
    pub(super) fn corners(&mut self, progress: &dyn Progress) -> Result<()> {
        for (cell, corner) in self.selection.plan.corners() {
            let runs =
                |record: &&Record| record.allocator == cell.allocator && record.outcome.is_ok();
            let checked = self
                .known
                .all()
                .iter()
                .filter(runs)
                .any(|record| record.purpose == Purpose::Check);
            if !checked || self.known.has(&cell.id) {
                continue;
            }
            progress.begin(&cell.id);
            let subject = self.selection.subject(&cell.allocator)?.clone();
            let place = self.place_of(&subject, &format!("corner {corner}"))?;
            let known = place
                .as_deref()
                .filter(|_| !self.check_again)
                .and_then(|place| passed::find(place, 0));
            let started = now();
            let (findings, environment, passed) = match known {
                Some(Kept {
                    findings, passed, ..
                }) => (findings, Default::default(), Some(Box::new(passed))),
                None => {
                    let corner = self.runner.corner(&subject, corner)?;
                    let Corner {
                        findings,
                        environment,
                    } = corner.ok_or(Interrupted)?;
                    let (name, at) = (cell.id.clone(), started.clone());
                    let passed = Passed {
                        cell: name,
                        at,
                        iterations: 0,
                        wall_ns: 0,
                        peak_rss_bytes: 0,
                    };
                    let kept = Kept {
                        passed,
                        measurement: None,
                        findings,
                    };
                    place
                        .iter()
                        .try_for_each(|place| passed::keep(place, Some(&kept)))?;
                    (kept.findings, environment, None)
                }
            };
            let record = Record::new(Purpose::Corners, &cell, "", 0, Outcome::Ok);
            self.keep(
                Record {
                    started,
                    findings,
                    environment,
                    passed,
                    ..record
                },
                None,
            )?;
        }
        Ok(())
    }

    fn is_of_baseline(&self, cell: &Cell) -> bool {
        cell.allocator == self.case(cell).baseline(&self.selection.plan.baseline)
    }

    /// How many such checks may run at a time: each needs its own CPUs and memory.
    fn lanes(&self, check: &Due) -> usize {
        let plan = &self.selection.plan;
        let peak = self
            .known
            .get(&plan.check_of_baseline(check.cell.case).id)
            .and_then(Record::peak_rss_bytes);
        let available = self.memory_bytes;
        match (&check.place, peak, available) {
            (Some(_), Some(peak), Some(available)) => {
                let by_cpus = usable_cpus() / self.case(&check.cell).threads.max(1);
                let by_memory = available / (peak * MEMORY).max(1);
                u64::from(by_cpus).min(by_memory).max(1) as usize
            }
            _ => 1,
        }
    }

    fn alone(&mut self, check: &Due, progress: &dyn Progress) -> Result<()> {
        self.once(
            Purpose::Check,
            &check.cell,
            &check.job,
            check.timeout,
            progress,
        )?;
        self.shelve(check)
    }

    /// Runs checks of kernels, this many at a time. Each is stored as soon as it has ended.
    fn side_by_side(
        &mut self,
        lanes: usize,
        checks: &[Due],
        progress: &mut dyn Progress,
    ) -> Result<()> {
        if lanes == 1 {
            for check in checks {
                progress.begin(&check.cell.id);
                self.alone(check, progress)?;
                progress.step(true);
            }
            return Ok(());
        }
        let selection = self.selection.clone();
        let tasks: Vec<Task<'_>> = checks.iter().map(|check| check.task(&selection)).collect();
        let runner = self.runner.clone();
        let mut again = Vec::new();
        let mut ended = |(index, started, attempt): Ending| {
            // A lack of memory that another check caused is not a fault of this one.
            if matches!(
                attempt.outcome,
                Outcome::Oom { .. } | Outcome::Unsupported { .. }
            ) {
                again.push(index);
                return Ok(());
            }
            self.take_in(&checks[index], started, attempt, progress)
        };
        runner
            .side_by_side(lanes, &tasks, &mut ended)?
            .ok_or(Interrupted)?;
        for index in again {
            self.alone(&checks[index], progress)?;
            progress.step(true);
        }
        Ok(())
    }

    /// Stores a check that has ended.
    fn take_in(
        &mut self,
        check: &Due,
        started: String,
        attempt: Attempt,
        progress: &mut dyn Progress,
    ) -> Result<()> {
        if !attempt.outcome.is_ok() {
            progress.say(&format!("{}: {}", check.cell.id, attempt.outcome));
        }
        let case = self.case(&check.cell);
        let record = record(
            Purpose::Check,
            &check.cell,
            &case.workload,
            case.threads,
            started,
            attempt,
        );
        self.keep(record, None)?;
        self.shelve(check)?;
        progress.step(true);
        Ok(())
    }

    /// Keeps a passed check for later runs, and removes the stored one if it failed.
    fn shelve(&self, check: &Due) -> Result<()> {
        let (Some(place), Some(record)) = (&check.place, self.known.get(&check.cell.id)) else {
            return Ok(());
        };
        let kept =
            record
                .measurement
                .as_ref()
                .zip(record.usage.as_ref())
                .map(|(measurement, usage)| Kept {
                    passed: Passed {
                        cell: record.cell.clone(),
                        at: record.started.clone(),
                        iterations: check.job.iterations,
                        wall_ns: usage.wall_ns,
                        peak_rss_bytes: measurement.peak_rss_bytes,
                    },
                    measurement: Some(measurement.clone()),
                    findings: Vec::new(),
                });
        passed::keep(place, kept.as_ref())
    }
}
