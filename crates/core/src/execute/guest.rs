//! The guest program, and two questions it answers before a run: whether the proof can fail
//! (negative control), and which version a library reports.

use super::child::{Launch, Rules, padded};
use super::exit::End;
use super::page::SharedPage;
use super::report::Report;
use super::{Attempt, Job, Outcome, Subject};
use crate::build::{self, Library};
use crate::catalog::{Allocator, Source, Tier};
use anyhow::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The program that runs under the allocators.
pub struct Guest {
    path: PathBuf,
}

/// The result of testing one kind of call that few workloads make.
pub struct Corner {
    /// What is wrong with the call, one sentence for each fault.
    pub findings: Vec<String>,
    /// Whether another process would find the same: a hang or a lack of memory may be the machine's
    /// doing.
    pub is_certain: bool,
    /// The environment of the process that made the call.
    pub environment: BTreeMap<String, String>,
}

const SHORT: Duration = Duration::from_secs(20);

impl Guest {
    /// Finds the guest through `build::GUEST`.
    pub fn find() -> Result<Guest> {
        build::GUEST.find().map(|path| Guest { path })
    }

    /// Returns the program's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Runs the negative control: the same guest with nothing preloaded. If the proof does not name
    /// libc then, it proves nothing.
    pub fn control(&self, libc: &Subject, stop: &AtomicBool) -> Result<Attempt> {
        super::run(self, libc, &Job::control(), SHORT, stop, None)
    }

    /// Tests one kind of call that few workloads make.
    pub fn corner(&self, subject: &Subject, corner: &str, stop: &AtomicBool) -> Result<Corner> {
        let (end, page) = self.ask(subject, &Job::corner_text(corner), stop)?;
        end.was_started(&self.path)?;
        let report_text = page.report();
        let report = Report::parse(&report_text);
        let stopped = end.outcome(page.phase(), report.failure());
        let is_machines =
            |outcome: &Outcome| matches!(outcome, Outcome::Hang { .. } | Outcome::Oom { .. });
        let is_certain = !stopped.as_ref().is_some_and(is_machines);
        let stopped = stopped.map(|outcome| format!("{corner}: {}", outcome.in_words()));
        let findings = report
            .lines
            .values("finding")
            .map(String::from)
            .chain(stopped);
        Ok(Corner {
            findings: findings.collect(),
            is_certain,
            environment: Subject::record_environment(subject.environment(), 0),
        })
    }

    /// Returns the version that a library reports; `None` if it has no function for that.
    pub fn version(&self, subject: &Subject) -> Result<Option<String>> {
        let Some(probe) = &subject.allocator.version else {
            return Ok(None);
        };
        let (_, page) = self.ask(subject, &Job::version_text(probe), &AtomicBool::new(false))?;
        let report_text = page.report();
        Ok(Report::parse(&report_text)
            .lines
            .value("version")
            .map(Into::into))
    }

    /// Runs the guest with a question in place of a job.
    fn ask(
        &self,
        subject: &Subject,
        question: &str,
        stop: &AtomicBool,
    ) -> Result<(End, SharedPage)> {
        let page = SharedPage::new(question)?;
        let mut launch = Launch::new(
            &self.path,
            &[],
            &Rules::default(),
            padded(&subject.environment(), 0),
        )?;
        launch.command.args(subject.loader_words());
        page.to(launch.command.arg(&self.path));
        Ok((launch.run(SHORT, stop, None)?, page))
    }
}

impl Subject {
    /// Returns the subject of a process without any preloaded library.
    pub fn libc() -> Subject {
        let allocator = Allocator {
            name: "libc".into(),
            family: "libc".into(),
            about: "the negative control".into(),
            tier: Tier::Main,
            source: Source::Libc,
            ..Allocator::default()
        };
        Subject::new(allocator, Library::default())
    }
}
