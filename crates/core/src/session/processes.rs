//! Real processes: started, sampled while they run, and observed with the machine around them.

use super::Selection;
use super::cpus::Cpus;
use super::passed::Shelf;
use super::placement::place_anew;
use super::present::make_present;
use super::run::now;
use super::runner::{Due, DueDuet, DuetEnding, Ending, Observed, Runner};
use crate::execute::child::{adopt_orphans, end_orphans};
use crate::execute::lanes::side_by_side;
use crate::execute::user_command::Reference;
use crate::execute::{
    self, Attempt, Corner, Guest, Job, MemoryLimit, Outcome, Subject, Watch, callgrind,
    descendants, held,
};
use crate::observe::{
    Counters, DemandSampler, Groups, Interference, MemoryProfile, MemorySampler, Root,
    SeriesSampler, Watcher, csv_of_points,
};
use crate::plan::{Case, Cell, Limit, LimitKind};
use crate::store::{Purpose, Record};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The processes of a selection.
pub struct Processes {
    pub(super) guest: Guest,
    pub(super) selection: Arc<Selection>,
    pub(super) stop: Arc<AtomicBool>,
    /// What each case's command does under the baseline, or what a build of it does in the build's first row; measured
    /// once in each session, by a process of its own.
    pub(super) references: Mutex<BTreeMap<(usize, String), Arc<Reference>>>,
    pub(super) counters: Mutex<Counters>,
    /// The folder in which control groups may be made, if groups set the limits.
    groups: Option<PathBuf>,
}

impl Processes {
    /// The processes of a selection, which are ended early once `stop` is set.
    pub fn new(guest: Guest, selection: Arc<Selection>, stop: Arc<AtomicBool>) -> Processes {
        adopt_orphans();
        let root = Root::machine();
        let groups = match selection.plan.mode.limit() {
            Some(LimitKind::Cgroup) => Groups::for_limits(&root).ok().map(PathBuf::from),
            _ => None,
        };
        Processes {
            guest,
            groups,
            selection,
            stop,
            references: Mutex::default(),
            counters: Mutex::new(Counters::open(&root)),
        }
    }

    /// Runs the guest under an allocator, a program under an allocator, or a program by itself.
    pub(super) fn start(&self, due: &Due, job: &Job, watch: Option<Watch>) -> Result<Attempt> {
        let timeout = due.timeout;
        let guest = &self.guest;
        let stop = &*self.stop;
        let case = self.case(due);
        let allocator = &due.cell.allocator;
        if let Some(command) = case.command() {
            return self.tried(command, &due.cell, job, timeout, None);
        }
        let row = case.row(allocator);
        let libc = Subject::libc();
        let subject = match row.map(|row| &row.allocator) {
            Some(None) => &libc,
            Some(Some(pinned)) => self.selection.subject(pinned)?,
            None => self.selection.subject(allocator)?,
        };
        match row.map(|row| row.program.as_str()).or(case.program()) {
            None if job.mode.spec().simulated => {
                callgrind::count(guest, subject, job, timeout, stop)
            }
            None => execute::run(guest, subject, job, timeout, stop, watch),
            // For any purpose: calibrating or checking such a program would be useless.
            Some(_) if !self.selection.plan.mode_of(case).spec().plain => {
                let why = match self.selection.plan.mode.limit() {
                    None => {
                        "a program's calls cannot be watched one by one: --latency, --counter and --retained are for built-in workloads"
                    }
                    Some(_) => {
                        "--limit is for built-in workloads, and for commands that heapmark tries"
                    }
                };
                let why = why.into();
                Ok(Attempt::without_process(Outcome::Unsupported { why }))
            }
            Some(name) => self
                .selection
                .program(name)?
                .run(guest, row, subject, job, timeout, stop),
        }
    }

    /// The memory limit of a cell's process.
    fn limit(&self, cell: &Cell) -> Option<MemoryLimit> {
        Some(MemoryLimit {
            bytes: cell.limit?.set_bytes(),
            kind: self.selection.plan.mode.limit()?,
            groups: self.groups.clone(),
        })
    }

    /// Runs a process without a limit, and samples how much it takes of the kind of memory that is to be limited.
    fn unlimited(&self, due: &Due, kind: LimitKind) -> Result<Observed> {
        let mut sampler = DemandSampler::new(kind);
        let mut job = due.job.clone();
        job.limit = self.limit(&due.cell);
        let attempt = match self.case(due).command() {
            Some(command) => {
                let mut look = |launcher| sampler.look(&descendants(launcher));
                self.tried(command, &due.cell, &job, due.timeout, Some(&mut look))
            }
            None => {
                job.series = Some("polled".into());
                let mut look = |pid, _: &_| sampler.look(&[pid]);
                self.start(due, &job, Some(&mut look))
            }
        };
        end_orphans();
        let attempt = attempt?;
        Ok(Observed {
            demand: Some(sampler.seen(attempt.charged_bytes, attempt.harness_bytes)),
            ..Observed::from(attempt)
        })
    }

    pub(super) fn case(&self, due: &Due) -> &Case {
        &self.selection.plan.cases[due.cell.case]
    }
}

impl Runner for Processes {
    fn control(&self) -> Result<Attempt> {
        self.guest.control(&Subject::libc(), &self.stop)
    }

    fn corner(&self, subject: &Subject, corner: &str) -> Result<Corner> {
        let corner = self.guest.corner(subject, corner, &self.stop);
        end_orphans();
        corner
    }

    fn make_present(&self, bytes: u64) {
        make_present(&Root::machine(), bytes);
    }

