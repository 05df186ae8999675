//! How much work a process does and how long it may take, found by the first process of the baseline.

use super::{Progress, Session};
use crate::catalog::Iterations;
use crate::execute::{Job, Measurement};
use crate::plan::Cell;
use crate::store::Purpose;
use anyhow::Result;
use std::time::Duration;

/// Measured iterations of a calibration: enough that one slow one does not decide.
const CALIBRATION_ITERATIONS: u32 = 3;
/// A process may take this many times what the baseline takes: slow is a number, not a hang.
const PATIENCE: f64 = 100.0;
/// And never less than this.
const LEAST_TIMEOUT: Duration = Duration::from_secs(20);
/// Before anything is known.
const FIRST_TIMEOUT: Duration = Duration::from_secs(600);

/// What a calibration tells about a case.
pub(in crate::cmd) struct Pace {
    pub(in crate::cmd) iterations: u32,
    pub(in crate::cmd) timeout: Duration,
}

impl Session {
    /// How many iterations a process of this case makes, and how long it may take.
    pub(in crate::cmd) fn pace(&mut self, case: usize, progress: &Progress) -> Result<Pace> {
        match self.selection.plan.cases[case].iterations {
            Iterations::Fixed(count) => self.fixed(case, count, progress),
            Iterations::Calibrated(_) => self.calibrated(case, progress),
        }
    }

    /// Where the work is fixed, the baseline's check tells how long it takes: longer than a timed process, never less.
    fn fixed(&mut self, case: usize, iterations: u32, progress: &Progress) -> Result<Pace> {
        let cell = self.selection.plan.check_of_baseline(case);
        let job = Job::new(self.case(&cell), &cell, 0, 1, true)?;
        let process_s = self.first(Purpose::Check, &cell, &job, progress)?;
        let all = iterations + self.case(&cell).cold;
        Ok(Pace { iterations, timeout: self.patience(process_s * f64::from(all)) })
    }

    fn calibrated(&mut self, case: usize, progress: &Progress) -> Result<Pace> {
        let cell = self.selection.plan.calibration(case);
        let cold = self.case(&cell).cold;
        let job = Job::new(self.case(&cell), &cell, cold, CALIBRATION_ITERATIONS, false)?;
        let process_s = self.first(Purpose::Calibration, &cell, &job, progress)?;
        let measurement = self.known.get(&cell.id).and_then(|record| record.measurement.as_ref());
        let one_ns = measurement.map_or(0, one_iteration_ns);
        // A baseline that cannot run a case shows why in its own row; the others run one iteration.
        let iterations = if one_ns == 0 { 1 } else { self.selection.plan.iterations(case, one_ns) };
        let share = f64::from(iterations + cold) / f64::from(CALIBRATION_ITERATIONS + cold);
        Ok(Pace { iterations, timeout: self.patience(process_s * share) })
    }

    /// Runs the first process of a case unless it is stored already, and returns its seconds.
    fn first(&mut self, purpose: Purpose, cell: &Cell, job: &Job, progress: &Progress) -> Result<f64> {
        let limit = self.selection.timeout_s.map_or(FIRST_TIMEOUT, Duration::from_secs_f64);
        self.once(purpose, cell, job, limit, progress)?;
        let usage = self.known.get(&cell.id).and_then(|record| record.usage.as_ref());
        Ok(usage.map_or(0.0, |usage| usage.wall_ns as f64 / 1e9))
    }

    /// How long a process may take of which this long is expected.
    fn patience(&self, expected_s: f64) -> Duration {
        match self.selection.timeout_s {
            Some(seconds) => Duration::from_secs_f64(seconds),
            None => LEAST_TIMEOUT.max(Duration::from_secs_f64(expected_s * PATIENCE)),
        }
    }
}

/// The middle one of the measured iterations.
fn one_iteration_ns(measurement: &Measurement) -> u64 {
    let mut walls: Vec<u64> = measurement.measured().map(|iteration| iteration.wall_ns).collect();
    walls.sort_unstable();
    walls.get(walls.len() / 2).copied().unwrap_or(0)
}
