//! A command of the user's, below the launcher: their environment, their allocator, and nothing of ours but a witness in each
//! process that says who serves its memory. The whole process is the workload.
//!
//! What takes longer than the plain command (counting, tracing) is asked in processes of the baseline's check.

mod environment;
mod executed;
mod in_malloc;
mod output;
mod server;
mod witness;

use super::child::{self, End, LaunchedEnd, inherited_file, memory_file};
use super::report::Report;
use super::{Attempt, Iteration, Job, Measurement, Outcome, Subject};
use crate::plan::Trial;
use anyhow::{Context, Result, bail};
use heapmark_wire::Phase;
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use witness::Witnessed;

pub use child::Look;
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
    stdout: File,
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

/// One process, with what it started, that came to its end.
struct Ran {
    end: End,
    stdout: File,
    witnessed: Vec<Witnessed>,
    left_behind: u64,
    /// Why the command could not be started.
    refused: Option<String>,
    /// What a client measured who drove it.
    served: Option<server::Served>,
}

/// Somebody who looks no more often than they asked for, whoever else looks meanwhile.
struct Paced<'a> {
    look: Look<'a>,
    due: Instant,
}

impl Paced<'_> {
    fn new(look: Look<'_>) -> Paced<'_> {
        Paced { look, due: Instant::now() }
    }

    /// Says how long it is to the next look.
    fn look(&mut self, pid: i32) -> Duration {
        let now = Instant::now();
        if self.due <= now {
            self.due = now + (self.look)(pid);
        }
        self.due.saturating_duration_since(now)
    }
}

/// What a step came to, where no process of ours ended it early: a value, or why there is none.
type Step<T> = Result<Option<std::result::Result<T, Box<Attempt>>>>;

