//! Runs a user's command below the launcher, with the user's environment and allocator. heapmark
//! adds only a witness to each process, which reports the library that serves its memory. The whole
//! process is the workload.
//!
//! Probes that slow the command down (counting, tracing) run in processes of the baseline's check.

mod aged;
mod baseline_probes;
mod command_runner;
mod diagnosis;
mod in_malloc;
mod last_words;
mod malloc_probe;
mod output;
mod own_values;
mod process;
mod reached;
mod scheduling;
mod server;
mod shape_probes;
mod tools;
mod trees;
mod written_files;

use super::{Attempt, Job, Measurement, Outcome, Subject, held, last_useful_line, left_behind};
use crate::catalog::{Source, joined};
use anyhow::Result;
use heapmark_wire::{Launched, Phase};
use malloc_probe::Witnessed;
use output::Printed;
use process::Ran;
use scheduling::Scheduling;
use server::Served;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use trees::{Trees, programs};
use written_files::Files;

pub use super::child::Look;
pub use super::early_end::{EarlyEnd, StepResult};
pub use aged::{AGED_PROGRAM, ALLOCATING_THREADS, MOST_LIVE, SIZES, UNCOUNTED};
pub use baseline_probes::{SILENT, UNPROVEN, UNSEARCHED, UNTIMED};
pub use command_runner::{Aging, CommandRunner, Tools};
pub use in_malloc::{CALLS_PER_S, SHARE, SLOWER_CALLS, SLOWER_WALL};
pub use own_values::{VALUE_COST, unreadable};
pub use reached::{
    ANONYMOUS, BEYOND, CALLS, END_LIVE, END_OF, END_UNKNOWN, MIXED, OTHER_SIZES, REACHED,
};
pub use server::drain;
pub use shape_probes::{MOMENT, PROBES, grown_under};
pub use tools::{TOOLS, Tool, named as tool_named};

/// Note: the exit code that every process ends with, if not 0.
pub const EXIT_CODE: &str = "exit_code";
/// Note: the last useful line on stderr, if the exit code is not 0.
pub const SAID: &str = "said";
/// Note: which libraries serve the command as the user calls it.
pub const SERVED_BY: &str = "served_by";
/// Note: the program that a script becomes after it has started most of its processes.
pub const BECOMES: &str = "becomes";
/// Note: digests of what the command printed and wrote, which are the same as the baseline's.
pub const DIGEST: &str = "digest";
/// Note: a file that the command writes below its folder, if that was looked for.
pub const WRITES: &str = "writes";
/// Note: why the peak of PSS was missed.
pub const PSS_MISSED: &str = "peak_pss_missed";

/// Before a difference counts against an allocator, the baseline runs up to this many more times, to
/// show whether it varies itself.
const REPEATS: usize = 3;

/// What the command does under the baseline, and must also do under every allocator.
pub struct Reference {
    baseline: Subject,
    code: i32,
    trees: Mutex<Trees>,
    /// How the baseline's processes were scheduled.
    scheduled: Mutex<BTreeSet<Scheduling>>,
    /// What the command prints, if output is compared.
    printed: Option<Arc<Printed>>,
    /// The digest of what the command writes, if that is compared.
    written: Option<String>,
    /// A file that the command writes below its folder, if it may take turns with another process.
    writes: Option<String>,
}

impl Reference {
    /// Adds the programs that one more process of the baseline has executed, and how it was scheduled.
    fn learn(&self, ran: &Ran) {
        held(&self.scheduled).extend(ran.scheduled.clone());
        if ran.end.launched.left_behind == 0 {
            held(&self.trees).add(programs(&ran.witnessed), ran.ended);
        }
    }
}

