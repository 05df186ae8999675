//! Takes a plan through its processes: the negative control, a calibration per case, a checked process per case and
//! allocator, then the blocks. Every process is stored before the next one starts.

use super::progress::Progress;
use super::select::Selection;
use crate::analyse::gate::disturbed_by;
use crate::analyse::half_widths;
use crate::analyse::stats::{Next, Stopping};
use crate::execute::{self, Attempt, Guest, Job, Measurement, Outcome, Subject, Watch};
use crate::plan::{Cell, Part, Plan};
use crate::sample::disturbance::{Counters, Disturbance};
use crate::sample::preflight::{Preflight, When};
use crate::sample::root::Root;
use crate::sample::series::Recorder;
use crate::store::{Purpose, Record, Records, RunFile, Store};
use crate::{catalog::Iterations, plan::Case};
use anyhow::{Result, anyhow, bail};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// Measured iterations of a calibration: enough that one slow one does not decide.
const CALIBRATION_ITERATIONS: u32 = 3;
/// A process may take this many times what the baseline takes: slow is a number, not a hang.
const PATIENCE: f64 = 100.0;
/// And never less than this.
const LEAST_TIMEOUT: Duration = Duration::from_secs(20);
/// Before anything is known.
const FIRST_TIMEOUT: Duration = Duration::from_secs(600);
/// Failed processes of one allocator and case after which the rest is not run.
const MOST_FAILURES: usize = 2;

/// A run that is going on.
pub(in crate::cmd) struct Session {
    guest: Guest,
    selection: Selection,
    store: Option<Store>,
    known: Records,
    counters: Counters,
    /// Parts that were run once more.
    repeats: usize,
    measured_ns: u64,
    stop: Arc<AtomicBool>,
}

/// What a calibration tells about a case.
pub(in crate::cmd) struct Pace {
    pub(super) iterations: u32,
    pub(super) timeout: Duration,
}

/// How a run came to its end.
pub(in crate::cmd) struct Ended {
    /// Not where a signal ended it early.
    pub(in crate::cmd) whole: bool,
    /// All of it: starts, proofs, calibration, checks, the store.
    pub(in crate::cmd) took: Duration,
    /// The measured phases in it, cold iterations too.
    pub(in crate::cmd) measured: Duration,
}

/// A signal came: stop, with everything stored.
struct Interrupted;

impl Session {
    pub(in crate::cmd) fn new(
        guest: Guest,
        selection: Selection,
        store: Option<Store>,
        known: Vec<Record>,
        stop: Arc<AtomicBool>,
    ) -> Session {
        let (known, counters) = (known.into_iter().collect(), Counters::open(&Root::machine()));
        Session { guest, selection, store, known, counters, repeats: 0, measured_ns: 0, stop }
    }

    /// Runs what is not stored yet.
    pub(in crate::cmd) fn run(mut self, head: &RunFile, root: &Root) -> Result<Ended> {
        let (checks, began) = (self.selection.plan.checks(), Instant::now());
        let mut progress = Progress::new(checks.len() + self.selection.plan.cells().len());
        let done = self.all(head, &checks, &mut progress);
        progress.finish();
        let whole = done?.is_ok();
        if let Some(store) = &self.store {
            store.keep_look(When::After, Preflight::look(root, When::After))?;
        }
        Ok(Ended { whole, took: began.elapsed(), measured: Duration::from_nanos(self.measured_ns) })
    }

