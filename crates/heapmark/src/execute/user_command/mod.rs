//! Runs a user's command below the launcher, with the user's environment and allocator. heapmark
//! adds only a witness to each process, which reports the library that serves its memory. The whole
//! process is the workload.
//!
//! Probes that slow the command down (counting, tracing) run in processes of the baseline's check.

mod baseline_probes;
mod command_runner;
mod diagnosis;
mod in_malloc;
mod last_words;
mod malloc_probe;
mod output;
mod process;
mod server;
mod trees;

use super::{Attempt, Iteration, Measurement, Outcome, Subject};
use crate::catalog::Source;
use anyhow::Result;
use heapmark_wire::Phase;
use output::{OutputReader, Printed};
use process::{Ran, StepResult};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::Arc;
use trees::{Trees, programs};

pub use super::child::Look;
pub use baseline_probes::{NO_CEILING, SILENT, UNPROVEN, UNSEARCHED};
pub use command_runner::{CommandRunner, Tools};
pub use in_malloc::{CALLS_PER_S, SHARE};

/// Note: the exit code that every process ends with, if not 0.
pub const EXIT_CODE: &str = "exit_code";
/// Note: the last line of its stderr in that case.
pub const SAID: &str = "said";
/// Note: which libraries serve the command as the user calls it.
pub const SERVED_BY: &str = "served_by";
/// Note: why the peak of PSS was missed.
pub const PSS_MISSED: &str = "peak_pss_missed";

/// Before a different tree of programs counts against an allocator, the baseline runs up to this
/// many more times, to show whether its own tree varies.
const TREES: usize = 3;

/// What the command does under the baseline: it must do the same under every allocator.
pub struct Reference {
    baseline: Subject,
    code: i32,
    trees: RefCell<Trees>,
    /// What it prints, if output is compared.
    printed: Option<Arc<Printed>>,
}

impl Reference {
    /// Adds the programs that one more process of the baseline has executed.
    fn learn(&self, ran: &Ran) {
        if ran.left_behind == 0 {
            self.trees.borrow_mut().add(programs(&ran.witnessed));
        }
    }
}

