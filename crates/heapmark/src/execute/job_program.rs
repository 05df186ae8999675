//! One cell of a program: the job on its stdin, the report on its stdout, the same typed outcomes
//! as for the guest.
//!
//! A program cannot report which object owns its `malloc`, so the dynamic linker reports it: the
//! checked process of a cell, which is never timed, runs with `LD_DEBUG=bindings`, and every
//! binding of the malloc family is compared with the library.

use super::bindings::bindings;
use super::child;
use super::memory_file::{memory_file, stderr_file, stream_file, text};
use super::program::Program;
use super::report::Report;
use super::stdout_program::Printed;
use super::{Attempt, Guest, Job, Outcome, Subject, prove};
use crate::catalog::program::Serves;
use crate::catalog::workload::ProgramRow;
use anyhow::{Context, Result};
use heapmark_wire::Phase;
use std::io::{Seek, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

impl Program {
    /// Runs one job, as a row of its own or under an allocator. `None` if `stop` was set.
    pub fn run(
        &self,
        guest: &Guest,
        row: Option<&ProgramRow>,
        subject: &Subject,
        job: &Job,
        timeout: Duration,
        stop: &AtomicBool,
    ) -> Result<Option<Attempt>> {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let end = |outcome| Ok(Some(Attempt::without_process(outcome)));
        if let Some(why) = subject.refused.clone() {
            return end(Outcome::NotLoaded { why });
        }
        if let Some(why) = self.absent.clone() {
            return end(Outcome::Absent { why });
        }
        if let Some(why) = self
            .refused
            .clone()
            .or_else(|| subject.allocator.except.get(&self.name).cloned())
        {
            return end(Outcome::Unsupported { why });
        }
        let mut environment = self.environment.clone();
        environment.extend(row.into_iter().flat_map(|row| row.environment.clone()));
        environment.extend(subject.environment());
        if let Some(prints) = self.expects_stdout {
            let launcher = guest.path();
            return Printed {
                program: self,
                prints,
                row,
                subject,
                job,
                environment,
                launcher,
                timeout,
                stop,
            }
            .run();
        }
        let asked = job.check && self.allocator == Serves::Any;
        if asked {
            environment.insert("LD_DEBUG".into(), "bindings".into());
        }
        let (mut command, account) = child::below(guest.path(), &environment, job.padding)?;
        let (program, output) = self.command(&mut command, &job.text(subject))?;
        let Some(end) = child::run(command, stderr_file()?, timeout, stop, None)? else {
            return Ok(None);
        };
        let end = end.started(&account, program)?;
        let said = text(&output, 0);
        let report = Report::parse(&said);
        let proof = asked.then(|| bindings(&end.stderr(), |path| prove::is_wanted(subject, path)));
        // A program that reports the end of its work has left phase `load`, even if it reports no
        // phases.
        let phase = if report.is_complete() {
            Phase::Done
        } else {
            report.phase()
        };
        let outcome = match end.outcome(phase, &report) {
            Some(outcome) => outcome,
            None => match proof.as_ref().map(|proof| prove::verify(subject, proof)) {
                Some(Err(why)) => Outcome::NotLoaded { why },
                _ => report.verify_program(job.cold, job.iterations),
            },
        };
        let proof = proof.map(|proof| prove::relevant(subject, &proof));
        Ok(Some(Attempt::of_process(
            outcome,
            end,
            &report,
            &said,
            proof,
            environment,
            job,
        )))
    }

    /// Appends the program to a command and gives it the job on stdin. Returns its name, and the
    /// file that receives its report.
    fn command(&self, command: &mut Command, job: &str) -> Result<(&Path, std::fs::File)> {
        let (mut input, output) = (
            memory_file("heapmark-job")?,
            stream_file("heapmark-report")?,
        );
        input
            .write_all(job.as_bytes())
            .and_then(|()| input.rewind())
            .context("cannot write a job")?;
        let first = self
            .executable
            .command
            .first()
            .context("a program without a command")?;
        command
            .args(&self.executable.command)
            .current_dir(&self.executable.folder)
            .stdin(input);
        command.stdout(output.try_clone().context("cannot hand on a memory file")?);
        Ok((Path::new(first), output))
    }
}