    fn place_anew(&self) {
        let selection = &self.selection;
        let subjects = selection.subjects.iter().chain(&selection.pinned);
        let libraries = subjects.flat_map(|subject| &subject.library.files);
        let commands = selection.plan.cases.iter().filter_map(Case::command);
        let variants = commands.flat_map(|command| &command.variants);
        let programs = variants.map(|variant| &variant.program);
        let files: BTreeSet<&Path> = libraries.chain(programs).map(PathBuf::as_path).collect();
        for file in files.into_iter().chain([self.guest.path()]) {
            // A file that cannot be read is reported by the first process that needs it.
            let _ = place_anew(file);
        }
    }

    fn run(&self, due: &Due, largest_bytes: u64) -> Result<Observed> {
        let purpose = due.purpose;
        if purpose == Purpose::Search
            && due.cell.limit == Some(Limit::default())
            && let Some(kind) = self.selection.plan.mode.limit()
        {
            return self.unlimited(due, kind);
        }
        if purpose.is_of_a_block() {
            make_present(&Root::machine(), largest_bytes);
        }
        let mut watcher = match purpose {
            Purpose::Sample => SeriesSampler::of(self.case(due), self.guest.path())?
                .map(|sampler| Box::new(sampler) as _),
            _ => watcher_of(purpose),
        };
        let mut job = due.job.clone();
        job.limit = self.limit(&due.cell);
        let before = held(&self.counters).snapshot();
        let attempt = below(&mut watcher, &job, |job, watch| self.start(due, job, watch));
        // Also after an error: nothing of a process may run beside the next one.
        end_orphans();
        let attempt = attempt?;
        let counts = attempt.usage.is_some() && purpose.is_of_a_block();
        let interference =
            counts.then(|| Interference::between(&before, &held(&self.counters).snapshot()));
        Ok(Observed {
            interference,
            ..seen(watcher, attempt)?
        })
    }

    fn duets(
        &self,
        lanes: usize,
        work: &[DueDuet],
        ended: &mut dyn FnMut(DuetEnding) -> Result<()>,
    ) -> Result<()> {
        let cpus = Cpus::new(lanes);
        let one = |duet: &DueDuet| {
            make_present(&Root::machine(), 2 * duet.largest_bytes);
            self.take_turns(duet, &cpus)
        };
        side_by_side(lanes, work, one, |index, sides| ended((index, sides)))
    }

    fn side_by_side(
        &self,
        lanes: usize,
        work: &[Due],
        ended: &mut dyn FnMut(Ending) -> Result<()>,
    ) -> Result<()> {
        let work = work.iter().map(|due| {
            let subject = self.selection.subject(&due.cell.allocator)?;
            anyhow::Ok((subject, due))
        });
        let work: Vec<_> = work.collect::<Result<_>>()?;
        let guest = &self.guest;
        let stop = &*self.stop;
        let one = |(subject, due): &(&Subject, &Due)| {
            let started = now();
            let mut watcher = watcher_of(due.purpose);
            let attempt = below(&mut watcher, &due.job, |job, watch| {
                execute::run(guest, subject, job, due.timeout, stop, watch)
            })?;
            Ok((started, seen(watcher, attempt)?))
        };
        side_by_side(lanes, &work, one, |index, (started, observed)| {
            ended((index, started, observed))
        })
    }

    fn shelf(&self, control: &Record) -> Result<Option<Shelf>> {
        Shelf::open(&self.guest, control).map(Some)
    }
}

/// The watcher that follows the memory of a process that is not timed.
fn watcher_of(purpose: Purpose) -> Option<Box<dyn Watcher>> {
    let follows = purpose == Purpose::Memory;
    follows.then(|| Box::new(MemorySampler::default()) as _)
}

/// Starts a process, which is watched if there is a watcher.
fn below(
    watcher: &mut Option<Box<dyn Watcher>>,
    job: &Job,
    start: impl FnOnce(&Job, Option<Watch>) -> Result<Attempt>,
) -> Result<Attempt> {
    let mut job = job.clone();
    job.series = watcher.as_ref().map(|watcher| watcher.word());
    let looks = watcher.as_ref().is_some_and(|watcher| watcher.looks());
    let mut look = |pid, page: &_| {
        watcher
            .as_mut()
            .map_or(Duration::MAX, |watcher| watcher.look(pid, page))
    };
    start(&job, if looks { Some(&mut look) } else { None })
}

/// Returns the result of a process that has ended, with what the watcher measured.
fn seen(watcher: Option<Box<dyn Watcher>>, attempt: Attempt) -> Result<Observed> {
    let mut observed = Observed::from(attempt);
    let Some(watcher) = watcher else {
        return Ok(observed);
    };
    let measured = observed.attempt.measurement.as_ref();
    observed.mean_heap = measured.and_then(|measured| {
        let (count, wall_ns) = measured.measured().fold((0, 0), |(n, sum), iteration| {
            (n + 1, sum + iteration.wall_ns)
        });
        watcher.mean_heap(measured.outside_bytes(), wall_ns.checked_div(count)?)
    });
    let footprint = measured.and_then(|measured| measured.footprint.as_ref());
    let held_before_bytes = measured.map_or(0, |measured| measured.held_before_bytes);
    let before_bytes = footprint.map_or(0, |footprint| {
        footprint
            .begin
            .without_harness()
            .saturating_sub(held_before_bytes)
    });
    if let Some(footprint) = footprint
        && (footprint.peak.is_some() || !footprint.points.is_empty())
    {
        observed.memory = MemoryProfile::of_points(&footprint.points, footprint.peak.as_ref());
        observed.series = Some(csv_of_points(&footprint.points, before_bytes));
    } else {
        observed.memory = footprint.and_then(|_| watcher.profile(before_bytes));
        observed.series = watcher.csv()?;
    }
    Ok(observed)
}