    fn all(&mut self, head: &RunFile, checks: &[Cell], progress: &mut Progress) -> Result<Result<(), Interrupted>> {
        if self.control()?.is_err() {
            return Ok(Err(Interrupted));
        }
        let mut paces = Vec::new();
        for case in 0..self.selection.plan.cases.len() {
            progress.begin(&format!("calibrating {}", self.selection.plan.cases[case].label()));
            match self.pace(case)? {
                Some(pace) => paces.push(pace),
                None => return Ok(Err(Interrupted)),
            }
        }
        for cell in checks {
            progress.begin(&cell.id);
            let job = Job::new(self.case(cell), cell, 0, 1, true)?;
            if self.once(Purpose::Check, cell, &job, paces[cell.case].timeout, progress)?.is_err() {
                return Ok(Err(Interrupted));
            }
            progress.step();
        }
        let mut left_over = Vec::new();
        for block in 0..self.selection.plan.most_blocks() {
            let mut disturbed = Vec::new();
            for part in self.selection.plan.block(block) {
                match self.part(&part, &paces, progress)? {
                    Err(Interrupted) => return Ok(Err(Interrupted)),
                    Ok(quiet) => disturbed.extend((!quiet).then_some(part)),
                }
            }
            match self.repeat(disturbed, 1, &paces, progress)? {
                Err(Interrupted) => return Ok(Err(Interrupted)),
                Ok(still) => left_over.extend(still),
            }
            let widths = half_widths(head, self.known.all());
            let bare: Vec<Option<f64>> = widths.iter().map(|(_, width)| *width).collect();
            let next = self.stopping().after(block as usize + 1, &bare, self.over_budget());
            progress.block(block, &self.selection.plan, &widths, next);
            if next != Next::GoOn {
                break;
            }
        }
        // Whatever disturbed them then may be over now.
        Ok(self.repeat(left_over, 2, &paces, progress)?.map(|_| ()))
    }

    /// Runs parts that something else disturbed once more, all together at most as many as were planned; returns those that
    /// were disturbed again.
    fn repeat(
        &mut self,
        parts: Vec<Part>,
        attempt: u32,
        paces: &[Pace],
        progress: &mut Progress,
    ) -> Result<Result<Vec<Part>, Interrupted>> {
        let mut still = Vec::new();
        for part in parts {
            if !self.selection.plan.repeats || self.repeats >= self.planned_parts() || self.over_budget() {
                still.push(part);
                continue;
            }
            self.repeats += 1;
            let again = Plan::again(&part, attempt);
            progress.more(again.len());
            match self.part(&again, paces, progress)? {
                Err(Interrupted) => return Ok(Err(Interrupted)),
                Ok(quiet) => still.extend((!quiet).then_some(part)),
            }
        }
        Ok(Ok(still))
    }

    fn planned_parts(&self) -> usize {
        let plan = &self.selection.plan;
        plan.blocks as usize * plan.block(0).len()
    }

    /// The baseline and a few others, one after the other. Says whether nothing else disturbed them.
    fn part(&mut self, part: &[Cell], paces: &[Pace], progress: &mut Progress) -> Result<Result<bool, Interrupted>> {
        for cell in part {
            progress.begin(&cell.id);
            if self.worth_running(cell) {
                let pace = &paces[cell.case];
                let (purpose, job) = self.measured(cell, pace)?;
                if self.once(purpose, cell, &job, pace.timeout, progress)?.is_err() {
                    return Ok(Err(Interrupted));
                }
            }
            progress.step();
        }
        let found = part.iter().filter_map(|cell| self.known.get(&cell.id)?.disturbance.as_ref());
        Ok(Ok(found.into_iter().all(|disturbance| disturbed_by(disturbance).is_empty())))
    }

    fn stopping(&self) -> Stopping {
        let plan = &self.selection.plan;
        let (least, most) = (plan.blocks as usize, plan.most_blocks() as usize);
        Stopping { least, most, precision: plan.precision.unwrap_or(0.0) }
    }

    /// Counted over all processes, so that a run that is taken up again ends where it would have ended.
    fn over_budget(&self) -> bool {
        let spent_ns: u64 = self.known.all().iter().filter_map(|record| Some(record.usage.as_ref()?.wall_ns)).sum();
        self.selection.plan.budget_s.is_some_and(|budget_s| spent_ns as f64 / 1e9 >= budget_s)
    }

    /// The negative control: without preload the proof must show libc. Once per run, and again where it has failed: no
    /// `--resume` gets around it.
    fn control(&mut self) -> Result<Result<(), Interrupted>> {
        const CELL: &str = "control";
        if self.known.get(CELL).is_some_and(|record| record.outcome.is_ok()) {
            return Ok(Ok(()));
        }
        let (libc, started) = (Subject::libc(), now());
        let Some(attempt) = self.guest.control(&libc, &self.stop)? else { return Ok(Err(Interrupted)) };
        let outcome = attempt.outcome.clone();
        let cell = Cell { id: CELL.into(), allocator: libc.allocator.name, seed: 1, ..Cell::default() };
        self.keep(record(Purpose::Control, &cell, "churn", 1, started, attempt))?;
        if !outcome.is_ok() {
            bail!(
                "the guest without any preload must be served by the C library, but: {outcome}. No number would mean anything"
            );
        }
        Ok(Ok(()))
    }

