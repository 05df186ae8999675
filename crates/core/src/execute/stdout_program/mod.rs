//! Programs without the job protocol: the whole process is the workload, from start to end, and its
//! correct output is known. It runs below a launcher, so that its peak memory is its own.
//!
//! A timed process is the plain program. Everything else that is asked of a row (the length of
//! pauses, the number of `malloc` calls) is measured in the processes of its check.

mod binary_trees;

use super::bindings::{bindings, without_bindings};
use super::child::{Launch, padded};
use super::exit::End;
use super::memory_file::{memory_file, numbers, stream_file, text};
use super::program::{Program, fill};
use super::report::Report;
use super::{Attempt, Job, Measurement, Outcome, Proof, Subject, prove};
use crate::catalog::program::Serves;
use crate::catalog::workload::ProgramRow;
use anyhow::{Context, Result};
use heapmark_wire::Phase;
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// What a program must print, and how much work that is.
pub struct Expected {
    /// The whole stdout.
    pub text: String,
    /// The number of operations of the workload.
    pub operations: u64,
}

/// Returns the parameters with another problem size.
fn resized(parameters: &BTreeMap<String, String>, n: u64) -> BTreeMap<String, String> {
    let mut parameters = parameters.clone();
    parameters.insert("n".into(), n.to_string());
    parameters
}

/// A row of a program without the job protocol, or the program under an allocator.
pub(super) struct Printed<'a> {
    pub program: &'a Program,
    pub row: Option<&'a ProgramRow>,
    pub subject: &'a Subject,
    pub job: &'a Job,
    pub environment: BTreeMap<String, String>,
    pub launcher: &'a Path,
    pub timeout: Duration,
    pub stop: &'a AtomicBool,
}

/// A process that ran to its end.
struct Ran {
    end: End,
    said: String,
    expected: Result<Expected, String>,
    /// Why the command could not be started.
    refused: Option<String>,
}

impl Ran {
    fn operations(&self) -> u64 {
        let expected = self.expected.as_ref();
        expected.map_or(0, |expected| expected.operations)
    }

    /// Returns what is wrong with the process: the way it ended, or what it printed.
    fn fault(&self) -> Option<Outcome> {
        if let Some(why) = self.refused.clone() {
            return Some(Outcome::Unsupported { why });
        }
        if self.end.code() != Some(0) {
            let silent = self.said.is_empty();
            let phase = if silent { Phase::Load } else { Phase::Run };
            return self.end.outcome(phase, None);
        }
        match &self.expected {
            Err(what) => Some(Outcome::Error { what: what.clone() }),
            Ok(wanted) if self.said == wanted.text => None,
            Ok(wanted) => Some(Outcome::WrongResult {
                what: difference(&self.said, &wanted.text),
            }),
        }
    }
}

