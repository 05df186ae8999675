//! A run in progress, from the first process to the last.

use super::failures::Failures;
use super::passed::Shelf;
use super::present::memory_left;
use super::runner::{Due, Observed, Runner};
use super::{Progress, Selection};
use crate::catalog::Source;
use crate::execute::{Attempt, Interrupted, Outcome, Subject};
use crate::observe::Root;
use crate::observe::preflight::{Preflight, When};
use crate::plan::{Case, Cell, Litter, OTHER_SIZES, Plan};
use crate::store::{Purpose, Record, Records, RunFile, Store, seconds_of_processes};
use anyhow::{Result, bail};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A run in progress.
pub struct Session {
    pub(super) selection: Arc<Selection>,
    /// The plan, without the turns of cases whose processes cannot take any.
    pub(super) plan: Rc<Plan>,
    pub(super) runner: Rc<dyn Runner>,
    store: Option<Store>,
    pub(super) known: Records,
    pub(super) failures: Failures,
    /// How many parts were repeated.
    pub(super) repeats: usize,
    measured_ns: u64,
    /// Checks that earlier runs have passed; open once the negative control has shown the C
    /// library.
    pub(super) shelf: Option<Shelf>,
    /// Whether checks are repeated even if earlier runs have passed them.
    pub(super) check_again: bool,
    /// The bytes of memory that were available before the first process.
    pub(super) memory_bytes: Option<u64>,
    /// When this session began, and how many seconds the processes of earlier sessions took.
    pub(super) began: Instant,
    pub(super) before_s: f64,
}

/// The name of the negative control's cell.
pub const CONTROL: &str = "control";

/// How a run ended.
pub struct Ended {
    /// Whether the run is complete; false if a signal ended it early.
    pub whole: bool,
    /// The time of the whole run, with process starts, proofs, calibration, checks and the store.
    pub took: Duration,
    /// The time of measured phases, cold iterations included; phases that ran at the same time count by their share.
    pub measured: Duration,
}

impl Session {
    /// Creates a run that continues from these records of an earlier session; without a store, nothing is kept.
    pub fn new(
        selection: Arc<Selection>,
        runner: impl Runner + 'static,
        store: Option<Store>,
        known: Vec<Record>,
    ) -> Session {
        Session {
            began: Instant::now(),
            before_s: seconds_of_processes(&known),
            plan: Rc::new(selection.plan.clone()),
            selection,
            runner: Rc::new(runner),
            store,
            failures: Failures::of(&known),
            known: known.into_iter().collect(),
            repeats: 0,
            measured_ns: 0,
            shelf: None,
            check_again: false,
            memory_bytes: memory_left(&Root::machine()),
        }
    }

    /// Sets whether the checks that earlier runs have passed are repeated, too.
    pub fn checking_again(self, check_again: bool) -> Session {
        Session {
            check_again,
            ..self
        }
    }

    /// Runs what is not stored yet. `root` is the machine that is inspected afterwards.
    pub fn run(
        mut self,
        head: &RunFile,
        root: &Root,
        progress: &mut dyn Progress,
    ) -> Result<Ended> {
        let began = Instant::now();
        let whole = match self.steps(head, progress) {
            Err(error) if error.is::<Interrupted>() => false,
            done => done.map(|()| true)?,
        };
        if let Some(store) = &self.store {
            store.keep_preflight(When::After, Preflight::look(root, When::After))?;
        }
        Ok(Ended {
            whole,
            took: began.elapsed(),
            measured: Duration::from_nanos(self.measured_ns),
        })
    }

    fn steps(&mut self, head: &RunFile, progress: &mut dyn Progress) -> Result<()> {
        self.control()?;
        let paces = self.calibrate(progress)?;
        self.refuse_what_does_not_run()?;
        self.checks(&paces, progress)?;
        if let Some(why) = self.only_own_libraries_that_failed() {
            progress.say(&why);
            return Ok(());
        }
        self.corners(progress)?;
        self.trials(&paces, progress)?;
        self.followed(self.selection.plan.beside(), &paces, progress)?;
        // Memory is made present so that the first block does not pay for pages that no program has
        // touched since the machine started. The checks have shown how many the largest process needs.
        self.runner.make_present(self.largest_of_all());
        match self.selection.plan.mode.limit() {
            Some(_) => self.limits(&paces, progress),
            None => self.blocks(head, &paces, progress),
        }
    }