impl CommandRunner<'_> {
    /// Runs the command to define what every allocator must reproduce. A variant must itself end and print as the
    /// baseline (`like`) does.
    pub fn reference(&self, like: Option<&Reference>) -> StepResult<Reference> {
        let wanted_output = like.and_then(|like| like.printed.as_ref());
        let (mut ran, mut changed) = self.with_changes(wanted_output)?;
        // Run once more, because a cache is written only once, and other programs may write to this folder, too.
        if changed.is_some()
            && let Ok((_, again)) = self.with_changes(wanted_output)
        {
            changed = again;
        }
        let code = ran.end.code().unwrap_or_default();
        let wanted = self.command.expect_exit.unwrap_or(0);
        let mut fault = self.fault(&mut ran, like)?;
        if fault.is_none() {
            fault = self.valued(ran.before.as_ref(), &ran.end, &mut Measurement::default());
        }
        if self.command.client.is_none() && code != wanted {
            let phase = Phase::Run.word().into();
            fault.get_or_insert(Outcome::Exit { code, phase });
        }
        if let Some(outcome) = fault {
            let attempt = self.attempt(outcome, ran, Measurement::default());
            return Err(EarlyEnd::Attempt(attempt.into()));
        }
        let printed = match ran.output.take() {
            None => wanted_output.cloned(),
            Some(output) => Some(Arc::new(output.end()?.0)),
        };
        let reference = Reference {
            baseline: self.subject.clone(),
            code,
            trees: Mutex::default(),
            scheduled: Mutex::default(),
            printed,
            written: self.written()?,
            writes: changed.map(|path| {
                let below = path.strip_prefix(&self.command.folder).unwrap_or(&path);
                below.display().to_string()
            }),
        };
        reference.learn(&ran);
        Ok(reference)
    }

    /// Runs the command, and looks for a file below its folder that changed meanwhile.
    fn with_changes(&self, wanted: Option<&Arc<Printed>>) -> StepResult<(Ran, Option<PathBuf>)> {
        let files = || {
            self.shares_files
                .then(|| Files::below(&self.command.folder))
        };
        let before = files();
        let ran = self.plain(None, wanted)?;
        let changed = before.zip(files());
        Ok((
            ran,
            changed.and_then(|(before, after)| before.changed(&after)),
        ))
    }

    /// Compares the programs that a process executed, and how many of its processes ended by themselves, with the
    /// baseline's.
    fn other_tree(&self, ran: &Ran, reference: &Reference) -> StepResult<Option<Outcome>> {
        // Processes that are ended with the command may or may not have executed something by then.
        if self.command.tree_may_differ || ran.end.launched.left_behind > 0 {
            return Ok(None);
        }
        if self.is_baseline && self.job.limit.is_none() {
            reference.learn(ran);
            return Ok(None);
        }
        let ours = programs(&ran.witnessed);
        let baseline = &reference.baseline.allocator.name;
        let wrong = |words: String| Outcome::WrongResult {
            what: format!("{words}; if that may be: --tree-may-differ"),
        };
        let others = self.unless_the_baseline_varies(reference, || {
            let words = held(&reference.trees).difference(&ours)?;
            Some(wrong(format!(
                "other programs than under {baseline} each time: {words}"
            )))
        })?;
        let fewer_ended = || held(&reference.trees).fewer_ended(ran.ended, baseline);
        // A server and its workers are ended by a signal, at an arbitrary moment.
        let is_server = self.command.client.is_some();
        if others.is_some()
            || is_server
            || fewer_ended().is_none()
            || !self.ends_badly(ran, reference)?
        {
            return Ok(others);
        }
        self.unless_the_baseline_varies(reference, || fewer_ended().map(wrong))
    }

    /// Checks whether a process was scheduled in another way than all of the baseline's. Commands that change their
    /// scheduling themselves are not compared.
    fn other_scheduling(&self, ran: &Ran, reference: &Reference) -> StepResult<Option<Outcome>> {
        let baseline = &reference.baseline.allocator.name;
        // The CPUs of a container may have changed meanwhile.
        self.unless_the_baseline_varies(reference, || {
            let known = held(&reference.scheduled);
            let known = known.first().filter(|_| known.len() == 1)?;
            let new = ran.scheduled.iter().find(|new| *new != known)?;
            let why = format!(
                "it ends scheduled as {new}, under {baseline} as {known}; a library that changes this cannot be compared \
                 with those that leave it as it is"
            );
            Some(Outcome::Unsupported { why })
        })
    }

    /// Returns a difference, unless more processes of the baseline show that it is the baseline's
    /// own; or the fault of one of those processes.
    fn unless_the_baseline_varies(
        &self,
        reference: &Reference,
        difference: impl Fn() -> Option<Outcome>,
    ) -> StepResult<Option<Outcome>> {
        for _ in 0..REPEATS {
            if difference().is_none() {
                return Ok(None);
            }
            match self.baseline_again(reference)? {
                Ok(ran) => reference.learn(&ran),
                Err(outcome) => return Ok(Some(outcome)),
            }
        }
        Ok(difference())
    }

    /// Runs one more process of the baseline, or returns why that has no end of its own.
    fn baseline_again(&self, reference: &Reference) -> StepResult<Result<Ran, Outcome>> {
        let free = Job {
            limit: None,
            ..self.job.clone()
        };
        let baseline = CommandRunner {
            subject: &reference.baseline,
            is_baseline: true,
            job: &free,
            ..*self
        };
        match baseline.plain(None, reference.printed.as_ref()) {
            Err(EarlyEnd::Attempt(attempt)) => Ok(Err(attempt.outcome)),
            ran => Ok(Ok(ran?)),
        }
    }

    /// Runs a timed process, or a check.
    pub fn run(&self, reference: &Reference, look: Look<'_>) -> Result<Attempt> {
        self.measured(reference, look).or_else(|end| match end {
            EarlyEnd::Attempt(attempt) => Ok(*attempt),
            EarlyEnd::Error(error) => Err(error),
        })
    }

    fn measured(&self, reference: &Reference, look: Look<'_>) -> StepResult<Attempt> {
        if let Some(outcome) = self.subject.refused.clone() {
            return Err(outcome.into());
        }
        let allocator = &self.subject.allocator;
        if allocator.single_threaded {
            let why = "built without locks, for programs of one thread: whether this one has more is unknown".into();
            return Err(Outcome::Unsupported { why }.into());
        }
        let warmup = if self.job.check {
            self.command.warmup
        } else {
            0
        };
        for _ in 0..warmup {
            let mut ran = self.plain(None, reference.printed.as_ref())?;
            if let Some(outcome) = self.fault(&mut ran, Some(reference))? {
                return Ok(self.attempt(outcome, ran, Measurement::default()));
            }
        }
        let mut ran = self.plain(Some(look), reference.printed.as_ref())?;
        let mut fault = self.fault(&mut ran, Some(reference))?;
        if fault.is_none() && self.job.check {
            let written = self.written()?;
            ran.digest.extend(written.clone());
            if let Some((ours, wanted)) = written.zip(reference.written.as_ref())
                && ours != *wanted
            {
                let baseline = &reference.baseline.allocator.name;
                let what =
                    format!("what it wrote has the digest {ours}, under {baseline} {wanted}");
                fault = Some(Outcome::WrongResult { what });
            }
        }
        if fault.is_none() {
            fault = self.other_tree(&ran, reference)?;
        }
        if fault.is_none() && !self.is_baseline {
            fault = self.other_scheduling(&ran, reference)?;
        }
        if let Some(outcome) = fault {
            return Ok(self.attempt(outcome, ran, Measurement::default()));
        }
        let mut launched = ran.end.launched;
        let littered = ran.litter.as_ref().zip(self.job.litter.as_ref());
        let is_server = self.command.client.is_some();
        let littered = match littered
            .map(|(file, order)| file.take_out(order, &mut launched, is_server))
            .transpose()
        {
            Ok(figures) => figures.unwrap_or_default(),
            Err(outcome) => return Ok(self.attempt(outcome, ran, Measurement::default())),
        };
        let mut measurement = measurement(launched, &ran);
        if let Some(outcome) = self.valued(ran.before.as_ref(), &ran.end, &mut measurement) {
            return Ok(self.attempt(outcome, ran, Measurement::default()));
        }
        measurement.figures.extend(littered);
        let notes = &mut measurement.notes;
        if !ran.digest.is_empty() {
            notes.insert(DIGEST.into(), ran.digest.join("; "));
        }
        if reference.code != 0 {
            notes.insert(EXIT_CODE.into(), reference.code.to_string());
            if let Some(line) = last_useful_line(&ran.end.last_words()) {
                notes.insert(SAID.into(), line.into());
            }
        }
        if matches!(allocator.source, Source::AsCalled) {
            let owners = ran.witnessed.iter().filter_map(|process| {
                let place = process.proof.owners.get("malloc")?;
                Some(process.proof.objects[*place].path.as_str())
            });
            let inside = self.variant().map_or(&[][..], |variant| &variant.inside);
            let owners: BTreeSet<&str> = owners.chain(inside.iter().map(String::as_str)).collect();
            notes.insert(SERVED_BY.into(), joined(owners, ", "));
        }
        let is_aged = self
            .job
            .litter
            .as_ref()
            .is_some_and(|litter| litter.bytes > 0);
        let is_as_built = matches!(allocator.source, Source::AsCalled) && self.variant().is_some();
        let is_of_baseline = allocator.name == reference.baseline.allocator.name;
        if self.job.check && !is_aged && (is_of_baseline || is_as_built) {
            let writes = reference.writes.clone();
            measurement
                .notes
                .extend(writes.map(|file| (WRITES.into(), file)));
            let becomes = self.becomes(&ran.witnessed);
            let becomes = becomes.map(|program| (BECOMES.into(), program.into()));
            measurement.notes.extend(becomes);
            self.probed(&mut measurement, &ran)?;
        }
        Ok(self.attempt(Outcome::Ok, ran, measurement))
    }

    /// Returns the program that a script becomes in the end, if most processes of its tree come before that.
    fn becomes<'w>(&self, witnessed: &'w [Witnessed]) -> Option<&'w str> {
        let first = witnessed.first()?;
        let named = Path::new(&self.command.command[0]).canonicalize().ok()?;
        let last = witnessed
            .iter()
            .rposition(|process| process.pid == first.pid)?;
        let starts_others = witnessed[..last]
            .iter()
            .any(|process| process.pid != first.pid);
        let is_script = named != Path::new(&first.program);
        let is_most = starts_others && last > witnessed.len() - last;
        (is_script && is_most).then_some(witnessed[last].program.as_str())
    }

    fn attempt(&self, outcome: Outcome, mut ran: Ran, measurement: Measurement) -> Attempt {
        // A program with a malloc of its own proves nothing about the row.
        ran.witnessed.sort_by_key(Witnessed::serves_itself);
        let proof = ran.witnessed.into_iter().next().map(|first| first.proof);
        // Interference is CPU time that neither the server nor its client used.
        if let Some(Served { client, .. }) = ran.served {
            ran.end.launched.user_ns += client.user_ns + client.sys_ns;
        }
        // The user's own variables are not recorded: they may hold anything, even secrets.
        let environment = self.subject.environment();
        Attempt::of_whole_process(outcome, ran.end, measurement, proof, environment, self.job)
    }
}

