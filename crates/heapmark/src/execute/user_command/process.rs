//! One process of a command, with what it starts: from what `--prepare` does until it has ended.

use super::CommandRunner;
use super::diagnosis::with_words;
use super::in_malloc::Times;
use super::malloc_probe::{Log, Witnessed};
use super::output::{self, Output, Printed};
use super::server::{Drive, Served};
use crate::catalog::settings;
use crate::execute::child::{self, Look};
use crate::execute::exit::{End, LaunchedEnd, STDERR_BYTES};
use crate::execute::memory_file::{inherited_file, keep_last, stderr_file};
use crate::execute::{Attempt, Outcome};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// One process, with what it started, that came to its end.
pub(super) struct Ran {
    pub end: End,
    /// What it printed, where somebody wants to know.
    pub output: Option<Output>,
    pub witnessed: Vec<Witnessed>,
    pub left_behind: u64,
    /// Why the command could not be started.
    pub refused: Option<String>,
    /// What a client measured who drove it.
    pub served: Option<Served>,
}

impl Ran {
    /// CPU time of all its processes.
    pub fn cpu_ns(&self) -> u64 {
        self.served.as_ref().map_or(self.end.usage.user_ns + self.end.usage.sys_ns, |served| served.cpu_ns)
    }
}

/// What a step came to, where no process of ours ended it early: a value, or why there is none.
pub(super) type Step<T> = Result<Option<std::result::Result<T, Box<Attempt>>>>;

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

/// From one look at what a process writes to stderr to the next.
const READ: Duration = Duration::from_millis(20);

/// The user's own environment, as what is not measured has it: all of it but what is preloaded.
pub(super) fn of_the_user() -> impl Iterator<Item = (OsString, OsString)> {
    std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD")
}

impl CommandRunner<'_> {
    /// The user's own environment without what configures allocators: rows would be others than their names say, and two allocators
    /// in one process would prove nothing.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        self.trial.settings.split(of_the_user()).0
    }

    /// The command as it is, after what `--prepare` does.
    pub(super) fn plain(&self, look: Option<Look<'_>>, wanted: Option<&Arc<Printed>>) -> Step<Ran> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if let Some(outcome) = self.prepared()? {
            return Ok(Some(Err(Box::new(Attempt::without_process(outcome)))));
        }
        let log = Log::new()?;
        // Who is read may have to wait for the reader: the reference, which is the one that wants nothing, and checks.
        let read = self.trial.check_output && (wanted.is_none() || self.job.check);
        let output = read.then(|| Output::new(wanted.cloned())).transpose()?;
        let ran = self.start(self.variables(&log), look, output, None)?;
        Ok(ran.map(|ran| Ok(Ran { witnessed: log.read(), ..ran })))
    }

    /// What `--prepare` came to, where that is nothing good.
    pub(super) fn prepared(&self) -> Result<Option<Outcome>> {
        let Some(line) = &self.trial.prepare else { return Ok(None) };
        let mut command = Command::new("sh");
        command.arg("-c").arg(line).current_dir(&self.trial.folder).stdin(Stdio::null());
        let output = command.env_remove("LD_PRELOAD").output().context("cannot start sh for --prepare")?;
        let what = || with_words(&format!("--prepare: {}", output.status), &String::from_utf8_lossy(&output.stderr));
        // Ctrl-C is told to sh, too: what it did then is no fault of its.
        let failed = !output.status.success() && !self.stop.load(Ordering::Relaxed);
        Ok(failed.then(|| Outcome::Error { what: what() }))
    }

    /// What is set in the command's processes beside the user's own environment.
    pub(super) fn variables(&self, log: &Log) -> BTreeMap<String, String> {
        let mut variables = self.subject.environment();
        // A row adds to the user's list, and does not end it.
        for (name, own) in self.environment() {
            if let Some(value) = name.to_str().and_then(|name| variables.get_mut(name)) {
                *value = settings::joined(&name.to_string_lossy(), &own.to_string_lossy(), value);
            }
        }
        let witness = self.tools.witness.display().to_string();
        let preload = variables.get("LD_PRELOAD").map_or(witness.clone(), |files| format!("{files}:{witness}"));
        variables.extend([("LD_PRELOAD".into(), preload), log.variable()]);
        variables
    }

    /// The command below the launcher, which writes its account into that file. Where it is `held`, it stops itself first.
    pub(super) fn launch(&self, account: &File, held: bool, variables: &BTreeMap<String, String>) -> Result<Command> {
        let mut launch = Command::new(self.launcher);
        launch.arg("launch").arg(account.as_raw_fd().to_string()).arg("inherit").args(held.then_some("held"));
        launch.args(variables.iter().map(|(name, value)| format!("{name}={value}")));
        launch.arg(format!("HEAPMARK_PADDING={}", "x".repeat(self.job.padding as usize)));
        launch.arg("--").args(&self.trial.command).current_dir(&self.trial.folder).stdin(self.stdin()?);
        Ok(launch)
    }

    fn stdin(&self) -> Result<Stdio> {
        let Some(file) = &self.trial.stdin else { return Ok(Stdio::null()) };
        Ok(File::open(file).with_context(|| format!("--stdin: cannot read {}", file.display()))?.into())
    }

    /// Runs it below the launcher, with its client where it has one. `None` where `stop` was set meanwhile.
    pub(super) fn start(
        &self,
        variables: BTreeMap<String, String>,
        look: Option<Look<'_>>,
        output: Option<(Output, Stdio)>,
        times: Option<&Times>,
    ) -> Result<Option<Ran>> {
        let account = inherited_file("heapmark-account")?;
        let mut launch = self.launch(&account, false, &variables)?;
        let (output, stdout) = output.unzip();
        launch.stdout(stdout.map_or_else(output::nowhere, Ok)?);
        let stderr = stderr_file()?;
        let words = stderr.try_clone().context("cannot hand on a memory file")?;
        let mut drive =
            self.trial.client.as_ref().map(|client| Drive::new(client, self, &account, times)).transpose()?;
        let mut look = look.map(Paced::new);
        // What goes wrong in a look at a file in memory does so again when the rest is read, and is said then.
        let mut read = |_| {
            let _ = keep_last(&words, STDERR_BYTES);
            READ
        };
        let mut read = Paced::new(&mut read);
        let mut looks = |pid| {
            let next = read.look(pid).min(look.as_mut().map_or(Duration::MAX, |look| look.look(pid)));
            drive.as_mut().map_or(next, |drive| next.min(drive.look(pid)))
        };
        launch.env_clear().envs(self.environment());
        let end = child::run(launch, stderr, self.timeout, self.stop, Some(&mut looks))?;
        let Some(end) = end else { return Ok(None) };
        let LaunchedEnd { end, left_behind, refused } = end.launched(&account, &self.trial.command[0]);
        let served = drive.map(|drive| drive.served(&end)).transpose()?;
        Ok(Some(Ran { end, output, witnessed: Vec::new(), left_behind, refused, served }))
    }
}