impl Printed<'_> {
    pub fn run(&self) -> Result<Attempt> {
        if self.job.check {
            self.check()
        } else {
            self.measure()
        }
    }

    /// Makes the smallest run first, which times the start of the runtime, then the timed run.
    fn measure(&self) -> Result<Attempt> {
        let command = &self.program.executable.command;
        let parameters = &self.job.parameters;
        let smallest = resized(parameters, binary_trees::SMALLEST);
        let start = self.start(command, &smallest, &self.environment)?;
        if let Some(outcome) = start.fault() {
            return Ok(self.attempt(outcome, start.end, Measurement::default(), None));
        }
        let ran = self.start(command, parameters, &self.environment)?;
        let outcome = ran.fault().unwrap_or(Outcome::Ok);
        let startup_ns = start.end.launched.wall_ns as f64;
        let measurement = Measurement {
            figures: [("startup_ns".to_string(), startup_ns)].into(),
            ..Measurement::of_whole_process(&ran.end.launched, ran.operations())
        };
        Ok(self.attempt(outcome, ran.end, measurement, None))
    }

    /// Counts calls, then lets the program report on itself and the dynamic linker on its bindings.
    fn check(&self) -> Result<Attempt> {
        let mut figures = BTreeMap::new();
        // The calls do not depend on the allocator that answers them, so the counting library takes
        // the place of a row's allocator. Among the compared allocators, only the one without a
        // preload is counted, and its counts apply to all.
        let counts = self.row.is_some() || self.subject.library.files.is_empty();
        if let Some(counter) = self.program.counter.as_deref().filter(|_| counts) {
            let calls = self.calls_per_operation(counter)?;
            figures.extend(calls.map(|calls| ("malloc_calls_per_operation".into(), calls)));
        }
        let asked = self.program.allocator == Serves::Any;
        let mut environment = self.environment.clone();
        if asked {
            environment.insert("LD_DEBUG".into(), "bindings".into());
        }
        let command = match self.program.executable.probe.as_slice() {
            [] => &self.program.executable.command,
            probe => probe,
        };
        let ran = self.start(command, &self.job.parameters, &environment)?;
        let stderr = ran.end.stderr();
        let watched = Report::parse(&without_bindings(&stderr)).measurement();
        figures.extend(watched.figures);
        let proof = asked.then(|| bindings(&stderr, |path| prove::is_wanted(self.subject, path)));
        let unproven = || {
            let why = prove::verify(self.subject, proof.as_ref()?).err()?;
            Some(Outcome::NotLoaded { why })
        };
        let outcome = ran
            .fault()
            .or_else(unproven)
            .or_else(|| self.unlike_its_name(&figures))
            .unwrap_or(Outcome::Ok);
        let measurement = Measurement {
            figures,
            notes: watched.notes,
            ..Measurement::default()
        };
        Ok(self.attempt(outcome, ran.end, measurement, proof))
    }

    fn unlike_its_name(&self, figures: &BTreeMap<String, f64>) -> Option<Outcome> {
        let (name, wanted) = self
            .row?
            .expects
            .iter()
            .find(|(name, wanted)| figures.get(*name) != Some(wanted))?;
        let found = figures.get(name).map_or("not told".into(), f64::to_string);
        let why = format!("{name} is {found} here, and this row stands for {wanted}");
        Some(Outcome::Unsupported { why })
    }

    /// Returns the calls of allocating functions per operation, from the difference of two small runs: the start of
    /// the runtime cancels out.
    fn calls_per_operation(&self, counter: &Path) -> Result<Option<f64>> {
        let smallest = self.count(counter, binary_trees::SMALLEST)?;
        let Some((few, few_operations)) = smallest else {
            return Ok(None);
        };
        let small = self.count(counter, binary_trees::SMALL)?;
        Ok(small.map(|(more, operations)| (more - few) / (operations - few_operations)))
    }

    /// Returns the calls of allocating functions by the program and all its libraries, and its
    /// operations; `None` if it did not do its work.
    fn count(&self, counter: &Path, n: u64) -> Result<Option<(f64, f64)>> {
        const FUNCTIONS: u64 = 5;
        let counts = memory_file("heapmark-counts")?;
        counts
            .set_len(8 * FUNCTIONS)
            .context("cannot size a memory file")?;
        let file = format!("/proc/{}/fd/{}", std::process::id(), counts.as_raw_fd());
        let mut environment = self.environment.clone();
        environment.insert("LD_PRELOAD".into(), counter.display().to_string());
        environment.insert("COUNTS".into(), file);
        environment.insert("COUNTS_OF".into(), "all".into());
        let parameters = resized(&self.job.parameters, n);
        let ran = self.start(&self.program.executable.command, &parameters, &environment)?;
        if ran.fault().is_some() {
            return Ok(None);
        }
        let [malloc, _free, calloc, realloc, aligned] =
            numbers(&counts).context("reading counts")?;
        let calls = malloc + calloc + realloc + aligned;
        Ok(Some((calls as f64, ran.operations() as f64)))
    }

    /// Runs a command below the launcher.
    fn start(
        &self,
        command: &[String],
        parameters: &BTreeMap<String, String>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Ran> {
        let output = stream_file("heapmark-stdout")?;
        let command: Vec<String> = command.iter().map(|word| fill(word, parameters)).collect();
        let variables = padded(environment, self.job.padding);
        let mut launch = Launch::new(self.launcher, &[], &self.job.rules(), variables)?;
        launch
            .command
            .args(&command)
            .current_dir(&self.program.executable.folder)
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("cannot hand on a memory file")?);
        let end = launch.run(self.timeout, self.stop, None)?;
        Ok(Ran {
            said: text(&output, 0),
            expected: binary_trees::expected(parameters),
            refused: end.refused(&command[0]),
            end,
        })
    }

    fn attempt(
        &self,
        outcome: Outcome,
        end: End,
        measurement: Measurement,
        proof: Option<Proof>,
    ) -> Attempt {
        let proof = proof.map(|proof| prove::relevant(self.subject, &proof));
        let environment = self.environment.clone();
        Attempt::of_whole_process(outcome, end, measurement, proof, environment, self.job)
    }
}

/// Returns the first line in which two different texts differ.
fn difference(printed: &str, wanted: &str) -> String {
    // Lines are compared with their ends: a line without its newline differs.
    let mut printed = printed.split_inclusive('\n');
    let mut wanted = wanted.split_inclusive('\n');
    let word = |line: Option<&str>| line.map_or("nothing more".into(), |line| format!("{line:?}"));
    std::iter::repeat_with(|| (printed.next(), wanted.next()))
        .find(|(printed, wanted)| printed != wanted || printed.is_none())
        .map_or_else(String::new, |(printed, wanted)| {
            format!("printed {}, expected {}", word(printed), word(wanted))
        })
}
