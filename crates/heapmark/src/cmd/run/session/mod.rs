//! Takes a plan through its processes: the negative control, a calibration per case, a checked process per case and
//! allocator, then the blocks. Every process is stored before the next one starts.

mod blocks;
mod failures;
mod pace;
mod trial;

pub(in crate::cmd) use trial::TOOLS;

use super::progress::Progress;
use super::select::Selection;
use crate::execute::{self, Attempt, Guest, Job, Outcome, Subject, Watch, callgrind};
use crate::plan::{Case, Cell, Counter};
use crate::sample::Watcher;
use crate::sample::course::Course;
use crate::sample::disturbance::{Counters, Disturbance};
use crate::sample::follower::{Follower, csv_of_points};
use crate::sample::preflight::{Preflight, When};
use crate::sample::root::Root;
use crate::sample::series::Recorder;
use crate::store::{Purpose, Record, Records, RunFile, Store};
use anyhow::{Result, anyhow, bail};
use failures::Failures;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A run that is going on.
pub(in crate::cmd) struct Session {
    guest: Guest,
    selection: Selection,
    store: Option<Store>,
    known: Records,
    failures: Failures,
    counters: Counters,
    /// Parts that were run once more.
    repeats: usize,
    measured_ns: u64,
    stop: Arc<AtomicBool>,
    reference: trial::Known,
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
#[derive(Debug)]
pub(in crate::cmd) struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

impl Session {
    pub(in crate::cmd) fn new(
        guest: Guest,
        selection: Selection,
        store: Option<Store>,
        known: Vec<Record>,
        stop: Arc<AtomicBool>,
    ) -> Session {
        let (failures, counters) = (Failures::of(&known), Counters::open(&Root::machine()));
        let (known, reference) = (known.into_iter().collect(), Default::default());
        Session { guest, selection, store, known, failures, counters, repeats: 0, measured_ns: 0, stop, reference }
    }

    /// Runs what is not stored yet.
    pub(in crate::cmd) fn run(mut self, head: &RunFile, root: &Root) -> Result<Ended> {
        let (checks, began) = (self.selection.plan.checks(), Instant::now());
        let mut progress = Progress::new(checks.len() + self.selection.plan.cells().len());
        let done = self.all(head, &checks, &mut progress);
        progress.finish();
        let whole = match done {
            Err(error) if error.is::<Interrupted>() => false,
            done => done.map(|()| true)?,
        };
        if let Some(store) = &self.store {
            store.keep_look(When::After, Preflight::look(root, When::After))?;
        }
        Ok(Ended { whole, took: began.elapsed(), measured: Duration::from_nanos(self.measured_ns) })
    }

    fn all(&mut self, head: &RunFile, checks: &[Cell], progress: &mut Progress) -> Result<()> {
        self.control()?;
        let mut paces = Vec::new();
        for case in 0..self.selection.plan.cases.len() {
            progress.begin(&format!("calibrating {}", self.selection.plan.cases[case].label()));
            paces.push(self.pace(case, progress)?);
        }
        self.refuse_what_does_not_run()?;
        for cell in checks {
            progress.begin(&cell.id);
            let job = Job::new(self.case(cell), cell, 0, 1, true)?;
            let known = self.known.has(&cell.id);
            self.once(Purpose::Check, cell, &job, paces[cell.case].timeout, progress)?;
            progress.step(!known);
        }
        self.blocks(head, &paces, progress)
    }

    /// The negative control: without preload the proof must show libc. Once per run, and again where it has failed: no
    /// `--resume` gets around it.
    fn control(&mut self) -> Result<()> {
        const CELL: &str = "control";
        if self.known.get(CELL).is_some_and(|record| record.outcome.is_ok()) {
            return Ok(());
        }
        let (libc, started) = (Subject::libc(), now());
        let attempt = self.guest.control(&libc, &self.stop)?.ok_or(Interrupted)?;
        let outcome = attempt.outcome.clone();
        let cell = Cell { id: CELL.into(), allocator: libc.allocator.name, seed: 1, ..Cell::default() };
        self.keep(record(Purpose::Control, &cell, "churn", 1, started, attempt))?;
        if !outcome.is_ok() {
            bail!(
                "the guest without any preload must be served by the C library, but: {outcome}. No number would mean anything"
            );
        }
        Ok(())
    }

    pub(in crate::cmd) fn case(&self, cell: &Cell) -> &Case {
        &self.selection.plan.cases[cell.case]
    }