    pub(in crate::cmd) fn case(&self, cell: &Cell) -> &Case {
        &self.selection.plan.cases[cell.case]
    }

    /// How many iterations a process of this case makes, and how long it may take.
    pub(in crate::cmd) fn pace(&mut self, case: usize) -> Result<Option<Pace>> {
        let cell = self.selection.plan.calibration(case);
        let iterations = match self.case(&cell).iterations {
            Iterations::Fixed(count) => count,
            Iterations::Calibrated(_) => CALIBRATION_ITERATIONS,
        };
        let cold = self.case(&cell).cold;
        if !self.known.has(&cell.id) {
            let job = Job::new(self.case(&cell), &cell, cold, iterations, false)?;
            let limit = self.selection.timeout_s.map_or(FIRST_TIMEOUT, Duration::from_secs_f64);
            let started = now();
            let Some(attempt) = self.start(&cell, &job, limit, None)? else { return Ok(None) };
            let case = self.case(&cell);
            let record = record(Purpose::Calibration, &cell, &case.workload, case.threads, started, attempt);
            self.keep(record)?;
        }
        let Some(record) = self.known.get(&cell.id) else { bail!("{} has no record", cell.id) };
        let one_ns = record.measurement.as_ref().map_or(0, one_iteration_ns);
        // A baseline that cannot run a case shows why in its own row; the others run one iteration.
        let iterations_now = if one_ns == 0 { 1 } else { self.selection.plan.iterations(case, one_ns) };
        let process_s = record.usage.as_ref().map_or(0.0, |usage| usage.wall_ns as f64 / 1e9);
        let expected_s = process_s * f64::from(iterations_now + cold) / f64::from(iterations + cold);
        let timeout = match self.selection.timeout_s {
            Some(seconds) => Duration::from_secs_f64(seconds),
            None => LEAST_TIMEOUT.max(Duration::from_secs_f64(expected_s * PATIENCE)),
        };
        Ok(Some(Pace { iterations: iterations_now, timeout }))
    }

    /// What a cell of a block is run for. Where single calls are timed no iteration is set apart as a warm-up: that a heap
    /// grows is a part of the tail.
    pub(super) fn measured(&self, cell: &Cell, pace: &Pace) -> Result<(Purpose, Job)> {
        let case = self.case(cell);
        Ok(match self.selection.plan.latency_every {
            None => (Purpose::Sample, Job::new(case, cell, case.cold, pace.iterations, false)?),
            every => {
                let job = Job::new(case, cell, 0, pace.iterations, false)?;
                (Purpose::Latency, Job { latency_every: every, ..job })
            }
        })
    }

    /// Runs one cell unless it is stored already.
    fn once(
        &mut self,
        purpose: Purpose,
        cell: &Cell,
        job: &Job,
        timeout: Duration,
        progress: &Progress,
    ) -> Result<Result<(), Interrupted>> {
        if self.known.has(&cell.id) {
            return Ok(Ok(()));
        }
        let started = now();
        let mut recorder = match purpose {
            Purpose::Sample => Recorder::of(self.case(cell), self.guest.path())?,
            _ => None,
        };
        let job = Job { series: recorder.as_ref().map(Recorder::word), ..job.clone() };
        let every = recorder.as_ref().and_then(Recorder::every);
        let mut look = |pid, page: &_| recorder.iter_mut().for_each(|recorder| recorder.look(pid, page));
        let watch = every.map(|every| Watch { every, look: &mut look });
        let before = self.counters.snapshot(0);
        let Some(attempt) = self.start(cell, &job, timeout, watch)? else {
            return Ok(Err(Interrupted));
        };
        let own_ns = attempt.usage.as_ref().map(|usage| usage.user_ns + usage.sys_ns);
        let disturbance = own_ns.filter(|_| purpose.is_of_a_block());
        let disturbance = disturbance.map(|own_ns| Disturbance::between(&before, &self.counters.snapshot(own_ns)));
        // Before the record: whoever finds the record finds the series whole.
        if let (Some(store), Some(recorder)) = (&self.store, recorder)
            && let Some(table) = recorder.csv()?
        {
            store.keep_series(&cell.id, &table)?;
        }
        if !attempt.outcome.is_ok() {
            progress.say(&format!("{}: {}", cell.id, attempt.outcome));
        }
        let case = self.case(cell);
        let record = record(purpose, cell, &case.workload, case.threads, started, attempt);
        self.keep(Record { disturbance, ..record })?;
        Ok(Ok(()))
    }