    /// Returns a message about how to investigate the first failure, if each library besides the baseline is the
    /// user's own and crashed, or did not serve its process, in each of its checks. A developer of such a library
    /// need not wait for figures of the baseline.
    fn only_own_libraries_that_failed(&self) -> Option<String> {
        let plan = &self.selection.plan;
        let mut checks = plan.checks();
        checks.retain(|cell| cell.allocator != plan.baseline);
        let failure = |cell: &Cell| {
            let source = &self
                .selection
                .subject(&cell.allocator)
                .ok()?
                .allocator
                .source;
            let outcome = &self.known.get(&cell.id)?.outcome;
            let is_own = matches!(source, Source::Path { .. } | Source::Git(_));
            let failed = matches!(outcome, Outcome::Crash { .. } | Outcome::NotLoaded { .. });
            (is_own && failed).then_some(outcome)
        };
        let failures: Option<Vec<&Outcome>> = checks.iter().map(failure).collect();
        let first = *failures?.first()?;
        let cell = &checks[0];
        let run = self
            .store
            .as_ref()
            .map_or("RUN".into(), |store| store.dir().display().to_string());
        Some(format!(
            "nothing is left to compare: {}: {first}. The same process once more: heapmark run --resume {run} --cell {}",
            cell.allocator, cell.id
        ))
    }

    /// Runs one cell of the plan by itself, after the processes that show how it has to run, and keeps nothing.
    pub fn single(&mut self, cell: &Cell, progress: &dyn Progress) -> Result<Attempt> {
        if self.case(cell).age().is_some() {
            let fresh = self.selection.plan.plain(cell.case);
            let baseline = self.selection.plan.check_of_baseline(fresh);
            let pace = self.pace(fresh, progress)?;
            let timeout = self.check_timeout(&baseline, &pace);
            if let Some(check) = self.due(&baseline, pace.checked, timeout)? {
                self.once(&check, progress)?;
            }
            if let Some(why) = self.cannot_age(cell) {
                return Ok(Attempt::without_process(Outcome::Unsupported { why }));
            }
        }
        let pace = self.pace(cell.case, progress)?;
        let checks = self.selection.plan.checks();
        let mut due = self.measured(cell, pace.iterations, pace.timeout)?;
        due.purpose = Purpose::Check;
        if checks.iter().any(|check| check.id == cell.id) {
            due.job = self.checked(cell, pace.checked)?;
            due.timeout = self.check_timeout(cell, &pace);
        }
        Ok(self.observed(&due)?.attempt)
    }

    /// Runs the negative control: without a preload, the proof must show libc. It runs once per
    /// run, and again if it failed: `--resume` then does not skip it.
    fn control(&mut self) -> Result<()> {
        let known = self.known.get(CONTROL);
        if known.is_some_and(|record| record.outcome.is_ok()) {
            return Ok(());
        }
        let libc = Subject::libc();
        let started = now();
        let attempt = self.runner.control()?;
        let outcome = attempt.outcome.clone();
        let cell = Cell {
            id: CONTROL.into(),
            allocator: libc.allocator.name,
            seed: 1,
            ..Cell::default()
        };
        let record = record(Purpose::Control, &cell, "churn", 1, started, attempt);
        self.keep(record, None)?;
        if !outcome.is_ok() {
            bail!(
                "the guest without any preload must be served by the C library, but: {outcome}. No number would mean anything{}",
                super::preloaded::by_system()
            );
        }
        Ok(())
    }

    /// Runs a process by itself unless it is stored already.
    pub(super) fn once(&mut self, due: &Due, progress: &dyn Progress) -> Result<()> {
        if self.known.has(&due.cell.id) {
            return Ok(());
        }
        let started = now();
        let observed = self.observed(due)?;
        self.ended(due, started, observed, progress)
    }