    /// Runs one cell unless it is stored already.
    fn once(&mut self, purpose: Purpose, cell: &Cell, job: &Job, timeout: Duration, progress: &Progress) -> Result<()> {
        if self.known.has(&cell.id) {
            return Ok(());
        }
        let started = now();
        let mut watcher: Option<Box<dyn Watcher>> = match purpose {
            Purpose::Sample => Recorder::of(self.case(cell), self.guest.path())?.map(|it| Box::new(it) as _),
            Purpose::Memory => Some(Box::new(Follower::default())),
            _ => None,
        };
        let job = Job { series: watcher.as_ref().map(|watcher| watcher.word()), ..job.clone() };
        let looks = watcher.as_ref().is_some_and(|watcher| watcher.looks());
        let mut look = |pid, page: &_| watcher.as_mut().map_or(Duration::MAX, |watcher| watcher.look(pid, page));
        let watch: Option<Watch<'_>> = if looks { Some(&mut look) } else { None };
        let before = self.counters.snapshot(0);
        let attempt = self.start(cell, &job, timeout, watch)?.ok_or(Interrupted)?;
        let own_ns = attempt.usage.as_ref().map(|usage| usage.user_ns + usage.sys_ns);
        let disturbance = own_ns.filter(|_| purpose.is_of_a_block());
        let disturbance = disturbance.map(|own_ns| Disturbance::between(&before, &self.counters.snapshot(own_ns)));
        let footprint = attempt.measurement.as_ref().and_then(|measurement| measurement.footprint.as_ref());
        let seen = footprint.and_then(|told| Some((told, told.peak.as_ref()?)));
        let course = match seen {
            Some((told, peak)) => Some(Course::of_points(&told.points, peak, &told.twice)),
            None => watcher.as_ref().zip(footprint).and_then(|(it, told)| it.course(told.begin.without_harness())),
        };
        let mean_heap = watcher.as_ref().zip(attempt.measurement.as_ref()).and_then(|(watcher, measured)| {
            let (count, wall_ns) = measured.measured().fold((0, 0), |(n, sum), it| (n + 1, sum + it.wall_ns));
            watcher.mean_heap(measured.baseline_rss_bytes, wall_ns.checked_div(count)?)
        });
        let own_points = seen.map(|(told, _)| csv_of_points(&told.points, told.begin.without_harness()));
        // Before the record: whoever finds the record finds the series whole.
        if let (Some(store), Some(watcher)) = (&self.store, watcher)
            && let Some(table) = own_points.map_or_else(|| watcher.csv(), |table| Ok(Some(table)))?
        {
            store.keep_series(&cell.id, &table)?;
        }
        if !attempt.outcome.is_ok() {
            progress.say(&format!("{}: {}", cell.id, attempt.outcome));
        }
        let case = self.case(cell);
        let record = record(purpose, cell, &case.workload, case.threads, started, attempt);
        self.keep(Record { disturbance, course: course.map(Box::new), mean_heap: mean_heap.map(Box::new), ..record })?;
        Ok(())
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
        if let Some(trial) = &case.trial {
            return self.tried(trial, cell, job, timeout);
        }
        let row = case.row(&cell.allocator);
        let libc = Subject::libc();
        let subject = match row.map(|row| &row.allocator) {
            Some(None) => &libc,
            Some(Some(pinned)) => self.subject(pinned)?,
            None => self.subject(&cell.allocator)?,
        };
        match row.map(|row| &row.program).or(case.program.as_ref()) {
            None if job.counter == Some(Counter::Callgrind) => {
                callgrind::count(&self.guest, subject, job, timeout, &self.stop)
            }
            None => execute::run_watched(&self.guest, subject, job, timeout, &self.stop, watch),
            // Whatever for: a program that is calibrated or checked would be run for nothing.
            Some(_) if self.selection.plan.is_for_kernels() => {
                let why = "a program's calls cannot be watched one by one: --latency, --counter and --retained are for kernels".into();
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
        self.failures.add(&record);
        self.known.add(record);
        Ok(())
    }
}

fn now() -> String {
    jiff::Timestamp::now().to_string()
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
        usage: attempt.usage.map(Box::new),
        disturbance: None,
        course: None,
        mean_heap: None,
        proof: attempt.proof.map(Box::new),
        environment: attempt.environment,
        stderr: attempt.stderr,
    }
}
