//! Runs the processes of a plan: the negative control, a calibration per case, a checked process
//! per case and allocator, then the blocks. Every process is stored before the next one starts.

mod blocks;
mod calibrate;
mod checks;
mod failures;
mod passed;
mod present;
mod process;
mod user_command;

pub(in crate::cmd) use calibrate::FIRST_TIMEOUT;
pub(in crate::cmd) use user_command::TOOLS;

use super::progress::Progress;
use super::select::Selection;
use crate::execute::child::adopt_orphans;
use crate::execute::{Guest, Subject};
use crate::observe::interference::Counters;
use crate::observe::preflight::{Preflight, When};
use crate::observe::root::Root;
use crate::plan::{Case, Cell};
use crate::store::{Purpose, Record, Records, RunFile, Store};
use anyhow::{Result, bail};
use failures::Failures;
use passed::Shelf;
use process::{now, record};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A run in progress.
pub(in crate::cmd) struct Session {
    guest: Guest,
    selection: Selection,
    store: Option<Store>,
    known: Records,
    failures: Failures,
    counters: Counters,
    /// Parts that were repeated.
    repeats: usize,
    measured_ns: u64,
    stop: Arc<AtomicBool>,
    reference: user_command::Known,
    /// Checks that earlier runs have passed; open once the negative control has shown the C
    /// library.
    shelf: Option<Shelf>,
    /// Whether they are repeated nevertheless.
    check_again: bool,
    /// Memory that was available before the first process.
    memory_bytes: Option<u64>,
}

/// The negative control's cell.
const CONTROL: &str = "control";

/// How a run ended.
pub(in crate::cmd) struct Ended {
    /// False if a signal ended it early.
    pub(in crate::cmd) whole: bool,
    /// The whole run: process starts, proofs, calibration, checks, the store.
    pub(in crate::cmd) took: Duration,
    /// The measured phases in it, including cold iterations.
    pub(in crate::cmd) measured: Duration,
}

/// A signal has stopped the run; everything measured is stored.
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
        adopt_orphans();
        let (failures, counters) = (Failures::of(&known), Counters::open(&Root::machine()));
        let (known, reference) = (known.into_iter().collect(), Default::default());
        let memory_bytes = Root::machine().memory_bytes("MemAvailable");
        Session {
            guest,
            selection,
            store,
            known,
            failures,
            counters,
            repeats: 0,
            measured_ns: 0,
            stop,
            reference,
            shelf: None,
            check_again: false,
            memory_bytes,
        }
    }

    /// Runs what is not stored yet; with `check_again`, also the checks that earlier runs have
    /// passed.
    pub(in crate::cmd) fn run(mut self, head: &RunFile, root: &Root, check_again: bool) -> Result<Ended> {
        self.check_again = check_again;
        let (checks, began) = (self.selection.plan.checks(), Instant::now());
        let mut progress = Progress::new(checks.len() + self.selection.plan.cells().len());
        let done = self.all(head, &checks, &mut progress);
        progress.finish();
        let whole = match done {
            Err(error) if error.is::<Interrupted>() => false,
            done => done.map(|()| true)?,
        };
        if let Some(store) = &self.store {
            store.keep_preflight(When::After, Preflight::look(root, When::After))?;
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
        self.checks(checks, &paces, progress)?;
        self.corners(progress)?;
        self.blocks(head, &paces, progress)
    }

    /// The negative control: without a preload the proof must show libc. Once per run, and again if
    /// it failed: `--resume` does not skip it.
    fn control(&mut self) -> Result<()> {
        if self.known.get(CONTROL).is_some_and(|record| record.outcome.is_ok()) {
            return Ok(());
        }
        let (libc, started) = (Subject::libc(), now());
        let attempt = self.guest.control(&libc, &self.stop)?.ok_or(Interrupted)?;
        let outcome = attempt.outcome.clone();
        let cell = Cell { id: CONTROL.into(), allocator: libc.allocator.name, seed: 1, ..Cell::default() };
        self.keep(record(Purpose::Control, &cell, "churn", 1, started, attempt), None)?;
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

    /// Stores a process, with its memory over time if that was sampled.
    fn keep(&mut self, mut record: Record, series: Option<&str>) -> Result<()> {
        if let (Purpose::Sample, Some(measurement)) = (record.purpose, &record.measurement) {
            self.measured_ns += measurement.iterations.iter().map(|iteration| iteration.wall_ns).sum::<u64>();
        }
        if let Some(store) = &mut self.store {
            store.append(&mut record, series)?;
        }
        self.failures.add(&record);
        _ = self.known.add(record);
        Ok(())
    }
}
