//! Processes of the user's command: compared with what it does under the baseline, and observed as
//! a process tree.

use super::{FIRST_TIMEOUT, Processes, Session};
use crate::build;
use crate::execute::turns::Side;
use crate::execute::user_command::{
    Aging, CommandRunner, EarlyEnd, PSS_MISSED, Reference, StepResult, Tools,
};
use crate::execute::{Attempt, Job, Outcome, Subject, descendants, held, last_useful_line};
use crate::observe::TreeSampler;
use crate::plan::{Cell, UserCommand};
use anyhow::{Result, bail};
use std::sync::Arc;
use std::time::Duration;

impl Processes {
    /// Runs the command once under a cell's allocator.
    pub(super) fn tried(
        &self,
        command: &UserCommand,
        cell: &Cell,
        job: &Job,
        timeout: Duration,
        mut watch: Option<&mut dyn FnMut(i32) -> Duration>,
    ) -> Result<Attempt> {
        let tools = self.tools()?;
        let subject = self.selection.subject(&cell.allocator)?;
        let variant = command.variant(subject.variant.as_deref());
        let side = job.side.as_ref().map_or(0, Side::index);
        // The command itself is that of the first variant.
        let of_baseline = &command.as_side(side);
        let command = command.as_variant(variant);
        let names_sides = command.names_sides();
        let command = &command.as_side(side);
        let baseline = self.selection.subject(&self.selection.plan.baseline)?;
        // The row whose behaviour this one must reproduce: the baseline or, for another build, the first row of that build.
        let model = variant.map(|variant| command.model_of(variant));
        let model = model.filter(|model| *model != &command.variants[0]);
        let model_row = match model {
            Some(model) => self.selection.row_of(model)?,
            None => baseline,
        };
        let launcher = self.guest.path();
        let stop = &*self.stop;
        let is_copy = self.selection.plan.aa_copy.as_ref() == Some(&cell.allocator);
        let is_baseline = cell.allocator == model_row.allocator.name || is_copy;
        let takes_turns = self.selection.plan.cases[cell.case].turns.is_some();
        let shares_files = takes_turns && !names_sides;
        // How long the command takes says nothing about how long its preparation takes.
        let prepare_timeout = self.selection.timeout_s;
        let prepare_timeout = prepare_timeout.map_or(FIRST_TIMEOUT, Duration::from_secs_f64);
        let of = |subject, job| CommandRunner {
            command,
            tools: &tools,
            subject,
            shares_files,
            is_baseline,
            job,
            launcher,
            timeout,
            prepare_timeout,
            stop,
        };
        // The reference runs without a limit: a limit must not change what the command does.
        let free = Job {
            limit: None,
            ..job.clone()
        };
        let case = self.selection.plan.works_like(cell.case);
        // The outcome of another row is not a result of this row.
        let without = |row: &Subject, end: EarlyEnd| {
            let attempt = match end {
                EarlyEnd::Error(error) => return Err(error),
                EarlyEnd::Attempt(attempt) => *attempt,
            };
            let name = &row.allocator.name;
            let outcome = &attempt.outcome;
            if cell.allocator == *name {
                return Ok(attempt);
            }
            if command.real.is_none() && *name == baseline.allocator.name {
                bail!("the command does not run under {name} any more: {outcome}");
            }
            let why = format!("it does not run under {name}: {outcome}");
            Ok(Attempt::without_process(Outcome::Unsupported { why }))
        };
        let like = model.map(|_| {
            let runner = CommandRunner {
                command: of_baseline,
                ..of(baseline, &free)
            };
            self.reference(case, &runner, None)
        });
        let like = match like.transpose() {
            Ok(like) => like,
            Err(end) => return without(baseline, end),
        };
        let reference = match self.reference(case, &of(model_row, &free), like.as_deref()) {
            Ok(reference) => reference,
            Err(end) => return without(model_row, end),
        };
        let mut watcher = TreeSampler::new(job.check);
        let mut look = |launcher| match &mut watch {
            Some(watch) => watch(launcher),
            None => watcher.look(&descendants(launcher)),
        };
        let mut attempt = of(subject, job).run(&reference, &mut look)?;
        if let Some(measurement) = &mut attempt.measurement {
            let seen = watcher.seen();
            // The kernel's own peak of the largest process misses nothing; the sum over a tree is
            // sampled from outside.
            measurement.peak_rss_bytes = measurement.peak_rss_bytes.max(seen.peak_rss_bytes);
            let figures = &mut measurement.figures;
            let figure = |name: &str| figures.get(name).map_or(0, |value| *value as u64);
            let largest_bytes = figure("largest_process_rss_bytes");
            let missed = seen.missed(largest_bytes, figure("processes") as usize);
            let mut add = |name: &str, value: u64| _ = figures.insert(name.into(), value as f64);
            add("processes_at_once", seen.processes as u64);
            add("looks", seen.looks);
            if job.check {
                add("idle_looks", seen.idle_looks);
                add("parallel_looks", seen.parallel_looks);
            }
            match missed {
                _ if !job.check => {}
                None => add("peak_pss_bytes", seen.peak_pss_bytes),
                Some(why) => _ = measurement.notes.insert(PSS_MISSED.into(), why),
            }
        }
        Ok(attempt)
    }

