//! Runs the checks of `heapmark check` under each allocator, side by side while there are idle
//! CPUs: nothing is timed. Findings are on the disk soon after they are made.

#[cfg(test)]
mod tests;

use crate::definition::Check;
use crate::file::{CHECK_FILE, CheckFile, CheckedAllocator, Found};
use crate::judge::{Tried, found, has_failed, known, why_not_well};
use crate::processes::{CheckJob, CheckProcesses, ProcessEnd, Trial};
use anyhow::Result;
use heapmark_core::execute::Subject;
use heapmark_core::execute::child::end_orphans;
use heapmark_core::execute::lanes::spread;
use heapmark_core::observe::Root;
use heapmark_core::report::text::typed;
use heapmark_core::session::Interrupted;
use heapmark_core::session::lanes::lanes;
use heapmark_core::session::present::memory_left;
use heapmark_core::store::{self, AllocatorInfo, CheckedShelf};
use std::cmp::Reverse;
use std::path::Path;
use std::time::{Duration, Instant};

/// The number of processes of a check once one of them has failed.
const TRIALS_OF_A_FAILURE: u32 = 3;
/// After this many hung processes of a check, no more are started: each takes its whole time limit.
const MOST_HANGS: u32 = 4;
/// The free memory that a process needs to run beside others.
const ROOM_BYTES: u64 = 1 << 30;
/// How often findings are written to the disk.
const KEPT_EVERY: Duration = Duration::from_secs(1);

/// What the loop needs from outside, which tests replace.
pub trait CheckRunner: Sync {
    /// How many processes may run at a time.
    fn lanes(&self) -> usize;
    /// Runs one process of a check. Fails with [`Interrupted`] if a signal has stopped the checks.
    fn trial(&self, subject: &Subject, job: &CheckJob) -> Result<Trial>;
    /// Ends what the processes of an allocator have left behind.
    fn end_orphans(&self);
}

impl CheckRunner for CheckProcesses<'_> {
    fn lanes(&self) -> usize {
        lanes(1, ROOM_BYTES, memory_left(&Root::machine()))
    }

    fn trial(&self, subject: &Subject, job: &CheckJob) -> Result<Trial> {
        CheckProcesses::trial(self, subject, job)
    }

    fn end_orphans(&self) {
        end_orphans();
    }
}

/// Checks to be made, and where their results go.
pub struct CheckSession<'a> {
    /// The runner that starts the processes.
    pub runner: &'a dyn CheckRunner,
    /// The checks to make.
    pub checks: &'a [Check],
    /// Whether the preset is full.
    pub is_full: bool,
    /// Whether the user has named the checks.
    pub is_named: bool,
    /// How long a process may take, if the check's own limit does not apply.
    pub timeout: Option<Duration>,
    /// The directory of `check.json`.
    pub folder: &'a Path,
    /// Where later runs find what is known about the allocators.
    pub shelf: Option<CheckedShelf>,
    /// What `-a` has to have for an allocator.
    pub asked: fn(&Subject) -> String,
    /// Prints a message to the user.
    pub say: fn(String),
}

