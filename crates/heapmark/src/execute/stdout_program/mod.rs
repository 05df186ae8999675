//! Programs without the job protocol: the whole process is the workload, from start to end, and its
//! correct output is known. It runs below a launcher, so that its peak memory is its own.
//!
//! A timed process is the plain program. Everything else that is asked of a row (the length of
//! pauses, the number of `malloc` calls) is measured in the processes of its check.

mod binary_trees;

use super::bindings::{bindings, without_bindings};
use super::child;
use super::exit::{End, LaunchedEnd};
use super::memory_file::{memory_file, stderr_file, stream_file, text};
use super::program::{Program, fill};
use super::report::Report;
use super::{Attempt, Iteration, Job, Measurement, Outcome, Subject, prove};
use crate::catalog::program::{Prints, Serves};
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
    /// Its whole stdout.
    pub text: String,
    /// Operations of the workload.
    pub operations: u64,
}

/// The parameters with another problem size.
fn resized(parameters: &BTreeMap<String, String>, n: u64) -> BTreeMap<String, String> {
    let mut parameters = parameters.clone();
    parameters.insert("n".into(), n.to_string());
    parameters
}

fn expected(prints: Prints, parameters: &BTreeMap<String, String>) -> Result<Expected, String> {
    match prints {
        Prints::BinaryTrees => binary_trees::expected(parameters),
    }
}

/// A row of a program without the job protocol, or the program under an allocator.
pub(super) struct Printed<'a> {
    pub program: &'a Program,
    pub prints: Prints,
    pub row: Option<&'a ProgramRow>,
    pub subject: &'a Subject,
    pub job: &'a Job,
    pub environment: BTreeMap<String, String>,
    pub launcher: &'a Path,
    pub timeout: Duration,
    pub stop: &'a AtomicBool,
}

/// One process that ran to its end.
struct Ran {
    end: End,
    said: String,
    /// Why the command could not be started.
    refused: Option<String>,
}