fn measurement(mut launched: Launched, ran: &Ran) -> Measurement {
    if let Some(served) = &ran.served {
        launched.wall_ns = served.client.wall_ns;
        (launched.user_ns, launched.sys_ns) = (served.used.cpu_ns, 0);
    }
    // The whole command is one operation.
    let mut measurement = Measurement::of_whole_process(&launched, 1);
    let end_rss_bytes = match &ran.served {
        Some(served) => Some(served.used.rss_bytes),
        None => ran.end_rss_bytes,
    };
    let served = ran.served.as_ref();
    // A command into which nothing can be preloaded does not report its processes.
    let processes = Some(ran.witnessed.len() as u64).filter(|count| *count > 0);
    let figures = [
        ("processes", processes),
        ("largest_process_rss_bytes", Some(launched.max_rss_bytes)),
        ("end_rss_bytes", end_rss_bytes),
        (
            "rest_rss_bytes",
            served.and_then(|served| served.rest_rss_bytes),
        ),
    ];
    let figures = figures.map(|(name, value)| Some((name.to_owned(), value? as f64)));
    measurement.figures.extend(figures.into_iter().flatten());
    let drained = served.map(|served| served.drained.clone());
    measurement.figures.extend(drained.into_iter().flatten());
    measurement.notes.extend(left_behind(&launched));
    measurement
}
