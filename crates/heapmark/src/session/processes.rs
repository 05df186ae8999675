//! Real processes: started, sampled while they run, and observed with the machine around them.

use super::Selection;
use super::passed::Shelf;
use super::present::make_present;
use super::run::now;
use super::runner::{Ending, Observed, Runner, Task};
use crate::execute::child::{adopt_orphans, end_orphans, own_descriptors};
use crate::execute::user_command::Reference;
use crate::execute::{self, Attempt, Corner, Guest, Outcome, Subject, Watch, callgrind};
use crate::observe::Watcher;
use crate::observe::interference::{Counters, Interference};
use crate::observe::memory_profile::MemoryProfile;
use crate::observe::memory_sampler::{MemorySampler, csv_of_points};
use crate::observe::root::Root;
use crate::observe::series::SeriesSampler;
use crate::plan::{Counter, Mode};
use crate::store::{Purpose, Record};
use anyhow::Result;
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::scope;
use std::time::Duration;

/// The processes of a selection.
pub struct Processes {
    pub(super) guest: Guest,
    pub(super) selection: Rc<Selection>,
    pub(super) stop: Arc<AtomicBool>,
    /// What the command does under the baseline; measured once in each session, by a process of its
    /// own.
    pub(super) reference: OnceCell<Reference>,
    counters: RefCell<Counters>,
}

impl Processes {
    /// Ended early once `stop` is set.
    pub fn new(guest: Guest, selection: Rc<Selection>, stop: Arc<AtomicBool>) -> Processes {
        adopt_orphans();
        let counters = RefCell::new(Counters::open(&Root::machine()));
        Processes {
            guest,
            selection,
            stop,
            reference: OnceCell::new(),
            counters,
        }
    }

    /// Runs the guest under an allocator, a program under one, or a program by itself.
    fn start(&self, task: &Task<'_>, watch: Option<Watch<'_>>) -> Result<Option<Attempt>> {
        let Task {
            case,
            cell,
            job,
            timeout,
            ..
        } = *task;
        if let Some(command) = case.command() {
            return self.tried(command, cell, job, timeout);
        }
        let row = case.row(&cell.allocator);
        let libc = Subject::libc();
        let subject = match row.map(|row| &row.allocator) {
            Some(None) => &libc,
            Some(Some(pinned)) => self.selection.subject(pinned)?,
            None => self.selection.subject(&cell.allocator)?,
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
            Some(name) => self.selection.program(name)?.run(
                &self.guest,
                row,
                subject,
                job,
                timeout,
                &self.stop,
            ),
        }
    }
}

impl Runner for Processes {
    fn control(&self) -> Result<Option<Attempt>> {
        self.guest.control(&Subject::libc(), &self.stop)
    }

    fn corner(&self, subject: &Subject, corner: &str) -> Result<Option<Corner>> {
        let corner = self.guest.corner(subject, corner, &self.stop);
        end_orphans();
        corner
    }

    fn run(&self, task: &Task<'_>) -> Result<Option<Observed>> {
        let purpose = task.purpose;
        if purpose.is_of_a_block() {
            make_present(&Root::machine(), task.largest_bytes);
        }
        let mut watcher: Option<Box<dyn Watcher>> = match purpose {
            Purpose::Sample => {
                SeriesSampler::of(task.case, self.guest.path())?.map(|it| Box::new(it) as _)
            }
            Purpose::Memory => Some(Box::new(MemorySampler::default())),
            _ => None,
        };
        let mut job = task.job.clone();
        job.series = watcher.as_ref().map(|watcher| watcher.word());
        let looks = watcher.as_ref().is_some_and(|watcher| watcher.looks());
        let mut look = |pid, page: &_| {
            watcher
                .as_mut()
                .map_or(Duration::MAX, |watcher| watcher.look(pid, page))
        };
        let watch: Option<Watch<'_>> = if looks { Some(&mut look) } else { None };
        let before = self.counters.borrow_mut().snapshot();
        let attempt = self.start(&Task { job: &job, ..*task }, watch);
        // Also after an error: nothing of a process may run beside the next one.
        end_orphans();
        let Some(attempt) = attempt? else {
            return Ok(None);
        };
        let counts = attempt.usage.is_some() && purpose.is_of_a_block();
        let interference =
            counts.then(|| Interference::between(&before, &self.counters.borrow_mut().snapshot()));
        let footprint = attempt
            .measurement
            .as_ref()
            .and_then(|measurement| measurement.footprint.as_ref());
        let seen = footprint.and_then(|told| Some((told, told.peak.as_ref()?)));
        let memory = match seen {
            Some((told, peak)) => Some(MemoryProfile::of_points(
                &told.points,
                peak,
                &told.rss_cross_check,
            )),
            None => watcher
                .as_ref()
                .zip(footprint)
                .and_then(|(it, told)| it.profile(told.begin.without_harness())),
        };
        let mean_heap =
            watcher
                .as_ref()
                .zip(attempt.measurement.as_ref())
                .and_then(|(watcher, measured)| {
                    let (count, wall_ns) = measured
                        .measured()
                        .fold((0, 0), |(n, sum), it| (n + 1, sum + it.wall_ns));
                    watcher.mean_heap(measured.baseline_rss_bytes, wall_ns.checked_div(count)?)
                });
        let own_points =
            seen.map(|(told, _)| csv_of_points(&told.points, told.begin.without_harness()));
        let series = match (watcher, own_points) {
            (Some(_), Some(own)) => Some(own),
            (Some(watcher), None) => watcher.csv()?,
            (None, _) => None,
        };
        Ok(Some(Observed {
            attempt,
            interference,
            memory,
            mean_heap,
            series,
        }))
    }

    fn side_by_side(
        &self,
        lanes: usize,
        tasks: &[Task<'_>],
        ended: &mut dyn FnMut(Ending) -> Result<()>,
    ) -> Result<Option<()>> {
        let subjects = tasks
            .iter()
            .map(|task| self.selection.subject(&task.cell.allocator));
        let subjects = subjects.collect::<Result<Vec<_>>>()?;
        let work: Vec<_> = tasks.iter().map(|task| (task.job, task.timeout)).collect();
        let (guest, stop) = (&self.guest, &*self.stop);
        let next = AtomicUsize::new(0);
        let (sender, endings) = channel();
        let lane = |number: usize, sender: Sender<_>| {
            // Each lane needs its own file descriptors, which its processes inherit. If the system
            // refuses that, one lane runs all checks.
            if !own_descriptors() && number > 0 {
                return;
            }
            while let Some(index) =
                Some(next.fetch_add(1, Ordering::Relaxed)).filter(|index| *index < work.len())
            {
                let started = now();
                let (job, timeout) = work[index];
                let attempt = execute::run(guest, subjects[index], job, timeout, stop);
                // If the receiver is gone, something else has failed.
                _ = sender.send((index, started, attempt));
            }
        };
        let done = scope(|scope| {
            for number in 0..lanes.min(work.len()) {
                let (lane, sender) = (&lane, sender.clone());
                scope.spawn(move || lane(number, sender));
            }
            drop(sender);
            let take = || {
                for (index, started, attempt) in endings {
                    let Some(attempt) = attempt? else {
                        return Ok(None);
                    };
                    ended((index, started, attempt))?;
                }
                Ok(Some(()))
            };
            let done = take();
            // A failure ends the lanes now, not after all remaining checks.
            next.store(work.len(), Ordering::Relaxed);
            done
        });
        end_orphans();
        done
    }

    fn shelf(&self, control: &Record) -> Result<Option<Shelf>> {
        Shelf::open(&self.guest, control).map(Some)
    }
}
