//! How much work a process does and how long it may take, measured with the first process of the
//! baseline.

use super::runner::Due;
use super::{Progress, Session};
use crate::catalog::Iterations;
use crate::execute::{Job, Measurement};
use crate::plan::{CAPACITY, Cell};
use crate::store::{Purpose, Record};
use anyhow::Result;
use std::time::Duration;

/// Measured iterations of a calibration: enough that a single slow one does not decide.
const CALIBRATION_ITERATIONS: u32 = 3;
/// A process may take this many times the baseline's time: slow is a result, not a hang.
const PATIENCE: f64 = 100.0;
/// The timeout is never less than this.
const LEAST_TIMEOUT: Duration = Duration::from_secs(20);
/// The timeout while it is not known how long a process takes.
pub const FIRST_TIMEOUT: Duration = Duration::from_secs(600);

/// The check of a kernel makes more and slower calls. It may take this many times the time of a
/// timed process of the baseline, whatever timeout the user set for a timed one.
const CHECKED: f64 = 30.0;

/// The result of calibrating a case.
pub struct Pace {
    pub iterations: u32,
    pub timeout: Duration,
    expected_s: f64,
    /// Iterations of a checked process: as many as a timed one makes, cold ones included.
    pub checked: u32,
}

impl Session {
    /// Calibrates each case, and returns the paces.
    pub(super) fn calibrate(&mut self, progress: &dyn Progress) -> Result<Vec<Pace>> {
        let plan = &self.selection.clone().plan;
        let mut paces = Vec::new();
        for (place, case) in plan.cases.iter().enumerate() {
            progress.begin(&format!("calibrating {}", case.label()));
            paces.push(self.pace(place, progress)?);
        }
        Ok(paces)
    }

    /// How many iterations a process of this case makes, and how long it may take.
    pub(super) fn pace(&mut self, case: usize, progress: &dyn Progress) -> Result<Pace> {
        if let Some(first) = self.selection.plan.shows_capacity(case) {
            let due = self.calibration(first)?;
            self.once(&due, progress)?;
        }
        match self.selection.plan.cases[case].iterations {
            Iterations::Fixed(count) => self.fixed(case, count, progress),
            Iterations::Calibrated(_) => self.calibrated(case, progress),
        }
    }

    /// Returns the pace of a case whose work is fixed. The baseline's check shows how long the work
    /// takes: never less than in a timed process.
    fn fixed(&mut self, case: usize, iterations: u32, progress: &dyn Progress) -> Result<Pace> {
        let cell = self.selection.plan.check_of_baseline(case);
        let checked = self.iterations_of(&cell, iterations)?;
        if let Some(check) = self.due(&cell, checked, self.first_timeout())? {
            self.once(&check, progress)?;
        }
        // A program makes one iteration in its check.
        let share = f64::from(checked) / f64::from(self.checked(&cell, checked)?.iterations.max(1));
        Ok(self.paced(iterations, checked, self.seconds_of(&cell) * share))
    }

    /// Calibrates a case. A case with a factor has the work of the case without it.
    fn calibrated(&mut self, case: usize, progress: &dyn Progress) -> Result<Pace> {
        let case = self.selection.plan.plain(case);
        let due = self.calibration(case)?;
        self.once(&due, progress)?;
        let cell = &due.cell;
        let cold = due.job.cold;
        let record = self.known.get(&cell.id);
        let one_ns = record
            .and_then(|record| record.measurement.as_ref())
            .map_or(0, one_iteration_ns);
        // If the baseline cannot run a case, its own row shows why; the other rows run one iteration.
        let iterations = if one_ns == 0 {
            1
        } else {
            self.selection.plan.iterations(case, one_ns)
        };
        let share = f64::from(iterations + cold) / f64::from(CALIBRATION_ITERATIONS + cold);
        let checked = self.iterations_of(cell, iterations)?;
        Ok(self.paced(iterations, checked, self.seconds_of(cell) * share))
    }

    /// The process of the baseline that shows how fast a case is.
    fn calibration(&self, case: usize) -> Result<Due> {
        let cell = self.selection.plan.calibration(case);
        let cold = self.case(&cell).cold;
        let job = Job::new(self.case(&cell), &cell, cold, CALIBRATION_ITERATIONS, false)?;
        Ok(Due {
            purpose: Purpose::Calibration,
            job: Job {
                huge_pages: self.selection.plan.huge_pages,
                ..job
            },
            timeout: self.first_timeout(),
            cell,
            place: None,
        })
    }

    /// Adds to a job the number of requests per second that are full load, as the calibration has
    /// shown it. If the baseline failed there, the number is not known, and the baseline's row reports why.
    pub(super) fn at_capacity(&self, cell: &Cell, mut job: Job) -> Job {
        let plan = &self.selection.plan;
        let known = plan.shows_capacity(cell.case).and_then(|first| {
            let record = self.known.get(&plan.calibration(first).id)?;
            per_s(record.measurement.as_ref()?)
        });
        job.parameters
            .extend(known.map(|per_s| (CAPACITY.to_owned(), per_s.to_string())));
        job
    }

    /// How many iterations a process of a block makes, cold ones included.
    fn iterations_of(&self, cell: &Cell, iterations: u32) -> Result<u32> {
        let job = self.measured(cell, iterations, Duration::MAX)?.job;
        Ok(job.cold + job.iterations)
    }

    /// The pace of a case whose timed processes are expected to take `expected_s` seconds.
    fn paced(&self, iterations: u32, checked: u32, expected_s: f64) -> Pace {
        Pace {
            iterations,
            timeout: match self.selection.timeout_s {
                Some(seconds) => Duration::from_secs_f64(seconds),
                None => LEAST_TIMEOUT.max(Duration::from_secs_f64(expected_s * PATIENCE)),
            },
            expected_s,
            checked,
        }
    }

    /// The timeout of a check.
    pub(super) fn check_timeout(&self, cell: &Cell, pace: &Pace) -> Duration {
        let longer = if self.runs_kernel(cell) {
            Duration::from_secs_f64(pace.expected_s * CHECKED)
        } else {
            Duration::ZERO
        };
        pace.timeout.max(longer)
    }

    /// The timeout of the first process of a case.
    fn first_timeout(&self) -> Duration {
        self.selection
            .timeout_s
            .map_or(FIRST_TIMEOUT, Duration::from_secs_f64)
    }

    /// How long a stored process took.
    fn seconds_of(&self, cell: &Cell) -> f64 {
        let wall_ns = self.known.get(&cell.id).and_then(Record::wall_ns);
        wall_ns.unwrap_or(0) as f64 / 1e9
    }
}

/// Removes from a job the times at which requests are due: only timed processes have them.
pub(super) fn without_capacity(mut job: Job) -> Job {
    if let Some(capacity) = job.parameters.get_mut(CAPACITY) {
        *capacity = "0".to_owned();
    }
    job
}

/// Operations of all threads per second in the fastest iteration: other work on the machine only makes iterations
/// slower.
fn per_s(measurement: &Measurement) -> Option<u64> {
    measurement
        .measured()
        .filter(|iteration| iteration.wall_ns > 0)
        .map(|iteration| (iteration.ops as f64 * 1e9 / iteration.wall_ns as f64) as u64)
        .max()
}

/// Returns the median wall time of the measured iterations.
fn one_iteration_ns(measurement: &Measurement) -> u64 {
    let mut walls: Vec<u64> = measurement
        .measured()
        .map(|iteration| iteration.wall_ns)
        .collect();
    walls.sort_unstable();
    walls.get(walls.len() / 2).copied().unwrap_or(0)
}
