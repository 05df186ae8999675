//! Runs one process of a command, with everything that it starts: from `--prepare` to its end.

use super::aged::LitterFile;
use super::command_runner::CommandRunner;
use super::in_malloc::Times;
use super::last_words::with_words;
use super::malloc_probe::{self, Witnessed};
use super::output::{OutputReader, Printed, nowhere};
use super::own_values::Before;
use super::scheduling::Scheduling;
use super::server::drain::Drain;
use super::server::{Drive, Served};
use crate::build::input::renew;
use crate::catalog::settings;
use crate::execute::Outcome;
use crate::execute::child::{Launch, Look, end_orphans, may_go_on, padded, wait_for};
use crate::execute::early_end::StepResult;
use crate::execute::exit::{End, STDERR_BYTES};
use crate::execute::handed::Handed;
use crate::execute::memory_file::{keep_last, stream_file, text};
use crate::file::WithPath;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A process that ran to its end, with all that it started.
pub struct Ran {
    pub end: End,
    /// The output, if it is read.
    pub output: Option<OutputReader>,
    pub witnessed: Vec<Witnessed>,
    /// Why no process could report, if the reason is known.
    pub unreported: Option<String>,
    /// What was resident at the end of the largest process of the tree that ended by itself.
    pub end_rss_bytes: Option<u64>,
    /// How many processes of the tree ended by themselves.
    pub ended: usize,
    /// How the processes of the tree that ended by themselves were scheduled then.
    pub scheduled: BTreeSet<Scheduling>,
    /// Digests of what the command printed and wrote, once compared.
    pub digest: Vec<String>,
    /// How the server and its client ended, for a server.
    pub served: Option<Served>,
    /// What aged the process's heap, in a run of aged heaps.
    pub litter: Option<LitterFile>,
    /// The state of files before the process wrote the numbers that it reports.
    pub(super) before: Option<Before>,
}

impl Ran {
    /// Returns a process that ended in this way, of which nothing else has been read yet.
    pub(super) fn of(end: End, served: Option<Served>) -> Ran {
        Ran {
            end,
            output: None,
            witnessed: Vec::new(),
            unreported: None,
            end_rss_bytes: None,
            ended: 0,
            scheduled: BTreeSet::new(),
            digest: Vec::new(),
            served,
            litter: None,
            before: None,
        }
    }

    /// Returns the time from start to end; for a server, the time of its client.
    pub fn wall_ns(&self) -> u64 {
        let served = self.served.as_ref();
        served.map_or(self.end.launched.wall_ns, |served| served.client.wall_ns)
    }

    /// Returns the CPU time of all processes of the command.
    pub fn cpu_ns(&self) -> u64 {
        let served = self.served.as_ref();
        served.map_or(self.end.cpu_ns(), |served| served.used.cpu_ns)
    }
}