    /// Not where the check has failed, nor where it failed often enough to be told.
    fn worth_running(&self, cell: &Cell) -> bool {
        let case = self.case(cell);
        let same = |record: &&Record| {
            record.allocator == cell.allocator && record.workload == case.workload && record.threads == case.threads
        };
        let failed: Vec<&Record> =
            self.known.all().iter().filter(same).filter(|record| !record.outcome.is_ok()).collect();
        !failed.iter().any(|record| record.purpose == Purpose::Check)
            && failed.iter().filter(|record| record.purpose != Purpose::Check).count() < MOST_FAILURES
    }

    /// The guest under an allocator, a program under one, or a program by itself.
    pub(in crate::cmd) fn start(
        &self,
        cell: &Cell,
        job: &Job,
        timeout: Duration,
        watch: Option<Watch<'_>>,
    ) -> Result<Option<Attempt>> {
        let case = self.case(cell);
        let row = case.row(&cell.allocator);
        let libc = Subject::libc();
        let subject = match row.map(|row| &row.allocator) {
            Some(None) => &libc,
            Some(Some(pinned)) => self.subject(pinned)?,
            None => self.subject(&cell.allocator)?,
        };
        match row.map(|row| &row.program).or(case.program.as_ref()) {
            None => execute::run_watched(&self.guest, subject, job, timeout, &self.stop, watch),
            // Whatever for: a program that is calibrated or checked would be run for nothing.
            Some(_) if self.selection.plan.latency_every.is_some() => {
                let why = "a program's calls cannot be timed one by one: --latency is for kernels".into();
                Ok(Some(Attempt::without_process(Outcome::Unsupported { why })))
            }
            Some(name) => {
                let program = self.selection.programs.iter().find(|program| program.name == *name);
                let program =
                    program.ok_or_else(|| anyhow!("the plan names `{name}`, which this run does not have"))?;
                program.run(&self.guest, row, subject, job, timeout, &self.stop)
            }
        }
    }

    fn subject(&self, name: &str) -> Result<&Subject> {
        let mut all = self.selection.subjects.iter().chain(&self.selection.pinned);
        let found = all.find(|subject| subject.allocator.name == name);
        found.ok_or_else(|| anyhow!("the plan names `{name}`, which this run does not have"))
    }

    fn keep(&mut self, record: Record) -> Result<()> {
        if let (Purpose::Sample, Some(measurement)) = (record.purpose, &record.measurement) {
            self.measured_ns += measurement.iterations.iter().map(|iteration| iteration.wall_ns).sum::<u64>();
        }
        if let Some(store) = &mut self.store {
            store.append(&record)?;
        }
        self.known.add(record);
        Ok(())
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// The middle one of the measured iterations.
fn one_iteration_ns(measurement: &Measurement) -> u64 {
    let mut walls: Vec<u64> =
        measurement.iterations.iter().filter(|one| !one.cold).map(|iteration| iteration.wall_ns).collect();
    walls.sort_unstable();
    walls.get(walls.len() / 2).copied().unwrap_or(0)
}

fn record(purpose: Purpose, cell: &Cell, workload: &str, threads: u32, started: String, attempt: Attempt) -> Record {
    Record {
        purpose,
        cell: cell.id.clone(),
        workload: workload.into(),
        threads,
        allocator: cell.allocator.clone(),
        block: cell.block,
        part: cell.part,
        attempt: cell.attempt,
        position: cell.position,
        seed: cell.seed,
        started,
        outcome: attempt.outcome,
        measurement: attempt.measurement,
        usage: attempt.usage,
        disturbance: None,
        proof: attempt.proof,
        environment: attempt.environment,
        stderr: attempt.stderr,
    }
}
