//! One cell -> a fresh child process -> an [`Outcome`]: environment, proof, limits, timeout, kill the group.

mod child;
mod guest;
mod job;
pub mod measurement;
pub mod outcome;
pub mod program;
mod prove;
mod report;

pub use guest::Guest;
pub use job::Job;
pub use measurement::{Iteration, LoadedObject, Measurement, Proof, ThreadTime, Usage};
pub use outcome::Outcome;
pub use program::Program;

use crate::build::Library;
use crate::catalog::Allocator;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// An allocator and the files that stand for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// The catalogue entry.
    pub allocator: Allocator,
    /// What is preloaded.
    pub library: Library,
    /// Why nothing can be preloaded, where the user asked for a library that cannot be used: its cells end `not-loaded`.
    pub refused: Option<String>,
}

/// What came of one process.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// How it ended.
    pub outcome: Outcome,
    /// What it measured; only with [`Outcome::Ok`].
    pub measurement: Option<Measurement>,
    /// What the kernel counted for it.
    pub usage: Option<Usage>,
    /// Who served the malloc family.
    pub proof: Option<Proof>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// The end of what it wrote to stderr, unless it ended `ok`.
    pub stderr: String,
    /// What the process said, word for word.
    pub report: String,
}

impl Attempt {
    /// An end without a process.
    pub fn without_process(outcome: Outcome) -> Attempt {
        Attempt {
            outcome,
            measurement: None,
            usage: None,
            proof: None,
            environment: BTreeMap::new(),
            stderr: String::new(),
            report: String::new(),
        }
    }
}

/// Runs one job under one allocator. `None` where `stop` was set meanwhile: the process is gone and nothing was learned.
pub fn run(
    guest: &Guest,
    subject: &Subject,
    job: &Job,
    timeout: Duration,
    stop: &AtomicBool,
) -> Result<Option<Attempt>> {
    if let Some(why) = subject.refused.clone() {
        return Ok(Some(Attempt::without_process(Outcome::NotLoaded { why })));
    }
    if let Some(why) = subject.cannot_run(&job.kernel) {
        return Ok(Some(Attempt::without_process(Outcome::Unsupported { why })));
    }
    let environment = subject.environment();
    let page = child::SharedPage::new(&job.text(subject))?;
    let Some(end) = child::run(page.command(guest), &environment, job.padding, timeout, stop)? else { return Ok(None) };
    let report = report::Report::parse(page.report());
    let proof = report.proof_is_complete().then(|| report.proof());
    let outcome = match proof.map(|proof| prove::verify(subject, proof)) {
        // Another allocator served this process: however it ended says nothing about this one.
        Some(Err(why)) => Outcome::NotLoaded { why },
        proved => match end.outcome(page.phase(), &report) {
            Some(outcome) => outcome,
            None if proved.is_none() => Outcome::NotLoaded { why: "the guest could not tell who serves malloc".into() },
            None => report.verify_work(),
        },
    };
    let ok = outcome.is_ok();
    Ok(Some(Attempt {
        outcome,
        measurement: ok.then(|| report.measurement()),
        stderr: if ok { String::new() } else { end.last_words() },
        usage: Some(end.usage),
        proof: proof.map(|proof| prove::relevant(subject, proof)),
        environment: Subject::record_environment(environment, job.padding),
        report: page.report().to_string(),
    }))
}