    /// Returns what a command does in a row, measured once; it must be the same as `like`, which the
    /// command does under the baseline.
    fn reference(
        &self,
        case: usize,
        row: &CommandRunner<'_>,
        like: Option<&Reference>,
    ) -> StepResult<Arc<Reference>> {
        let key = (case, row.subject.allocator.name.clone());
        // The lock is held meanwhile: if two sides of a duet begin with the same reference, one copies the input and
        // measures, and the other waits.
        let mut references = held(&self.references);
        if let Some(known) = references.get(&key) {
            return Ok(known.clone());
        }
        let reference = Arc::new(row.reference(like)?);
        references.insert(key, reference.clone());
        Ok(reference)
    }

    fn tools(&self) -> Result<Tools> {
        let aging = || -> Result<Aging> {
            Ok(Aging {
                litter: build::LITTER.find()?,
                sizes: build::SIZES.find()?,
            })
        };
        Ok(Tools {
            witness: build::WITNESS.find()?,
            timer: build::TIMER.find()?,
            reach: build::REACH.find()?,
            aging: self.selection.plan.age().map(|_| aging()).transpose()?,
        })
    }
}

/// Advice for a command that a library of its own serves.
const OTHER_BASELINE: &str = ". A library of the command serves it: compare allocators that are preloaded with each other \
     (--baseline mimalloc3), and with the command as it is by --keep-env";

/// The error that the user's command cannot be measured as it is: nothing could be compared with it.
#[derive(Debug)]
pub struct DoesNotRun(String);

impl std::fmt::Display for DoesNotRun {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DoesNotRun {}

impl Session {
    /// Fails before anything is measured if the command does not run under the baseline: nothing
    /// could be compared with it. Real programs are exempt: if one of them fails, only its rows
    /// fail.
    pub(super) fn refuse_what_does_not_run(&self) -> Result<()> {
        let cases = self.selection.plan.cases.iter().enumerate();
        for (place, case) in cases.filter(|(_, case)| !case.is_real_program()) {
            let check = self.selection.plan.check_of_baseline(place);
            let Some((command, record)) = case.command().zip(self.known.get(&check.id)) else {
                continue;
            };
            match &record.outcome {
                Outcome::Ok => {}
                Outcome::Exit { code, .. } => {
                    let line = command.line();
                    let under = &check.allocator;
                    let words = last_useful_line(&record.stderr);
                    let words = words.map_or(String::new(), |words| format!(": {words}"));
                    let meant = match command.expect_exit {
                        Some(meant) => format!("--expect-exit says {meant}"),
                        None => format!("if it is meant to: --expect-exit {code}"),
                    };
                    let why =
                        format!("{line} ended with exit code {code} under {under}{words}; {meant}");
                    return Err(DoesNotRun(why).into());
                }
                Outcome::WrongResult { what } => {
                    let hint = if command.check_output {
                        "; what is not the same each time can be compared with nothing: leave out --check-output"
                    } else {
                        ""
                    };
                    let line = command.line();
                    bail!(
                        "{line} cannot be tried under {}: {what}{hint}",
                        check.allocator
                    )
                }
                outcome => {
                    let hint = match outcome {
                        Outcome::NotLoaded { .. } => {
                            let by_system = super::preloaded::by_system();
                            let way_out = || OTHER_BASELINE.to_owned();
                            Some(by_system)
                                .filter(|text| !text.is_empty())
                                .unwrap_or_else(way_out)
                        }
                        _ => String::new(),
                    };
                    bail!(
                        "{} cannot be tried: under {} it ended {outcome}{hint}",
                        command.line(),
                        check.allocator
                    )
                }
            }
        }
        Ok(())
    }
}