impl Tried<'_> {
    /// Runs it as everybody else must. `None` where `stop` was set meanwhile.
    pub fn reference(&self) -> Step<Reference> {
        let Some(ran) = self.plain(None)? else { return Ok(None) };
        let ran = match ran {
            Ok(ran) => ran,
            Err(attempt) => return Ok(Some(Err(attempt))),
        };
        match self.fault(&ran, None)? {
            Some(outcome) => Ok(Some(Err(Box::new(self.attempt(outcome, ran, Measurement::default()))))),
            None => {
                let code = ran.end.code().unwrap_or_default();
                Ok(Some(Ok(Reference { baseline: self.subject.allocator.name.clone(), code, stdout: ran.stdout })))
            }
        }
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
            match self.plain(None)? {
                None => return Ok(None),
                Some(Err(attempt)) => return Ok(Some(*attempt)),
                Some(Ok(_)) => {}
            }
        }
        let ran = match self.plain(Some(look))? {
            None => return Ok(None),
            Some(Err(attempt)) => return Ok(Some(*attempt)),
            Some(Ok(ran)) => ran,
        };
        if let Some(outcome) = self.fault(&ran, Some(reference))? {
            return Ok(Some(self.attempt(outcome, ran, Measurement::default())));
        }
        let mut measurement = self.measurement(&ran);
        if self.job.check && self.subject.allocator.name == reference.baseline && !self.asked(&mut measurement, &ran)? {
            return Ok(None);
        }
        Ok(Some(self.attempt(Outcome::Ok, ran, measurement)))
    }

    /// What is asked of the baseline only; `false` where `stop` was set meanwhile.
    fn asked(&self, measurement: &mut Measurement, plain: &Ran) -> Result<bool> {
        if self.trial.client.is_some() {
            measurement.notes.extend(witness::told(&plain.witnessed, &[]));
            return Ok(true);
        }
        if let Some(outcome) = self.prepared()? {
            bail!("{outcome}");
        }
        let preload = self.tools.timer.display().to_string();
        let times = in_malloc::Times::new()?;
        let variables = [("LD_PRELOAD".to_string(), preload), times.variable()].into();
        match self.start(variables, None)? {
            None => return Ok(false),
            Some(Ok(timed)) if timed.end.code().is_some() => {
                let usages = [&plain.end.usage, &timed.end.usage];
                let cpu_ns = usages.map(|usage| usage.user_ns + usage.sys_ns).into_iter().min().unwrap_or(0);
                measurement.figures.extend(times.figures(cpu_ns)?);
            }
            Some(_) => {}
        }
        if let Some(outcome) = self.prepared()? {
            bail!("{outcome}");
        }
        let log = witness::Log::new()?;
        let variables = self.variables(&log);
        match executed::executed(self.bare(&variables)?, self.timeout, self.stop)? {
            None => return Ok(false),
            Some(executed) => measurement.notes.extend(witness::told(&log.read(), &executed)),
        }
        Ok(true)
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

    /// What is wrong with a process: who served it, the way it ended, or what it printed.
    fn fault(&self, ran: &Ran, reference: Option<&Reference>) -> Result<Option<Outcome>> {
        if let Some(why) = ran.refused.clone() {
            return Ok(Some(Outcome::Unsupported { why }));
        }
        if let Some(why) = witness::unproven(self.subject, &ran.witnessed) {
            return Ok(Some(Outcome::NotLoaded { why }));
        }
        let phase = if ran.witnessed.is_empty() { Phase::Load } else { Phase::Run };
        if let Some(served) = &ran.served {
            return Ok(served.fault());
        }
        let Some(code) = ran.end.code() else { return Ok(ran.end.outcome(phase, &Report::parse(""))) };
        if ran.witnessed.is_empty() {
            let outcome = ran.end.outcome(phase, &Report::parse(""));
            let silent = "no process of the command said who serves its malloc".into();
            return Ok(outcome
                .filter(|outcome| code != 0 && matches!(outcome, Outcome::NotLoaded { .. }))
                .or(Some(Outcome::NotLoaded { why: silent })));
        }
        let Some(reference) = reference else { return Ok(None) };
        if code != reference.code {
            let what = format!("exit code {code}, under {} {}", reference.baseline, reference.code);
            return Ok(Some(Outcome::WrongResult { what }));
        }
        if !self.trial.check_output {
            return Ok(None);
        }
        let difference = output::difference(&ran.stdout, &reference.stdout)?;
        Ok(difference.map(|what| Outcome::WrongResult { what: format!("{what} under {}", reference.baseline) }))
    }

    /// The command as it is, after what `--prepare` does.
    fn plain(&self, look: Option<Look<'_>>) -> Step<Ran> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if let Some(outcome) = self.prepared()? {
            return Ok(Some(Err(Box::new(Attempt::without_process(outcome)))));
        }
        let log = witness::Log::new()?;
        let started = self.start(self.variables(&log), look)?;
        Ok(started.map(|ran| ran.map(|ran| Ran { witnessed: log.read(), ..ran })))
    }

    /// What `--prepare` came to, where that is nothing good.
    fn prepared(&self) -> Result<Option<Outcome>> {
        let Some(line) = &self.trial.prepare else { return Ok(None) };
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).current_dir(&self.trial.folder).stdin(Stdio::null());
        let output = command.env_remove("LD_PRELOAD").output().context("cannot start sh for --prepare")?;
        let words = String::from_utf8_lossy(&output.stderr).trim_end().lines().last().unwrap_or_default().to_owned();
        Ok((!output.status.success())
            .then(|| Outcome::Error { what: format!("--prepare: {}: {words}", output.status) }))
    }

    /// What is set in the command's processes beside the user's own environment.
    fn variables(&self, log: &witness::Log) -> BTreeMap<String, String> {
        let mut variables = self.subject.environment();
        let witness = self.tools.witness.display().to_string();
        let preload = variables.get("LD_PRELOAD").map_or(witness.clone(), |files| format!("{files}:{witness}"));
        variables.extend([("LD_PRELOAD".into(), preload), log.variable()]);
        variables
    }

    /// The command without a launcher.
    fn bare(&self, variables: &BTreeMap<String, String>) -> Result<Command> {
        let (first, arguments) = self.trial.command.split_first().context("a command without words")?;
        let mut command = Command::new(first);
        command.args(arguments).current_dir(&self.trial.folder).stdin(self.stdin()?);
        command.env_clear().envs(environment::of_the_user()).envs(variables);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }

    fn stdin(&self) -> Result<Stdio> {
        let Some(file) = &self.trial.stdin else { return Ok(Stdio::null()) };
        Ok(File::open(file).with_context(|| format!("--stdin: cannot read {}", file.display()))?.into())
    }

    /// Runs it below the launcher.
    fn start(&self, variables: BTreeMap<String, String>, look: Option<Look<'_>>) -> Step<Ran> {
        let (stdout, account) = (memory_file("heapmark-stdout")?, inherited_file("heapmark-account")?);
        let mut launch = Command::new(self.launcher);
        launch.arg("launch").arg(account.as_raw_fd().to_string()).arg("inherit");
        launch.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
        launch.arg(format!("HEAPMARK_PADDING={}", "x".repeat(self.job.padding as usize)));
        launch.arg("--").args(&self.trial.command).current_dir(&self.trial.folder).stdin(self.stdin()?);
        launch.stdout(stdout.try_clone().context("cannot hand on a memory file")?);
        let mut drive = self.trial.client.as_ref().map(|client| server::Drive::new(client, self)).transpose()?;
        let mut look = look.map(Paced::new);
        let mut looks = |pid| {
            let next = look.as_mut().map_or(Duration::MAX, |look| look.look(pid));
            drive.as_mut().map_or(next, |drive| next.min(drive.look(pid)))
        };
        let end = child::run(launch, environment::of_the_user(), 0, self.timeout, self.stop, Some(&mut looks))?;
        let Some(end) = end else { return Ok(None) };
        let LaunchedEnd { end, left_behind, refused } = end.launched(&account, &self.trial.command[0]);
        let served = drive.map(|drive| drive.served(&end)).transpose()?;
        Ok(Some(Ok(Ran { end, stdout, witnessed: Vec::new(), left_behind, refused, served })))
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
