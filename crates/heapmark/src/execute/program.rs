//! One cell of a program: the job on its stdin, the report on its stdout, the same typed outcomes
//! as for the guest.
//!
//! A program cannot report which object owns its `malloc`, so the dynamic linker reports it: the
//! checked process of a cell, which is never timed, runs with `LD_DEBUG=bindings`, and every
//! binding of the malloc family is compared with the library.

use super::child;
use super::memory_file::{memory_file, stderr_file, stream_file, text};
use super::report::Report;
use super::stdout_program::Printed;
use super::{Attempt, Guest, Job, LoadedObject, Outcome, Proof, Subject, prove};
use crate::build::Executable;
use crate::catalog::malloc_api;
use crate::catalog::program::{Prints, Serves};
use crate::catalog::workload::ProgramRow;
use anyhow::{Context, Result};
use heapmark_wire::Phase;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A program and its files on this machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Program {
    /// Its name in the catalogue.
    pub name: String,
    /// Which allocator serves its memory.
    pub allocator: Serves,
    /// Variables that are set in its process.
    pub environment: BTreeMap<String, String>,
    /// The command that is started.
    pub executable: Executable,
    /// What it must print, if it does not speak the job protocol.
    #[serde(default)]
    pub expects_stdout: Option<Prints>,
    /// For a program without the job protocol: a library that counts calls of the malloc family.
    #[serde(default)]
    pub counter: Option<PathBuf>,
    /// Why it cannot be started: its cells end `unsupported`.
    pub refused: Option<String>,
    /// What it needs but this machine does not have: its cells end `absent`.
    #[serde(default)]
    pub absent: Option<String>,
}

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
        if let Some(why) = self.refused.clone().or_else(|| subject.allocator.except.get(&self.name).cloned()) {
            return end(Outcome::Unsupported { why });
        }
        let mut environment = self.environment.clone();
        environment.extend(row.into_iter().flat_map(|row| row.environment.clone()));
        environment.extend(subject.environment());
        if let Some(prints) = self.expects_stdout {
            let launcher = guest.path();
            return Printed { program: self, prints, row, subject, job, environment, launcher, timeout, stop }.run();
        }
        let asked = job.check && self.allocator == Serves::Any;
        if asked {
            environment.insert("LD_DEBUG".into(), "bindings".into());
        }
        let (mut command, account) = child::below(guest.path(), &environment, job.padding)?;
        let (program, output) = self.command(&mut command, &job.text(subject))?;
        let Some(end) = child::run(command, stderr_file()?, timeout, stop, None)? else { return Ok(None) };
        let end = end.started(&account, program)?;
        let said = text(&output, 0);
        let report = Report::parse(&said);
        let proof = asked.then(|| bindings(&end.stderr(), |path| prove::is_wanted(subject, path)));
        // A program that reports the end of its work has left phase `load`, even if it reports no
        // phases.
        let phase = if report.is_complete() { Phase::Done } else { report.phase() };
        let outcome = match end.outcome(phase, &report) {
            Some(outcome) => outcome,
            None => match proof.as_ref().map(|proof| prove::verify(subject, proof)) {
                Some(Err(why)) => Outcome::NotLoaded { why },
                _ => report.verify_program(job.cold, job.iterations),
            },
        };
        let proof = proof.map(|proof| prove::relevant(subject, &proof));
        Ok(Some(Attempt::of_process(outcome, end, &report, &said, proof, environment, job)))
    }

    /// Appends the program to a command and gives it the job on stdin. Returns its name, and the
    /// file that receives its report.
    fn command(&self, command: &mut Command, job: &str) -> Result<(&Path, std::fs::File)> {
        let (mut input, output) = (memory_file("heapmark-job")?, stream_file("heapmark-report")?);
        input.write_all(job.as_bytes()).and_then(|()| input.rewind()).context("cannot write a job")?;
        let first = self.executable.command.first().context("a program without a command")?;
        command.args(&self.executable.command).current_dir(&self.executable.folder).stdin(input);
        command.stdout(output.try_clone().context("cannot hand on a memory file")?);
        Ok((Path::new(first), output))
    }
}