    /// Stores a process that has ended.
    pub(super) fn ended(
        &mut self,
        due: &Due,
        started: String,
        observed: Observed,
        progress: &dyn Progress,
    ) -> Result<()> {
        let cell = &due.cell;
        let case = self.case(&due.cell);
        let mut attempt = observed.attempt;
        let litter = due.job.litter.as_ref();
        if litter.is_some_and(Litter::has_other_sizes)
            && let Some(measurement) = &mut attempt.measurement
        {
            measurement.figures.insert(OTHER_SIZES.to_owned(), 1.0);
        }
        let workload = &case.workload;
        let threads = case.threads;
        let record = Record {
            interference: observed.interference,
            memory: observed.memory.map(Box::new),
            mean_heap: observed.mean_heap.map(Box::new),
            demand: observed.demand.map(Box::new),
            ..record(due.purpose, cell, workload, threads, started, attempt)
        };
        if record.has_failed() {
            progress.say(&format!("{}: {}", record.cell, record.outcome));
        }
        self.keep(record, observed.series.as_deref())?;
        self.shelve(due)
    }

    fn observed(&self, due: &Due) -> Result<Observed> {
        self.runner.run(due, self.largest_bytes(&due.cell))
    }

    /// The largest resident set that any process of the run has had.
    fn largest_of_all(&self) -> u64 {
        self.known
            .all()
            .iter()
            .filter_map(Record::peak_rss_bytes)
            .max()
            .unwrap_or(0)
    }

    /// The largest resident set that any process of this case has had. Whole programs of a case
    /// differ in size (one in Java is twenty times as large as one in C), so for those, only
    /// processes of the cell's own row count.
    pub(super) fn largest_bytes(&self, cell: &Cell) -> u64 {
        let bytes = |record: &Record| match self.case(cell).whole_process {
            false => record.peak_rss_bytes(),
            true if record.allocator == cell.allocator => {
                Some(record.usage.as_ref()?.max_rss_bytes)
            }
            true => None,
        };
        self.of_case(cell).filter_map(bytes).max().unwrap_or(0)
    }

    /// All records of this case, under any allocator.
    pub(super) fn of_case(&self, cell: &Cell) -> impl Iterator<Item = &Record> {
        let case = self.case(cell);
        let all = self.known.all().iter();
        all.filter(|record| record.is_of(&case.workload, case.threads))
    }

    pub(super) fn case(&self, cell: &Cell) -> &Case {
        &self.selection.plan.cases[cell.case]
    }

    /// Stores that a process cannot run, and why.
    pub(super) fn cannot_run(&mut self, purpose: Purpose, cell: &Cell, why: String) -> Result<()> {
        let case = self.case(cell);
        let outcome = Outcome::Unsupported { why };
        let record = Record {
            started: now(),
            ..Record::new(purpose, cell, &case.workload, case.threads, outcome)
        };
        self.keep(record, None)
    }

    /// Stores a process, with its memory over time if that was sampled.
    pub(super) fn keep(&mut self, mut record: Record, series: Option<&str>) -> Result<()> {
        if let (Purpose::Sample, Some(measurement)) = (record.purpose, &record.measurement) {
            let walls = measurement
                .iterations
                .iter()
                .map(|iteration| iteration.wall_ns);
            self.measured_ns += walls.sum::<u64>() / record.at_once();
        }
        if let Some(store) = &mut self.store {
            store.append(&mut record, series)?;
        }
        self.failures.add(&record);
        _ = self.known.add(record);
        Ok(())
    }
}

/// Returns the current time in the format of records.
pub fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// What is stored of a process, except what was observed from outside.
fn record(
    purpose: Purpose,
    cell: &Cell,
    workload: &str,
    threads: u32,
    started: String,
    attempt: Attempt,
) -> Record {
    Record {
        started,
        measurement: attempt.measurement,
        usage: attempt.usage.map(Box::new),
        proof: attempt.proof.map(Box::new),
        environment: attempt.environment.into(),
        stderr: attempt.stderr.into(),
        ..Record::new(purpose, cell, workload, threads, attempt.outcome)
    }
}
