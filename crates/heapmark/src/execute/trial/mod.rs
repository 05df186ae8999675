//! A command of the user's, below the launcher: their environment, their allocator, and nothing of ours but a witness in each
//! process that says who serves its memory. The whole process is the workload.
//!
//! What takes longer than the plain command (counting, tracing) is asked in processes of the baseline's check.

mod asked;
mod executed;
mod fault;
mod in_malloc;
mod output;
mod process;
mod server;
mod witness;

use super::{Attempt, Iteration, Job, Measurement, Outcome, Subject};
use crate::plan::Trial;
use anyhow::Result;
use output::{Output, Printed};
use process::{Ran, Step};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub use super::child::Look;
pub use asked::{NO_CEILING, UNPROVEN, UNSEARCHED};
pub use in_malloc::{CALLS_PER_S, SHARE};

/// The libraries that are preloaded beside an allocator.
pub struct Tools {
    /// Says who serves memory; in every process.
    pub witness: PathBuf,
    /// Times calls of glibc's functions; in one process of the baseline's check.
    pub timer: PathBuf,
}

/// What the command does under the baseline: everybody must do the same.
pub struct Reference {
    /// Name of the baseline.
    baseline: String,
    code: i32,
    /// What it prints, where that is looked at.
    printed: Option<Arc<Printed>>,
}

/// The command under an allocator.
pub struct Tried<'a> {
    /// The command.
    pub trial: &'a Trial,
    /// The libraries.
    pub tools: &'a Tools,
    /// The allocator.
    pub subject: &'a Subject,
    /// Padding, and whether this is a check.
    pub job: &'a Job,
    /// The small program that starts it.
    pub launcher: &'a Path,
    /// How long a process may take.
    pub timeout: Duration,
    /// Set where all shall end.
    pub stop: &'a AtomicBool,
}

impl Tried<'_> {
    /// Runs it as everybody else must. `None` where `stop` was set meanwhile.
    pub fn reference(&self) -> Step<Reference> {
        let mut ran = match self.plain(None, None)? {
            None => return Ok(None),
            Some(Err(attempt)) => return Ok(Some(Err(attempt))),
            Some(Ok(ran)) => ran,
        };
        if let Some(outcome) = self.fault(&mut ran, None)? {
            return Ok(Some(Err(Box::new(self.attempt(outcome, ran, Measurement::default())))));
        }
        let (baseline, code) = (self.subject.allocator.name.clone(), ran.end.code().unwrap_or_default());
        let printed = ran.output.take().map(Output::printed).transpose()?.map(Arc::new);
        Ok(Some(Ok(Reference { baseline, code, printed })))
    }

    /// A timed process, or a check.
    pub fn run(&self, reference: &Reference, look: Look<'_>) -> Result<Option<Attempt>> {
        if let Some(why) = self.subject.refused.clone() {
            return Ok(Some(Attempt::without_process(Outcome::NotLoaded { why })));
        }
        if self.subject.allocator.single_threaded {
            let why = "built without locks, for programs of one thread: nobody knows whether this one has more".into();
            return Ok(Some(Attempt::without_process(Outcome::Unsupported { why })));
        }
        for _ in 0..if self.job.check { self.trial.warmup } else { 0 } {
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
        let mut measurement = self.measurement(&ran);
        if self.job.check && self.subject.allocator.name == reference.baseline && !self.asked(&mut measurement, &ran)? {
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
            // The whole of it is one operation.
            ops: 1,
            ..Iteration::default()
        };
        if let Some(served) = &ran.served {
            (iteration.wall_ns, iteration.user_ns, iteration.sys_ns) = (served.wall_ns, served.cpu_ns, 0);
        }
        let mut measurement = Measurement {
            iterations: vec![iteration],
            peak_rss_bytes: usage.max_rss_bytes,
            purge: "none".into(),
            figures: [("processes".to_string(), ran.witnessed.len() as f64)].into(),
            ..Measurement::default()
        };
        measurement.figures.insert("largest_process_rss_bytes".into(), usage.max_rss_bytes as f64);
        if ran.left_behind > 0 {
            measurement.notes.insert("left_behind".into(), ran.left_behind.to_string());
        }
        measurement
    }

    fn attempt(&self, outcome: Outcome, ran: Ran, measurement: Measurement) -> Attempt {
        let ok = outcome.is_ok();
        let stderr = if ok { String::new() } else { ran.end.last_words() };
        let report = measurement.figures.iter().map(|(name, value)| format!("figure={name} {value}\n")).collect();
        let proof = ran.witnessed.into_iter().next().map(|first| first.proof);
        let mut usage = ran.end.usage;
        // What else the machine did is what neither of the two did.
        usage.user_ns += ran.served.map_or(0, |served| served.client_cpu_ns);
        Attempt {
            outcome,
            measurement: ok.then_some(measurement),
            stderr,
            usage: Some(usage),
            proof,
            // Of the user's own variables nothing is kept: they hold whatever they hold.
            environment: Subject::record_environment(self.subject.environment(), self.job.padding),
            report,
        }
    }
}