/// Fills one word of a command: `{n}` becomes the value of parameter `n`; other braces stay.
pub fn fill(word: &str, parameters: &BTreeMap<String, String>) -> String {
    parameters.iter().fold(word.to_string(), |word, (name, value)| word.replace(&format!("{{{name}}}"), value))
}

/// The objects that the malloc family was bound to, from lines like ``12: binding file ./a [0] to
/// /lib/libc.so.6 [0]: normal symbol `malloc' [GLIBC_2.2.5]``. If a function was bound to several
/// objects, one that is not `wanted` counts: a single stray caller makes the program use two heaps.
pub(super) fn bindings(text: &str, wanted: impl Fn(&Path) -> bool) -> Proof {
    let mut proof = Proof::default();
    for line in text.lines() {
        let Some((_, line)) = line.split_once("binding file ") else { continue };
        let Some((from, line)) = line.split_once(" to ") else { continue };
        let Some((path, line)) = line.split_once(" [") else { continue };
        // An allocator may consist of two files, where one binds the other and no program does:
        // both were loaded.
        let from = from.split(" [").next().unwrap_or_default();
        [from, path].iter().filter(|path| wanted(Path::new(path))).for_each(|path| _ = place(&mut proof, path));
        let function = line.split_once('`').and_then(|(_, rest)| rest.split_once('\''));
        let Some((function, _)) = function.filter(|(name, _)| malloc_api::required().any(|known| known == *name))
        else {
            continue;
        };
        let place = place(&mut proof, path);
        // A function that the library itself takes from the C library, for instance a wrapper's
        // original `free`, does not count.
        let own_affair = wanted(Path::new(from)) && !wanted(Path::new(path));
        if !own_affair && (!wanted(Path::new(path)) || !proof.owners.contains_key(function)) {
            proof.owners.insert(function.to_string(), place);
        }
    }
    proof
}

/// A program's output without the lines of the dynamic linker, which may start in the middle of a
/// line: functions are bound when they are first called, and many programs write a line with
/// several calls.
pub(super) fn without_bindings(text: &str) -> String {
    let own = |line: &'_ str| match line.find(":\t") {
        Some(end) => line[..end].trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(' ').len(),
        None => line.len(),
    };
    text.split_inclusive('\n').map(|line| &line[..own(line)]).collect()
}

/// The index of an object in a proof; adds the object if it is new.
fn place(proof: &mut Proof, path: &str) -> usize {
    proof.objects.iter().position(|object| object.path == path).unwrap_or_else(|| {
        let file = std::fs::metadata(path);
        let (device, inode) = file.map_or((0, 0), |file| (file.dev(), file.ino()));
        proof.objects.push(LoadedObject { path: path.into(), device, inode, build_id: String::new() });
        proof.objects.len() - 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_may_write_into_the_middle_of_a_line() {
        let binding = "       812:\tbinding file ./a [0] to /lib/libc.so.6 [0]: normal symbol `fputs' [GLIBC_2.2.5]\n";
        let text = format!("{binding}figure={binding}depth 4{binding}1\n{binding}figure=releases 7\n");
        assert_eq!(without_bindings(&text), "figure=depth 41\nfigure=releases 7\n");
    }

    #[test]
    fn the_linker_says_who_was_bound() {
        let text = "   12:\tbinding file ./a [0] to /lib/x.so [0]: normal symbol `malloc' [GLIBC_2.2.5]\n\
            12:\tbinding file ./a [0] to /lib/libc.so.6 [0]: normal symbol `puts' [GLIBC_2.2.5]\n\
            12:\tbinding file /lib/y.so [0] to /lib/z.so [0]: normal symbol `free'\n\
            12:\tbinding file ./a [0] to /lib/x.so [0]: normal symbol `free'\n\
            12:\tbinding file /lib/x.so [0] to /lib/libc.so.6 [0]: normal symbol `calloc'\nmalloc `free' nonsense\n";
        let proof = bindings(text, |path| path.ends_with("x.so"));
        let owner = |function: &str| proof.objects[proof.owners[function]].path.as_str();
        assert_eq!((owner("malloc"), owner("free"), proof.owners.len()), ("/lib/x.so", "/lib/z.so", 2));
    }
}
