//! Runs one process of a command, with everything that it starts: from `--prepare` to its end.

use super::command_runner::CommandRunner;
use super::in_malloc::Times;
use super::last_words::with_words;
use super::malloc_probe::{Log, Witnessed};
use super::output::{self, OutputReader, Printed};
use super::server::{Drive, Served};
use crate::catalog::settings;
use crate::execute::child::{self, Look};
use crate::execute::exit::{End, LaunchedEnd, STDERR_BYTES};
use crate::execute::memory_file::{inherited_file, keep_last, stderr_file};
use crate::execute::{Attempt, Outcome};
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// One process, with what it started, that ran to its end.
pub(super) struct Ran {
    pub end: End,
    /// What it printed, if its output is read.
    pub output: Option<OutputReader>,
    pub witnessed: Vec<Witnessed>,
    pub left_behind: u64,
    /// Why the command could not be started.
    pub refused: Option<String>,
    /// What its client measured, for a server.
    pub served: Option<Served>,
}

impl Ran {
    /// CPU time of all its processes.
    pub fn cpu_ns(&self) -> u64 {
        self.served
            .as_ref()
            .map_or(self.end.usage.user_ns + self.end.usage.sys_ns, |served| {
                served.cpu_ns
            })
    }
}

/// The result of a step: a value, or why there is none. `None` if `stop` was set.
pub(super) type StepResult<T> = Result<Option<std::result::Result<T, Box<Attempt>>>>;

/// A callback that is called no more often than it asked for, even if other callbacks look more
/// often.
struct Paced<'a> {
    look: Look<'a>,
    due: Instant,
}

impl Paced<'_> {
    fn new(look: Look<'_>) -> Paced<'_> {
        Paced {
            look,
            due: Instant::now(),
        }
    }

    /// Looks if it is time to; returns the wait until the next look.
    fn look(&mut self, pid: i32) -> Duration {
        let now = Instant::now();
        if self.due <= now {
            self.due = now + (self.look)(pid);
        }
        self.due.saturating_duration_since(now)
    }
}

/// Time between two looks at a process's stderr.
const READ: Duration = Duration::from_millis(20);

impl CommandRunner<'_> {
    /// Runs the command unchanged, after `--prepare`.
    pub(super) fn plain(
        &self,
        look: Option<Look<'_>>,
        wanted: Option<&Arc<Printed>>,
    ) -> StepResult<Ran> {
        if self.stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if let Some(outcome) = self.prepared()? {
            return Ok(Some(Err(Box::new(Attempt::without_process(outcome)))));
        }
        let log = Log::new()?;
        // A process whose output is read may have to wait for the reader. Only two kinds are read:
        // the reference, which has no `wanted` output, and checks.
        let read = self.command.check_output && (wanted.is_none() || self.job.check);
        let output = read
            .then(|| OutputReader::new(wanted.cloned()))
            .transpose()?;
        let ran = self.start(self.variables(&log), look, output, None)?;
        Ok(ran.map(|ran| {
            Ok(Ran {
                witnessed: log.read(),
                ..ran
            })
        }))
    }

    /// The failure of `--prepare`, if it failed.
    pub(super) fn prepared(&self) -> Result<Option<Outcome>> {
        let Some(line) = &self.command.prepare else {
            return Ok(None);
        };
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(line)
            .current_dir(&self.command.folder)
            .stdin(Stdio::null());
        let output = command
            .env_remove("LD_PRELOAD")
            .output()
            .context("cannot start sh for --prepare")?;
        let what = || {
            with_words(
                &format!("--prepare: {}", output.status),
                &String::from_utf8_lossy(&output.stderr),
            )
        };
        // The terminal sends Ctrl-C to sh, too: what sh did then is no failure.
        let failed = !output.status.success() && !self.stop.load(Ordering::Relaxed);
        Ok(failed.then(|| Outcome::Error { what: what() }))
    }

    /// The variables that are set in the command's processes in addition to the user's own.
    pub(super) fn variables(&self, log: &Log) -> BTreeMap<String, String> {
        let mut variables = self.subject.environment();
        // A row's value is added to the user's list and does not replace it.
        for (name, own) in self.environment() {
            if let Some(value) = name.to_str().and_then(|name| variables.get_mut(name)) {
                *value = settings::joined(&name.to_string_lossy(), &own.to_string_lossy(), value);
            }
        }
        let witness = self.tools.witness.display().to_string();
        let preload = variables
            .get("LD_PRELOAD")
            .map_or(witness.clone(), |files| format!("{files}:{witness}"));
        variables.extend([("LD_PRELOAD".into(), preload), log.variable()]);
        variables
    }

    /// The command below the launcher, which writes its account into that file. If `held`, it stops
    /// itself first.
    pub(super) fn launch(
        &self,
        account: &File,
        held: bool,
        variables: &BTreeMap<String, String>,
    ) -> Result<Command> {
        let mut launch = Command::new(self.launcher);
        launch
            .arg("launch")
            .arg(account.as_raw_fd().to_string())
            .arg("inherit")
            .args(held.then_some("held"));
        launch.args(
            variables
                .iter()
                .map(|(name, value)| format!("{name}={value}")),
        );
        launch.arg(format!(
            "HEAPMARK_PADDING={}",
            "x".repeat(self.job.padding as usize)
        ));
        launch
            .arg("--")
            .args(&self.command.command)
            .current_dir(&self.command.folder)
            .stdin(self.stdin()?);
        Ok(launch)
    }

    fn stdin(&self) -> Result<Stdio> {
        let Some(file) = &self.command.stdin else {
            return Ok(Stdio::null());
        };
        Ok(File::open(file)
            .with_context(|| format!("--stdin: cannot read {}", file.display()))?
            .into())
    }

    /// Runs it below the launcher, with its client if it has one. `None` if `stop` was set.
    pub(super) fn start(
        &self,
        variables: BTreeMap<String, String>,
        look: Option<Look<'_>>,
        output: Option<(OutputReader, Stdio)>,
        times: Option<&Times>,
    ) -> Result<Option<Ran>> {
        let account = inherited_file("heapmark-account")?;
        let mut launch = self.launch(&account, false, &variables)?;
        let (output, stdout) = output.unzip();
        launch.stdout(stdout.map_or_else(output::nowhere, Ok)?);
        let stderr = stderr_file()?;
        let words = stderr.try_clone().context("cannot hand on a memory file")?;
        let mut drive = self
            .command
            .client
            .as_ref()
            .map(|client| Drive::new(client, self, &account, times))
            .transpose()?;
        let mut look = look.map(Paced::new);
        // An error while trimming the file in memory occurs again when the rest is read, and is
        // reported then.
        let mut read = |_| {
            let _ = keep_last(&words, STDERR_BYTES);
            READ
        };
        let mut read = Paced::new(&mut read);
        let mut looks = |pid| {
            let next = read
                .look(pid)
                .min(look.as_mut().map_or(Duration::MAX, |look| look.look(pid)));
            drive
                .as_mut()
                .map_or(next, |drive| next.min(drive.look(pid)))
        };
        launch.env_clear().envs(self.environment());
        let end = child::run(launch, stderr, self.timeout, self.stop, Some(&mut looks))?;
        let Some(end) = end else { return Ok(None) };
        let LaunchedEnd {
            end,
            left_behind,
            refused,
        } = end.launched(&account, &self.command.command[0]);
        let served = drive.map(|drive| drive.served(&end)).transpose()?;
        Ok(Some(Ran {
            end,
            output,
            witnessed: Vec::new(),
            left_behind,
            refused,
            served,
        }))
    }
}