impl Printed<'_> {
    /// `None` if `stop` was set.
    pub fn run(&self) -> Result<Option<Attempt>> {
        if self.job.check {
            self.check()
        } else {
            self.measure()
        }
    }

    /// Makes the smallest run first, which times the start of the runtime, then the timed run.
    fn measure(&self) -> Result<Option<Attempt>> {
        let smallest = resized(&self.job.parameters, binary_trees::SMALLEST);
        let Some(start) = self.start(
            &self.program.executable.command,
            &smallest,
            &self.environment,
        )?
        else {
            return Ok(None);
        };
        if let Some(outcome) = self.fault(&start, &smallest) {
            return Ok(Some(self.attempt(
                outcome,
                start.end,
                Measurement::default(),
                None,
            )));
        }
        let parameters = &self.job.parameters;
        let Some(ran) = self.start(
            &self.program.executable.command,
            parameters,
            &self.environment,
        )?
        else {
            return Ok(None);
        };
        let outcome = self.fault(&ran, parameters).unwrap_or(Outcome::Ok);
        let usage = ran.end.usage.clone();
        let operations =
            expected(self.prints, parameters).map_or(0, |expected| expected.operations);
        let iteration = Iteration {
            wall_ns: usage.wall_ns,
            user_ns: usage.user_ns,
            sys_ns: usage.sys_ns,
            minor_faults: usage.minor_faults,
            ops: operations,
            ..Iteration::default()
        };
        let measurement = Measurement {
            iterations: vec![iteration],
            peak_rss_bytes: usage.max_rss_bytes,
            purge: "none".into(),
            figures: [("startup_ns".to_string(), start.end.usage.wall_ns as f64)].into(),
            ..Measurement::default()
        };
        Ok(Some(self.attempt(outcome, ran.end, measurement, None)))
    }

    /// Counts calls, then lets the program report on itself and the dynamic linker on its bindings.
    fn check(&self) -> Result<Option<Attempt>> {
        let mut figures = BTreeMap::new();
        // The calls do not depend on which allocator answers them, so the counting library takes
        // the place of a row's allocator; of the compared allocators, the one without a preload is
        // counted for all.
        let counts = self.row.is_some() || self.subject.library.files.is_empty();
        if let Some(counter) = self.program.counter.as_deref().filter(|_| counts) {
            figures.extend(
                self.calls_per_operation(counter)?
                    .map(|calls| ("malloc_calls_per_operation".into(), calls)),
            );
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
        let Some(ran) = self.start(command, &self.job.parameters, &environment)? else {
            return Ok(None);
        };
        let stderr = ran.end.stderr();
        let watched = Report::parse(&without_bindings(&stderr)).measurement();
        figures.extend(watched.figures);
        let proof = asked.then(|| bindings(&stderr, |path| prove::is_wanted(self.subject, path)));
        let outcome = self.fault(&ran, &self.job.parameters);
        let outcome = outcome
            .or_else(|| {
                Some(Outcome::NotLoaded {
                    why: prove::verify(self.subject, proof.as_ref()?).err()?,
                })
            })
            .or_else(|| self.unlike_its_name(&figures))
            .unwrap_or(Outcome::Ok);
        let measurement = Measurement {
            figures,
            notes: watched.notes,
            ..Measurement::default()
        };
        Ok(Some(self.attempt(outcome, ran.end, measurement, proof)))
    }

    fn unlike_its_name(&self, figures: &BTreeMap<String, f64>) -> Option<Outcome> {
        let (name, wanted) = self
            .row?
            .expects
            .iter()
            .find(|(name, wanted)| figures.get(*name) != Some(wanted))?;
        let found = figures.get(name).map_or("not told".into(), f64::to_string);
        Some(Outcome::Unsupported {
            why: format!("{name} is {found} here, and this row stands for {wanted}"),
        })
    }

    /// From the difference of two small runs, in which the start of the runtime cancels out.
    fn calls_per_operation(&self, counter: &Path) -> Result<Option<f64>> {
        let mut runs = Vec::new();
        for n in [binary_trees::SMALLEST, binary_trees::SMALL] {
            let parameters = resized(&self.job.parameters, n);
            let Some(calls) = self.count(counter, &parameters)? else {
                return Ok(None);
            };
            let operations = expected(self.prints, &parameters).map_or(0, |known| known.operations);
            runs.push((calls, operations as f64));
        }
        Ok(Some((runs[1].0 - runs[0].0) / (runs[1].1 - runs[0].1)))
    }

    /// Calls of allocating functions by the program and all its libraries; `None` if it did not do
    /// its work.
    fn count(&self, counter: &Path, parameters: &BTreeMap<String, String>) -> Result<Option<f64>> {
        const FUNCTIONS: [&str; 5] = ["malloc", "free", "calloc", "realloc", "aligned"];
        let counts = memory_file("heapmark-counts")?;
        counts
            .set_len(8 * FUNCTIONS.len() as u64)
            .context("cannot size a memory file")?;
        let mut environment = self.environment.clone();
        environment.insert("LD_PRELOAD".into(), counter.display().to_string());
        environment.insert(
            "COUNTS".into(),
            format!("/proc/{}/fd/{}", std::process::id(), counts.as_raw_fd()),
        );
        environment.insert("COUNTS_OF".into(), "all".into());
        let ran = self.start(&self.program.executable.command, parameters, &environment)?;
        if ran.is_none_or(|ran| self.fault(&ran, parameters).is_some()) {
            return Ok(None);
        }
        let mut numbers = [0; 8 * FUNCTIONS.len()];
        std::os::unix::fs::FileExt::read_exact_at(&counts, &mut numbers, 0)
            .context("reading counts")?;
        let calls = numbers
            .chunks(8)
            .zip(FUNCTIONS)
            .filter(|(_, name)| *name != "free");
        Ok(Some(
            calls
                .map(|(bytes, _)| u64::from_le_bytes(bytes.try_into().unwrap_or_default()) as f64)
                .sum(),
        ))
    }

    /// What is wrong with a process: the way it ended, or what it printed.
    fn fault(&self, ran: &Ran, parameters: &BTreeMap<String, String>) -> Option<Outcome> {
        if let Some(why) = ran.refused.clone() {
            return Some(Outcome::Unsupported { why });
        }
        let phase = if ran.said.is_empty() {
            Phase::Load
        } else {
            Phase::Run
        };
        if !ran.end.is_clean() {
            return ran.end.outcome(phase, &Report::parse(""));
        }
        let wanted = match expected(self.prints, parameters) {
            Ok(expected) => expected.text,
            Err(what) => return Some(Outcome::Error { what }),
        };
        if ran.said == wanted {
            return None;
        }
        Some(Outcome::WrongResult {
            what: difference(&ran.said, &wanted),
        })
    }

    /// Runs a command below the launcher.
    fn start(
        &self,
        command: &[String],
        parameters: &BTreeMap<String, String>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Option<Ran>> {
        let said = stream_file("heapmark-stdout")?;
        let (mut launch, account) = child::below(self.launcher, environment, self.job.padding)?;
        let command: Vec<String> = command.iter().map(|word| fill(word, parameters)).collect();
        launch
            .args(&command)
            .current_dir(&self.program.executable.folder)
            .stdin(Stdio::null());
        launch.stdout(said.try_clone().context("cannot hand on a memory file")?);
        let end = child::run(launch, stderr_file()?, self.timeout, self.stop, None)?;
        let Some(end) = end else { return Ok(None) };
        let LaunchedEnd { end, refused, .. } = end.launched(&account, &command[0]);
        Ok(Some(Ran {
            end,
            said: text(&said, 0),
            refused,
        }))
    }

    fn attempt(
        &self,
        outcome: Outcome,
        end: End,
        measurement: Measurement,
        proof: Option<super::Proof>,
    ) -> Attempt {
        let ok = outcome.is_ok();
        let report = measurement
            .figures
            .iter()
            .map(|(name, value)| format!("figure={name} {value}\n"))
            .collect();
        Attempt {
            outcome,
            measurement: ok.then_some(measurement),
            stderr: if ok { String::new() } else { end.last_words() },
            usage: Some(end.usage),
            proof: proof.map(|proof| prove::relevant(self.subject, &proof)),
            environment: Subject::record_environment(self.environment.clone(), self.job.padding),
            report,
        }
    }
}

/// The first line in which two different texts differ.
fn difference(said: &str, wanted: &str) -> String {
    // Line ends included: a line without its newline differs.
    let (mut said, mut wanted) = (said.split_inclusive('\n'), wanted.split_inclusive('\n'));
    let word = |line: Option<&str>| line.map_or("nothing more".into(), |line| format!("{line:?}"));
    std::iter::repeat_with(|| (said.next(), wanted.next()))
        .find(|(said, wanted)| said != wanted || said.is_none())
        .map_or_else(String::new, |(said, wanted)| {
            format!("printed {}, expected {}", word(said), word(wanted))
        })
}
