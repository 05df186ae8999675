//! One cell -> a fresh child process -> an [`Outcome`]: environment, proof, limits, timeout, end of
//! the process group.

mod bindings;
pub mod callgrind;
pub mod child;
mod cpus_seen;
mod early_end;
#[doc(hidden)]
pub mod exec_tracer;
#[doc(hidden)]
pub mod exit;
pub mod footprint;
pub mod ground;
mod guest;
#[doc(hidden)]
pub mod handed;
mod held;
mod job;
mod job_program;
pub mod lanes;
pub mod latency;
#[doc(hidden)]
pub mod lender;
pub mod measurement;
#[doc(hidden)]
pub mod memory_file;
mod memory_limit;
#[doc(hidden)]
pub mod oom_kills;
pub mod outcome;
mod page;
#[doc(hidden)]
pub mod patience;
pub mod program;
#[doc(hidden)]
pub mod prove;
#[doc(hidden)]
pub mod reach;
#[doc(hidden)]
pub mod report;
#[doc(hidden)]
pub mod report_lines;
#[doc(hidden)]
pub mod resident;
mod stdout_program;
mod thin;
#[doc(hidden)]
pub mod tree;
pub mod turns;
pub mod user_command;

pub use child::Interrupted;
pub use exit::{last_useful_line, signal_name};
pub use footprint::Footprint;
pub use guest::{Corner, Guest};
pub use held::held;
pub use job::{Job, only_guest};
pub use latency::Latency;
pub use measurement::{
    Iteration, LoadedObject, Measurement, Proof, ThreadTime, Usage, per_operation,
};
pub use memory_limit::MemoryLimit;
pub use outcome::Outcome;
pub use program::Program;
pub use thin::Thin;
pub use tree::descendants;
pub use turns::{Duet, TurnsTaken};

use crate::build::Library;
use crate::catalog::Allocator;
use crate::plan::Plan;
use anyhow::Result;
use child::{Launch, Look, may_go_on, padded};
use exit::End;
use heapmark_wire::{Launched, Page};
use page::SharedPage;
use report::Report;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Refuses a plan that asks for something that this kernel cannot do.
pub fn knows(plan: &Plan) -> Result<()> {
    child::knows_huge_pages(plan)?;
    cpus_seen::knows_cpus_seen(plan)?;
    turns::knows_turns(plan)
}

/// An allocator and the files that implement it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Subject {
    /// The allocator's catalogue entry.
    pub allocator: Allocator,
    /// The library that is preloaded.
    pub library: Library,
    /// The variant of the user's command that this row runs, if rows are variants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    /// How the cells of the allocator end, if the user asked for one that cannot be measured here.
    #[serde(default, deserialize_with = "refused")]
    pub refused: Option<Outcome>,
}

/// Reads a stored refusal. Earlier versions stored only the reason why a library was not loaded.
fn refused<'de, D: Deserializer<'de>>(stored: D) -> Result<Option<Outcome>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Stored {
        NotLoaded(String),
        Outcome(Outcome),
    }
    Ok(Option::deserialize(stored)?.map(|stored| match stored {
        Stored::NotLoaded(why) => Outcome::NotLoaded { why },
        Stored::Outcome(outcome) => outcome,
    }))
}

impl Subject {
    /// Returns the subject of an allocator that can be preloaded.
    pub fn new(allocator: Allocator, library: Library) -> Subject {
        Subject {
            allocator,
            library,
            variant: None,
            refused: None,
        }
    }
}

/// The result of one process.
pub struct Attempt {
    /// How the process ended.
    pub outcome: Outcome,
    /// What the process measured; only with [`Outcome::Ok`].
    pub measurement: Option<Measurement>,
    /// What the kernel counted for the process.
    pub usage: Option<Usage>,
    /// Which objects served the malloc family.
    pub proof: Option<Proof>,
    /// The process's environment.
    pub environment: BTreeMap<String, String>,
    /// The end of the process's stderr, unless it ended `ok`.
    pub stderr: String,
    /// The report of the process, unchanged.
    pub report: String,
    /// The most bytes charged to the process's control group, if it had one of its own.
    pub charged_bytes: Option<u64>,
    /// Bytes of the harness's memory that the limit counts; 0 if the guest does not publish them.
    pub harness_bytes: u64,
}

impl Attempt {
    /// Returns the result of a process that wrote this report: its measurement if it ended `ok`, or
    /// else the end of its stderr.
    fn of_process(
        outcome: Outcome,
        end: End,
        measurement: Option<Measurement>,
        report: String,
        proof: Option<Proof>,
        environment: BTreeMap<String, String>,
        job: &Job,
    ) -> Attempt {
        let ok = outcome.is_ok();
        Attempt {
            charged_bytes: end.under_limit.and_then(|limit| limit.charged_bytes),
            harness_bytes: 0,
            outcome,
            measurement,
            usage: Some(end.launched.into()),
            proof,
            environment: Subject::record_environment(environment, job.padding),
            stderr: if ok { String::new() } else { end.last_words() },
            report,
        }
    }

    /// Returns the result of a process that is the workload as a whole, and reported nothing itself.
    fn of_whole_process(
        outcome: Outcome,
        end: End,
        measurement: Measurement,
        proof: Option<Proof>,
        environment: BTreeMap<String, String>,
        job: &Job,
    ) -> Attempt {
        let figures = measurement.figures.iter();
        let report = figures
            .map(|(name, value)| format!("figure={name} {value}\n"))
            .collect();
        let measurement = outcome.is_ok().then_some(measurement);
        Attempt::of_process(outcome, end, measurement, report, proof, environment, job)
    }

