//! Processes of the user's command: compared with what it does under the baseline, and observed as
//! a process tree.

use super::{Processes, Session};
use crate::execute::user_command::{CommandRunner, PSS_MISSED, Tools};
use crate::execute::{Attempt, Job, Outcome, descendants};
use crate::observe::tree::TreeSampler;
use crate::plan::{Cell, UserCommand};
use anyhow::{Result, bail};
use std::path::PathBuf;

/// The library that reports which allocator serves memory, and the one that times calls.
pub const TOOLS: [&str; 2] = ["witness", "time-in-malloc"];

impl Processes {
    /// Runs the command once under a cell's allocator.
    pub(super) fn tried(
        &self,
        command: &UserCommand,
        cell: &Cell,
        job: &Job,
        timeout: std::time::Duration,
    ) -> Result<Option<Attempt>> {
        let (tools, baseline) = (self.tools()?, &self.selection.plan.baseline);
        let (launcher, stop) = (self.guest.path(), &*self.stop);
        let is_baseline = cell.allocator == *baseline
            || self.selection.plan.aa_copy.as_ref() == Some(&cell.allocator);
        let of = |subject| CommandRunner {
            command,
            tools: &tools,
            subject,
            is_baseline,
            job,
            launcher,
            timeout,
            stop,
        };
        if self.reference.get().is_none() {
            match of(self.selection.subject(baseline)?).reference()? {
                None => return Ok(None),
                Some(Ok(reference)) => _ = self.reference.set(reference),
                Some(Err(attempt)) if cell.allocator == *baseline => return Ok(Some(*attempt)),
                Some(Err(attempt)) => bail!(
                    "the command does not run under {baseline} any more: {}",
                    attempt.outcome
                ),
            }
        }
        let Some(reference) = self.reference.get() else {
            return Ok(None);
        };
        let mut watcher = TreeSampler::new(job.check);
        let mut look = |launcher| watcher.look(&descendants(launcher));
        let Some(mut attempt) =
            of(self.selection.subject(&cell.allocator)?).run(reference, &mut look)?
        else {
            return Ok(None);
        };
        if let Some(measurement) = &mut attempt.measurement {
            let seen = watcher.seen();
            // The kernel's own peak of the largest process misses nothing; the sum over a tree is
            // sampled from outside.
            measurement.peak_rss_bytes = measurement.peak_rss_bytes.max(seen.peak_rss_bytes);
            let figure = |name: &str| {
                measurement
                    .figures
                    .get(name)
                    .map_or(0, |value| *value as u64)
            };
            let missed = seen.missed(
                figure("largest_process_rss_bytes"),
                figure("processes") as usize,
            );
            let pss =
                (job.check && missed.is_none()).then_some(("peak_pss_bytes", seen.peak_pss_bytes));
            measurement.notes.extend(
                missed
                    .filter(|_| job.check)
                    .map(|why| (PSS_MISSED.to_owned(), why)),
            );
            let figures = [
                ("processes_at_once", seen.processes as u64),
                ("looks", seen.looks),
            ]
            .into_iter()
            .chain(pss);
            measurement
                .figures
                .extend(figures.map(|(name, value)| (name.to_owned(), value as f64)));
        }
        Ok(Some(attempt))
    }

    fn tools(&self) -> Result<Tools> {
        let library = |name: &str, file: &str| -> Result<PathBuf> {
            let found = self
                .selection
                .programs
                .iter()
                .find(|program| program.name == name);
            match found.map(|program| {
                (
                    program.refused.as_ref().or(program.absent.as_ref()),
                    program.executable.folder.join(file),
                )
            }) {
                Some((None, path)) if path.is_file() => Ok(path),
                Some((Some(why), _)) => bail!("{name}: {why}"),
                _ => bail!("{name} is gone: start a new run"),
            }
        };
        Ok(Tools {
            witness: library(TOOLS[0], "witness.so")?,
            timer: library(TOOLS[1], "time.so")?,
        })
    }
}

/// The user's command cannot be measured as it is: nothing could be compared with it.
#[derive(Debug)]
pub struct DoesNotRun(String);

impl std::fmt::Display for DoesNotRun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DoesNotRun {}

impl Session {
    /// Fails before anything is measured if the command does not run under the baseline: nothing
    /// could be compared with it.
    pub(super) fn refuse_what_does_not_run(&self) -> Result<()> {
        for (place, case) in self.selection.plan.cases.iter().enumerate() {
            let check = self.selection.plan.check_of_baseline(place);
            let Some((command, record)) = case.command().zip(self.known.get(&check.id)) else {
                continue;
            };
            match &record.outcome {
                Outcome::Ok => {}
                Outcome::Exit { code, .. } => {
                    let (line, under) = (command.line(), &check.allocator);
                    let words = record
                        .stderr
                        .lines()
                        .last()
                        .map_or(String::new(), |words| format!(": {words}"));
                    let meant = match command.expect_exit {
                        Some(meant) => format!("--expect-exit says {meant}"),
                        None => format!("if it is meant to: --expect-exit {code}"),
                    };
                    let why =
                        format!("{line} ended with exit code {code} under {under}{words}; {meant}");
                    return Err(DoesNotRun(why).into());
                }
                outcome => {
                    let hint = match outcome {
                        Outcome::WrongResult { .. } if command.check_output => {
                            "; what is not the same each time can be compared with nothing: leave out --check-output"
                        }
                        _ => "",
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