impl CommandRunner<'_> {
    /// Runs the command to define what every allocator must reproduce. `None` if `stop` was set.
    pub fn reference(&self) -> StepResult<Reference> {
        let mut ran = match self.plain(None, None)? {
            None => return Ok(None),
            Some(Err(attempt)) => return Ok(Some(Err(attempt))),
            Some(Ok(ran)) => ran,
        };
        if let Some(outcome) = self.fault(&mut ran, None)? {
            return Ok(Some(Err(Box::new(self.attempt(
                outcome,
                ran,
                Measurement::default(),
            )))));
        }
        let code = ran.end.code().unwrap_or_default();
        if self.command.client.is_none() && code != self.command.expect_exit.unwrap_or(0) {
            let outcome = Outcome::Exit {
                code,
                phase: Phase::Run.word().into(),
            };
            return Ok(Some(Err(Box::new(self.attempt(
                outcome,
                ran,
                Measurement::default(),
            )))));
        }
        let printed = ran
            .output
            .take()
            .map(OutputReader::printed)
            .transpose()?
            .map(Arc::new);
        let reference = Reference {
            baseline: self.subject.clone(),
            code,
            trees: RefCell::default(),
            printed,
        };
        reference.learn(&ran);
        Ok(Some(Ok(reference)))
    }

    /// Compares the programs that a process executed with the baseline's. `None` if `stop` was set.
    fn other_tree(&self, ran: &Ran, reference: &Reference) -> Result<Option<Option<Outcome>>> {
        // Processes that are ended with the command may or may not have executed something by then.
        if self.command.tree_may_differ || ran.left_behind > 0 {
            return Ok(Some(None));
        }
        if self.is_baseline {
            reference.learn(ran);
            return Ok(Some(None));
        }
        let ours = programs(&ran.witnessed);
        let difference = || reference.trees.borrow().difference(&ours);
        for _ in 0..TREES {
            if difference().is_none() {
                return Ok(Some(None));
            }
            let baseline = CommandRunner {
                subject: &reference.baseline,
                is_baseline: true,
                ..*self
            };
            match baseline.plain(None, reference.printed.as_ref())? {
                None => return Ok(None),
                Some(Err(attempt)) => return Ok(Some(Some(attempt.outcome))),
                Some(Ok(ran)) => reference.learn(&ran),
            }
        }
        let what = |words| {
            let baseline = &reference.baseline.allocator.name;
            format!(
                "other programs than under {baseline} each time: {words}; if that may be: --tree-may-differ"
            )
        };
        Ok(Some(
            difference().map(|words| Outcome::WrongResult { what: what(words) }),
        ))
    }

    /// Runs a timed process, or a check.
    pub fn run(&self, reference: &Reference, look: Look<'_>) -> Result<Option<Attempt>> {
        if let Some(why) = self.subject.refused.clone() {
            return Ok(Some(Attempt::without_process(Outcome::NotLoaded { why })));
        }
        if self.subject.allocator.single_threaded {
            let why = "built without locks, for programs of one thread: whether this one has more is unknown".into();
            return Ok(Some(Attempt::without_process(Outcome::Unsupported { why })));
        }
        for _ in 0..if self.job.check {
            self.command.warmup
        } else {
            0
        } {
            match self.plain(None, reference.printed.as_ref())? {
                None => return Ok(None),
                Some(Err(attempt)) => return Ok(Some(*attempt)),
                Some(Ok(_)) => {}
            }
        }
        let mut ran = match self.plain(Some(look), reference.printed.as_ref())? {
            None => return Ok(None),
            Some(Err(attempt)) => return Ok(Some(*attempt)),
            Some(Ok(ran)) => ran,
        };
        if let Some(outcome) = self.fault(&mut ran, Some(reference))? {
            return Ok(Some(self.attempt(outcome, ran, Measurement::default())));
        }
        match self.other_tree(&ran, reference)? {
            None => return Ok(None),
            Some(None) => {}
            Some(Some(outcome)) => {
                return Ok(Some(self.attempt(outcome, ran, Measurement::default())));
            }
        }
        let mut measurement = self.measurement(&ran);
        if reference.code != 0 {
            let words = ran.end.last_words();
            let said = words
                .lines()
                .last()
                .map(|line| (SAID.to_string(), line.to_string()));
            measurement.notes.extend(
                [(EXIT_CODE.to_string(), reference.code.to_string())]
                    .into_iter()
                    .chain(said),
            );
        }
        if matches!(self.subject.allocator.source, Source::AsCalled) {
            let owner = |process: &malloc_probe::Witnessed| {
                let proof = &process.proof;
                proof
                    .owners
                    .get("malloc")
                    .map(|place| proof.objects[*place].path.clone())
            };
            let owners: BTreeSet<String> = ran.witnessed.iter().filter_map(owner).collect();
            let owners: Vec<String> = owners.into_iter().collect();
            measurement
                .notes
                .insert(SERVED_BY.into(), owners.join(", "));
        }
        if self.job.check
            && self.subject.allocator.name == reference.baseline.allocator.name
            && !self.asked(&mut measurement, &ran)?
        {
            return Ok(None);
        }
        Ok(Some(self.attempt(Outcome::Ok, ran, measurement)))
    }

    fn measurement(&self, ran: &Ran) -> Measurement {
        let usage = &ran.end.usage;
        let mut iteration = Iteration {
            wall_ns: usage.wall_ns,
            user_ns: usage.user_ns,
            sys_ns: usage.sys_ns,
            minor_faults: usage.minor_faults,
            // The whole command is one operation.
            ops: 1,
            ..Iteration::default()
        };
        if let Some(served) = &ran.served {
            (iteration.wall_ns, iteration.user_ns, iteration.sys_ns) =
                (served.wall_ns, served.cpu_ns, 0);
        }
        let mut measurement = Measurement {
            iterations: vec![iteration],
            peak_rss_bytes: usage.max_rss_bytes,
            purge: "none".into(),
            figures: [("processes".to_string(), ran.witnessed.len() as f64)].into(),
            ..Measurement::default()
        };
        measurement.figures.insert(
            "largest_process_rss_bytes".into(),
            usage.max_rss_bytes as f64,
        );
        if ran.left_behind > 0 {
            measurement
                .notes
                .insert("left_behind".into(), ran.left_behind.to_string());
        }
        measurement
    }

    fn attempt(&self, outcome: Outcome, ran: Ran, measurement: Measurement) -> Attempt {
        let ok = outcome.is_ok();
        let stderr = if ok {
            String::new()
        } else {
            ran.end.last_words()
        };
        let report = measurement
            .figures
            .iter()
            .map(|(name, value)| format!("figure={name} {value}\n"))
            .collect();
        let proof = ran.witnessed.into_iter().next().map(|first| first.proof);
        let mut usage = ran.end.usage;
        // Interference is CPU time that neither the server nor its client used.
        usage.user_ns += ran.served.map_or(0, |served| served.client_cpu_ns);
        Attempt {
            outcome,
            measurement: ok.then_some(measurement),
            stderr,
            usage: Some(usage),
            proof,
            // The user's own variables are not recorded: they may hold anything, also secrets.
            environment: Subject::record_environment(self.subject.environment(), self.job.padding),
            report,
        }
    }
}