    /// Returns the result of two processes that did the same work one after the other: that of the later one if it
    /// failed.
    pub fn followed_by(mut self, later: Attempt) -> Attempt {
        let usage = self.usage.zip(later.usage.as_ref());
        let usage = usage.map(|(usage, later)| usage.and(later));
        match (&mut self.measurement, later.measurement) {
            (Some(measurement), Some(more)) => measurement.add(more),
            (_, measurement) => {
                return Attempt {
                    usage,
                    measurement,
                    ..later
                };
            }
        }
        Attempt { usage, ..self }
    }

    /// Returns a result without a process.
    pub fn without_process(outcome: Outcome) -> Attempt {
        Attempt {
            outcome,
            measurement: None,
            usage: None,
            proof: None,
            environment: BTreeMap::new(),
            stderr: String::new(),
            report: String::new(),
            charged_bytes: None,
            harness_bytes: 0,
        }
    }
}

/// A callback that looks at a process while it runs, on the thread that waits for it. Gets the
/// process and the page that the guest shares, and returns the wait from the end of this look to
/// the next.
pub type Watch<'a> = &'a mut dyn FnMut(i32, &Page) -> Duration;

/// How long to wait before looking again for the process that a launcher starts.
const NOT_YET: Duration = Duration::from_micros(100);

/// Runs one job under one allocator. Fails with [`Interrupted`] if `stop` was set: the process is
/// gone and there is no result.
pub fn run(
    guest: &Guest,
    subject: &Subject,
    job: &Job,
    timeout: Duration,
    stop: &AtomicBool,
    watch: Option<Watch<'_>>,
) -> Result<Attempt> {
    // Checked here too, not only while waiting for a process: a signal between two short processes
    // counts.
    may_go_on(stop)?;
    let not_loaded = |why| Outcome::NotLoaded { why };
    let refused = subject.refused.clone();
    let unsupported = || {
        subject
            .cannot_run(job)
            .map(|why| Outcome::Unsupported { why })
    };
    let replaced = || prove::are_as_first_seen(subject).err().map(not_loaded);
    if let Some(outcome) = refused.or_else(unsupported).or_else(replaced) {
        return Ok(Attempt::without_process(outcome));
    }
    let environment = subject.environment();
    let page = SharedPage::new(&job.text(subject))?;
    let mut look = watch.map(|watch| {
        let page = page.page();
        let mut process = None;
        move |launcher| {
            process = process.or_else(|| descendants(launcher).first().copied());
            process.map_or(NOT_YET, |process| watch(process, page))
        }
    });
    let variables = padded(&environment, job.padding);
    let mut launch = Launch::new(guest.path(), &[], &job.rules(), variables)?;
    let valgrind = job
        .below
        .iter()
        .flat_map(|valgrind| callgrind::words(valgrind));
    launch.command.args(valgrind).args(subject.loader_words());
    page.to(launch.command.arg(guest.path()));
    let end = launch.run(timeout, stop, look.as_mut().map(|look| look as Look<'_>))?;
    end.was_started(guest.path())?;
    let below = job.below.as_ref().map(|_| end.stderr());
    let report_text = page.report();
    let report = Report::parse(&report_text);
    let proof = report.proof.is_complete().then_some(&report.proof);
    let outcome = match proof.map(|proof| prove::verify(subject, proof)) {
        // Another allocator served this process, so the way it ended is no evidence about this one.
        Some(Err(why)) => Outcome::NotLoaded { why },
        proved => match end.outcome(page.phase(), report.failure()) {
            Some(outcome) => outcome.at(page.page().watched().steps()),
            None if proved.is_none() => Outcome::NotLoaded {
                why: "the guest could not find malloc's library".into(),
            },
            None => report.verify_guest(),
        },
    };
    let proof = proof.map(|proof| prove::relevant(subject, proof));
    let mut measurement = outcome.is_ok().then(|| report.measurement());
    let notes = measurement.iter_mut().map(|it| &mut it.notes);
    notes.for_each(|notes| notes.extend(left_behind(&end.launched)));
    let mut attempt = Attempt::of_process(
        outcome,
        end,
        measurement,
        report_text,
        proof,
        environment,
        job,
    );
    let watched = page.page().watched();
    let limit = job.limit.as_ref();
    attempt.harness_bytes = limit.map_or(0, |limit| limit.harness_bytes(watched));
    if let Some(stderr) = below {
        callgrind::note(&mut attempt, &stderr);
    }
    Ok(attempt)
}

/// Note: how many processes were ended, since they were still running after the process.
pub const LEFT_BEHIND: &str = "left_behind";

fn left_behind(launched: &Launched) -> Option<(String, String)> {
    let count = launched.left_behind;
    (count > 0).then(|| (LEFT_BEHIND.into(), count.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_runs_of_before_are_read() {
        let read = |refused: serde_json::Value| {
            let mut stored = serde_json::to_value(Subject::libc()).unwrap();
            stored["allocator"]["sources"] = "2021".into();
            stored["refused"] = refused;
            serde_json::from_value::<Subject>(stored).unwrap()
        };
        let why = || "apt-get install it".to_owned();
        let subject = read(why().into());
        assert_eq!(subject.refused, Some(Outcome::NotLoaded { why: why() }));
        assert_eq!(subject.allocator.sources.date, "2021");
        assert_eq!(read(serde_json::Value::Null).refused, None);
        let unsupported = Outcome::Unsupported { why: why() };
        let stored = serde_json::to_value(&unsupported).unwrap();
        assert_eq!(read(stored).refused, Some(unsupported));
    }
}
