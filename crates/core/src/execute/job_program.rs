//! Runs one cell of a program, which reads the job from its stdin, writes the report to its stdout,
//! and has the same typed outcomes as the guest.
//!
//! A program cannot report which object owns its `malloc`, so the dynamic linker reports it: the
//! checked process of a cell, which is never timed, runs with `LD_DEBUG=bindings`, and every
//! binding of the malloc family is compared with the library.

use super::bindings::bindings;
use super::child::{Launch, may_go_on, padded};
use super::memory_file::{memory_file, stream_file, text};
use super::program::Program;
use super::report::Report;
use super::stdout_program::Printed;
use super::{Attempt, Guest, Job, Outcome, Subject, only_guest, prove};
use crate::catalog::program::{Prints, Serves};
use crate::catalog::workload::ProgramRow;
use anyhow::{Context, Result};
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

impl Program {
    /// Runs one job, as a row of its own or under an allocator.
    pub fn run(
        &self,
        guest: &Guest,
        row: Option<&ProgramRow>,
        subject: &Subject,
        job: &Job,
        timeout: Duration,
        stop: &AtomicBool,
    ) -> Result<Attempt> {
        may_go_on(stop)?;
        let excepted = || subject.allocator.except.get(&self.name).cloned();
        let obstacle = match (&subject.refused, &self.absent) {
            (Some(outcome), _) => Some(outcome.clone()),
            (_, Some(why)) => Some(Outcome::Absent { why: why.clone() }),
            _ => self
                .refused
                .clone()
                .or_else(excepted)
                .or_else(|| only_guest(&subject.allocator))
                .map(|why| Outcome::Unsupported { why }),
        };
        if let Some(outcome) = obstacle {
            return Ok(Attempt::without_process(outcome));
        }
        let mut environment = self.environment.clone();
        environment.extend(row.into_iter().flat_map(|row| row.environment.clone()));
        environment.extend(subject.environment());
        if let Some(prints) = self.expects_stdout {
            let Prints::BinaryTrees = prints;
            let printed = Printed {
                program: self,
                row,
                subject,
                job,
                environment,
                launcher: guest.path(),
                timeout,
                stop,
            };
            return printed.run();
        }
        let asked = job.check && self.allocator == Serves::Any;
        if asked {
            environment.insert("LD_DEBUG".into(), "bindings".into());
        }
        let mut input = memory_file("heapmark-job")?;
        let output = stream_file("heapmark-report")?;
        input
            .write_all(job.text(subject).as_bytes())
            .and_then(|()| input.rewind())
            .context("cannot write a job")?;
        let command = &self.executable.command;
        let program = command.first().context("a program without a command")?;
        let variables = padded(&environment, job.padding);
        let mut launch = Launch::new(guest.path(), &[], &job.rules(), variables)?;
        launch
            .command
            .args(command)
            .current_dir(&self.executable.folder)
            .stdin(input)
            .stdout(output.try_clone().context("cannot hand on a memory file")?);
        let end = launch.run(timeout, stop, None)?;
        end.was_started(Path::new(program))?;
        let report_text = text(&output, 0);
        let report = Report::parse(&report_text);
        let proof = asked.then(|| bindings(&end.stderr(), |path| prove::is_wanted(subject, path)));
        let unproven = || prove::verify(subject, proof.as_ref()?).err();
        let outcome = end
            .outcome(report.phase(), report.failure())
            .or_else(|| unproven().map(|why| Outcome::NotLoaded { why }))
            .unwrap_or_else(|| report.verify_program(job.cold, job.iterations));
        let proof = proof.map(|proof| prove::relevant(subject, &proof));
        let measurement = outcome.is_ok().then(|| report.measurement());
        let attempt = Attempt::of_process(
            outcome,
            end,
            measurement,
            report_text,
            proof,
            environment,
            job,
        );
        Ok(attempt)
    }
}
