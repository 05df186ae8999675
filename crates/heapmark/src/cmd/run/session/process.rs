//! One process of a run: starts it, samples it while it runs, and stores the result.

use super::present::make_present;
use super::{Interrupted, Progress, Session};
use crate::execute::child::end_orphans;
use crate::execute::{self, Attempt, Job, Outcome, Subject, Watch, callgrind};
use crate::observe::Watcher;
use crate::observe::interference::Interference;
use crate::observe::memory_profile::MemoryProfile;
use crate::observe::memory_sampler::{MemorySampler, csv_of_points};
use crate::observe::root::Root;
use crate::observe::series::SeriesSampler;
use crate::plan::{Cell, Counter, Mode};
use crate::store::{Purpose, Record};
use anyhow::{Result, anyhow};
use std::time::Duration;

impl Session {
    /// Runs one cell unless it is stored already.
    pub(super) fn once(
        &mut self,
        purpose: Purpose,
        cell: &Cell,
        job: &Job,
        timeout: Duration,
        progress: &Progress,
    ) -> Result<()> {
        if self.known.has(&cell.id) {
            return Ok(());
        }
        if purpose.is_of_a_block() {
            make_present(&Root::machine(), self.largest_bytes(cell));
        }
        let started = now();
        let mut watcher: Option<Box<dyn Watcher>> = match purpose {
            Purpose::Sample => SeriesSampler::of(self.case(cell), self.guest.path())?.map(|it| Box::new(it) as _),
            Purpose::Memory => Some(Box::new(MemorySampler::default())),
            _ => None,
        };
        let job = Job { series: watcher.as_ref().map(|watcher| watcher.word()), ..job.clone() };
        let looks = watcher.as_ref().is_some_and(|watcher| watcher.looks());
        let mut look = |pid, page: &_| watcher.as_mut().map_or(Duration::MAX, |watcher| watcher.look(pid, page));
        let watch: Option<Watch<'_>> = if looks { Some(&mut look) } else { None };
        let before = self.counters.snapshot();
        let attempt = self.start(cell, &job, timeout, watch);
        // Also after an error: nothing of a process may run beside the next one.
        end_orphans();
        let attempt = attempt?.ok_or(Interrupted)?;
        let counts = attempt.usage.is_some() && purpose.is_of_a_block();
        let interference = counts.then(|| Interference::between(&before, &self.counters.snapshot()));
        let footprint = attempt.measurement.as_ref().and_then(|measurement| measurement.footprint.as_ref());
        let seen = footprint.and_then(|told| Some((told, told.peak.as_ref()?)));
        let memory = match seen {
            Some((told, peak)) => Some(MemoryProfile::of_points(&told.points, peak, &told.rss_cross_check)),
            None => watcher.as_ref().zip(footprint).and_then(|(it, told)| it.profile(told.begin.without_harness())),
        };
        let mean_heap = watcher.as_ref().zip(attempt.measurement.as_ref()).and_then(|(watcher, measured)| {
            let (count, wall_ns) = measured.measured().fold((0, 0), |(n, sum), it| (n + 1, sum + it.wall_ns));
            watcher.mean_heap(measured.baseline_rss_bytes, wall_ns.checked_div(count)?)
        });
        let own_points = seen.map(|(told, _)| csv_of_points(&told.points, told.begin.without_harness()));
        let series = match (watcher.filter(|_| self.store.is_some()), own_points) {
            (Some(_), Some(own)) => Some(own),
            (Some(watcher), None) => watcher.csv()?,
            (None, _) => None,
        };
        if !attempt.outcome.is_ok() {
            progress.say(&format!("{}: {}", cell.id, attempt.outcome));
        }
        let case = self.case(cell);
        let record = record(purpose, cell, &case.workload, case.threads, started, attempt);
        let (memory, mean_heap) = (memory.map(Box::new), mean_heap.map(Box::new));
        self.keep(Record { interference, memory, mean_heap, ..record }, series.as_deref())
    }

    /// The highest resident set of any process of this case.
    fn largest_bytes(&self, cell: &Cell) -> u64 {
        let case = self.case(cell);
        let of_case = |record: &&Record| record.workload == case.workload && record.threads == case.threads;
        self.known.all().iter().filter(of_case).filter_map(Record::peak_rss_bytes).max().unwrap_or(0)
    }

    /// Runs the guest under an allocator, a program under one, or a program by itself.
    pub(in crate::cmd) fn start(
        &self,
        cell: &Cell,
        job: &Job,
        timeout: Duration,
        watch: Option<Watch<'_>>,
    ) -> Result<Option<Attempt>> {
        let case = self.case(cell);
        if let Some(command) = case.command() {
            return self.tried(command, cell, job, timeout);
        }
        let row = case.row(&cell.allocator);
        let libc = Subject::libc();
        let subject = match row.map(|row| &row.allocator) {
            Some(None) => &libc,
            Some(Some(pinned)) => self.subject(pinned)?,
            None => self.subject(&cell.allocator)?,
        };
        match row.map(|row| row.program.as_str()).or(case.program()) {
            None if job.mode == Mode::Count(Counter::Callgrind) => {
                callgrind::count(&self.guest, subject, job, timeout, &self.stop)
            }
            None => execute::run_watched(&self.guest, subject, job, timeout, &self.stop, watch),
            // For any purpose: calibrating or checking such a program would be useless.
            Some(_) if self.selection.plan.mode.is_for_kernels() => {
                let why = "a program's calls cannot be watched one by one: --latency, --counter and --retained are for kernels".into();
                Ok(Some(Attempt::without_process(Outcome::Unsupported { why })))
            }
            Some(name) => {
                let program = self.selection.programs.iter().find(|program| program.name == name);
                let program =
                    program.ok_or_else(|| anyhow!("the plan names `{name}`, which this run does not have"))?;
                program.run(&self.guest, row, subject, job, timeout, &self.stop)
            }
        }
    }

    pub(super) fn subject(&self, name: &str) -> Result<&Subject> {
        let mut all = self.selection.subjects.iter().chain(&self.selection.pinned);
        let found = all.find(|subject| subject.allocator.name == name);
        found.ok_or_else(|| anyhow!("the plan names `{name}`, which this run does not have"))
    }
}

/// The current time, as records have it.
pub(super) fn now() -> String {
    jiff::Timestamp::now().to_string()
}

/// What is stored of a process, without what was observed from outside.
pub(super) fn record(
    purpose: Purpose,
    cell: &Cell,
    workload: &str,
    threads: u32,
    started: String,
    attempt: Attempt,
) -> Record {
    Record {
        started,
        measurement: attempt.measurement,
        usage: attempt.usage.map(Box::new),
        proof: attempt.proof.map(Box::new),
        environment: attempt.environment,
        stderr: attempt.stderr,
        ..Record::new(purpose, cell, workload, threads, attempt.outcome)
    }
}