impl CheckSession<'_> {
    /// Makes all checks under each of these allocators. If the returned file is still unfinished, a
    /// signal stopped the checks.
    pub fn run(
        &self,
        subjects: &[(Subject, AllocatorInfo)],
        mut file: CheckFile,
    ) -> Result<CheckFile> {
        self.keep(&file)?;
        for (subject, info) in subjects {
            let name = &subject.allocator.name;
            (self.say)(format!("{name}: {} checks", self.checks.len()));
            file.allocators.push(CheckedAllocator::new(info.clone()));
            let done = self.check_all(subject, &mut file);
            let stopped = matches!(&done, Err(error) if error.is::<Interrupted>());
            if !stopped {
                done?;
            }
            self.keep_for_runs(subject, &file);
            if stopped {
                self.keep(&file)?;
                return Ok(file);
            }
        }
        file.unfinished = false;
        self.keep(&file)?;
        Ok(file)
    }

    fn keep(&self, file: &CheckFile) -> Result<()> {
        store::keep(self.folder, CHECK_FILE, serde_json::to_vec_pretty(file)?)
    }

    /// Makes all checks under the last allocator of the file.
    fn check_all(&self, subject: &Subject, file: &mut CheckFile) -> Result<()> {
        let mut work: Vec<&Check> = self.checks.iter().collect();
        // Checks that may take longest come first: at the end no CPU waits for one of them.
        work.sort_by_key(|check| Reverse(check.usual_time() * self.processes(check)));
        self.keep(file)?;
        let mut kept = Instant::now();
        let last = file.allocators.last();
        let left = last.map_or(Vec::new(), |one| one.info.left_to_libc.clone());
        let one = |check: &&Check| self.check(subject, &left, check);
        let done = spread(self.runner.lanes(), &work, one, |_, found: Found| {
            if let Some(checked) = file.allocators.last_mut() {
                checked.add(found);
            }
            if kept.elapsed() >= KEPT_EVERY {
                self.keep(file)?;
                kept = Instant::now();
            }
            Ok(())
        });
        self.runner.end_orphans();
        done
    }

    /// Runs all processes of a check. If the benign twin of a wrong program does not end well, the
    /// wrong program is not tried.
    fn check(&self, subject: &Subject, left_to_libc: &[String], check: &Check) -> Result<Found> {
        // The blocks of a wrapper are the C library's.
        let why_not = Some(left_to_libc).filter(|_| !subject.allocator.wrapper);
        let why_not = why_not.and_then(|left| check.why_not_of(left));
        let why_not = why_not.map(ProcessEnd::Unsupported);
        let mut tried = Vec::new();
        for cell in check.cells(self.is_full) {
            let trial = |is_wrong: bool, seed: u32| {
                if let Some(why_not) = &why_not {
                    return Ok(Trial {
                        ended: why_not.clone(),
                        ..Trial::default()
                    });
                }
                let job = CheckJob {
                    check,
                    cell,
                    is_wrong,
                    seed,
                };
                self.runner.trial(subject, &job)
            };
            let twin = check.has_twin().then(|| trial(false, 0)).transpose()?;
            let trials = match twin.as_ref().and_then(why_not_well) {
                None => self.trials(check, |seed| trial(true, seed))?,
                Some(_) => Vec::new(),
            };
            tried.push(Tried { cell, twin, trials });
        }
        Ok(found(check, &tried, &self.again(subject, check)))
    }

    /// The command that repeats a check.
    fn again(&self, subject: &Subject, check: &Check) -> String {
        let allocator = (self.asked)(subject);
        let mut words = vec!["heapmark", "check", "-a", &allocator, "--only", &check.name];
        if self.is_full && check.is_wrong() {
            words.extend(["--preset", "full"]);
        }
        let timeout = self.timeout.map(|time| format!("{}s", time.as_secs_f64()));
        words.extend(timeout.iter().flat_map(|time| ["--timeout", time]));
        typed(words)
    }

    fn processes(&self, check: &Check) -> u32 {
        check.processes(self.is_full, self.is_named)
    }

    /// Runs as many processes as are wanted, or until the limit of hung ones is reached.
    fn trials(&self, check: &Check, trial: impl Fn(u32) -> Result<Trial>) -> Result<Vec<Trial>> {
        let mut trials = Vec::new();
        let mut wanted = self.processes(check);
        let mut hangs = 0;
        while (trials.len() as u32) < wanted && hangs < MOST_HANGS {
            let trial = trial(trials.len() as u32)?;
            hangs += u32::from(matches!(trial.ended, ProcessEnd::Hung(_)));
            // A failed process is repeated, to see whether the check fails each time.
            if !check.is_wrong() && has_failed(&trial) {
                wanted = wanted.max(TRIALS_OF_A_FAILURE);
            }
            trials.push(trial);
        }
        Ok(trials)
    }

    /// Keeps what was found about the last allocator for the reports of later runs. If that fails,
    /// the result is still worth having.
    fn keep_for_runs(&self, subject: &Subject, file: &CheckFile) {
        let (Some(shelf), Some(checked)) = (&self.shelf, file.allocators.last()) else {
            return;
        };
        let known = known(checked, file, |check| self.is_hasty(check));
        if let Err(error) = shelf.keep(subject, &checked.info.hashes(), known) {
            let name = &subject.allocator.name;
            (self.say)(format!(
                "{name}: runs will not say what was found: {error:#}"
            ));
        }
    }

    /// Whether a check of this name has less time than usual.
    fn is_hasty(&self, name: &str) -> bool {
        let mut checks = self.checks.iter().filter(|check| check.name == name);
        let is_less = |check: &Check| {
            self.timeout
                .is_some_and(|timeout| timeout < check.usual_time())
        };
        checks.any(is_less)
    }
}