/// Wraps a callback so that it is called no more often than it asked for, even if other callbacks
/// look more often.
fn paced(mut look: impl FnMut(i32) -> Duration) -> impl FnMut(i32) -> Duration {
    let mut due = Instant::now();
    move |pid| {
        let now = Instant::now();
        if due <= now {
            due = now + look(pid);
        }
        due.saturating_duration_since(now)
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
        may_go_on(self.stop)?;
        if let Some(outcome) = self.prepared()? {
            return Err(outcome.into());
        }
        let log = Handed::new()?;
        // A process whose output is read may have to wait for the reader. Outside of memory limits,
        // only two kinds are read: the reference, which has no `wanted` output, and checks. Under
        // limits all are read, because a wrong output is what is looked for, and the time of each
        // process is compared only with that of others which are read, too.
        let read = self.command.check_output
            && (wanted.is_none() || self.job.check || self.job.mode.limit().is_some());
        let output = read
            .then(|| OutputReader::new(wanted.cloned()))
            .transpose()?;
        let (output, mut stdout) = output.unzip();
        // A file, so that no process waits for a reader.
        let printed = self.reads_values_of_stdout();
        let printed = printed
            .then(|| stream_file("heapmark-stdout"))
            .transpose()?;
        if let Some(file) = &printed {
            let file = file.try_clone().context("cannot duplicate a memory file")?;
            stdout = Some(file.into());
        }
        let before = self.before_values(printed);
        let seed = self.job.seed;
        let litter = self.job.litter.as_ref();
        let litter = litter
            .map(|litter| LitterFile::new(litter, seed))
            .transpose()?;
        let mut variables = self.variables(&log);
        variables.extend(litter.iter().map(LitterFile::variable));
        let ran = self.start(variables, look, stdout, None, Some(&log))?;
        let report = log.text();
        let witnessed = malloc_probe::parse(&report);
        let cut = || (!report.is_empty()).then(|| "the report was cut off".to_owned());
        let unreported = witnessed.is_empty().then(|| log.trouble().or_else(cut));
        let mut scheduled = malloc_probe::scheduled_at_end(&report);
        if let Some(side) = &self.job.side {
            let outside =
                |scheduling: Scheduling| scheduling.outside_of_duet(side.cpu(), side.allowed());
            scheduled = scheduled.into_iter().map(outside).collect();
        }
        Ok(Ran {
            witnessed,
            unreported: unreported.flatten(),
            end_rss_bytes: malloc_probe::resident_at_end(&report),
            ended: malloc_probe::ended(&report),
            scheduled,
            litter,
            output,
            before: Some(before),
            ..ran
        })
    }

    /// Prepares what a process needs: the input of a real program, then `--prepare`. Returns the
    /// outcome if `--prepare` failed, or took too long.
    pub(super) fn prepared(&self) -> Result<Option<Outcome>> {
        let folder = &self.command.folder;
        if let Some(real) = &self.command.real
            && (real.changes_input || !folder.is_dir())
        {
            renew(&real.input, folder)?;
        }
        let Some(line) = &self.command.prepare else {
            return Ok(None);
        };
        // Ends what `--prepare` left running for the previous process; in a duet some of that may be the other side's.
        if self.job.side.is_none() {
            end_orphans();
        }
        // A file and not a pipe: a process that `--prepare` leaves running would keep a pipe open.
        let file = stream_file("heapmark-prepare")?;
        let stderr = file.try_clone().context("cannot duplicate a memory file")?;
        let mut shell = Command::new("sh")
            .arg("-c")
            .arg(line)
            .current_dir(folder)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(stderr)
            .env_remove("LD_PRELOAD")
            .spawn()
            .context("cannot start sh for --prepare")?;
        let side = self.job.side.as_ref();
        let ended = wait_for(&mut shell, self.prepare_timeout, self.stop, side)?;
        // The terminal sends Ctrl-C to sh, too: what sh did then is no failure.
        may_go_on(self.stop)?;
        let failed = match ended {
            Some(status) if status.success() => return Ok(None),
            Some(status) => format!("--prepare: {status}"),
            None => {
                let limit_s = self.prepare_timeout.as_secs_f64();
                format!("--prepare took longer than {limit_s} s (--timeout)")
            }
        };
        let what = with_words(&failed, &text(&file, 0));
        Ok(Some(Outcome::Error { what }))
    }

    /// Returns the variables that are set in the command's processes in addition to the user's own.
    pub(super) fn variables(&self, log: &Handed) -> BTreeMap<String, String> {
        let mut variables = self.subject.environment();
        // A row's value is added to the user's list and does not replace it.
        for (name, user_value) in self.environment() {
            if let Some(value) = name.to_str().and_then(|name| variables.get_mut(name)) {
                *value = settings::joined(
                    &name.to_string_lossy(),
                    &user_value.to_string_lossy(),
                    value,
                );
            }
        }
        if self.silent().is_some() {
            return variables;
        }
        let witness = self.tools.witness.display().to_string();
        let preload = variables
            .get("LD_PRELOAD")
            .map_or(witness.clone(), |files| format!("{files}:{witness}"));
        let aging = self.tools.aging.as_ref();
        let litter = aging.map(|aging| format!(":{}", aging.litter.display()));
        let preload = preload + &litter.unwrap_or_default();
        variables.extend([
            ("LD_PRELOAD".into(), preload),
            ("HEAPMARK_WITNESS".into(), log.told()),
        ]);
        variables
    }

    /// Prepares the command below the launcher, with these further options.
    pub(super) fn launch(
        &self,
        options: &[&str],
        variables: &BTreeMap<String, String>,
    ) -> Result<Launch> {
        let stdin = match (&self.command.stdin, &self.command.piped) {
            (None, None) => Stdio::null(),
            (Some(file), _) => File::open(file)
                .with_path("--stdin: cannot read", file)?
                .into(),
            (None, Some(piped)) => {
                let file = piped.file.as_ref().context("stdin was not read again")?;
                // Opened again: each process reads from the beginning.
                let path = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
                File::open(path)
                    .context("cannot read what came from stdin")?
                    .into()
            }
        };
        let variables = padded(variables, self.job.padding);
        let mut launch = Launch::new(self.launcher, options, &self.job.rules(), variables)?;
        launch
            .command
            .args(&self.command.command)
            .current_dir(&self.command.folder)
            .envs(self.environment())
            .stdin(stdin);
        Ok(launch)
    }

    /// Returns what watches a server after its load, if that was requested.
    pub(super) fn drain(&self, counts: bool) -> Option<Drain> {
        let length = self.command.client.as_ref()?.drain()?;
        Some(Drain::new(length, counts))
    }

    /// Returns how much longer a process may take if it is watched after its load.
    pub(super) fn drained_for(&self) -> Duration {
        let client = self.command.client.as_ref();
        client.and_then(|client| client.drain()).unwrap_or_default()
    }

    /// Runs the command below the launcher, with its client if it has one.
    pub(super) fn start(
        &self,
        variables: BTreeMap<String, String>,
        look: Option<Look<'_>>,
        stdout: Option<Stdio>,
        times: Option<&Times>,
        reports: Option<&Handed>,
    ) -> Result<Ran> {
        let mut launch = self.launch(&["inherit"], &variables)?;
        let mut stdout = stdout.map_or_else(nowhere, Ok)?;
        let mut of_client = nowhere()?;
        // If the command is a server, its client prints what can be compared.
        if self.command.client.is_some() {
            std::mem::swap(&mut stdout, &mut of_client);
        }
        launch.command.stdout(stdout);
        let words = launch
            .stderr
            .try_clone()
            .context("cannot hand on a memory file")?;
        let mut drive = Drive::of(self, &launch.account, times, of_client)?;
        if let Some(drive) = &mut drive {
            drive.reports = reports;
            drive.rests = self.job.check && look.is_some();
            if drive.rests {
                drive.drain = self.drain(false);
            }
        }
        let mut look = look.map(paced);
        // An error while trimming the file in memory occurs again when the rest is read, and is
        // reported then.
        let mut read = paced(|_| {
            let _ = keep_last(&words, STDERR_BYTES);
            READ
        });
        let mut looks = |pid| {
            let next = read(pid).min(look.as_mut().map_or(Duration::MAX, |look| look(pid)));
            drive
                .as_mut()
                .map_or(next, |drive| next.min(drive.look(pid)))
        };
        let timeout = self.timeout + self.drained_for();
        let end = launch.run(timeout, self.stop, Some(&mut looks))?;
        let served = drive.map(|drive| drive.served(&end));
        Ok(Ran::of(end, served))
    }
}
