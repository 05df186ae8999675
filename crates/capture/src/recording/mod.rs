//! Runs a user's command under the recorder. The command keeps its environment, streams, folder and exit code; only the recorder is added.

mod cost;

pub use cost::Cost;

use crate::unrecorded::{Captured, Watch, silent};
use anyhow::{Context, Result};
use heapmark_core::build;
use heapmark_core::cmd::signals::is_ignored;
use heapmark_core::execute::Subject;
use heapmark_core::execute::child::monotonic_ns_after;
use heapmark_core::execute::handed::Handed;
use heapmark_core::execute::lender::Lender;
use heapmark_core::execute::oom_kills::OomKills;
use heapmark_core::file::{WithPath, folder_of};
use heapmark_trace::finish::head_of;
use heapmark_wire::lent::{LOG, VARIABLE};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::DirEntry;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

/// Signals that are meant for the program: those that end it, and those whose meaning it defines.
const PASSED_ON: [i32; 4] = [SIGTERM, SIGHUP, SIGUSR1, SIGUSR2];

/// The library that is preloaded.
pub struct Recorder(PathBuf);

/// What is recorded, and how much.
pub struct Recording<'a> {
    /// The program, by the name it is called with, and its arguments.
    pub command: &'a [OsString],
    /// The allocator that serves the program's memory, if not the C library or the program's own.
    pub subject: Option<&'a Subject>,
    /// Captures are named `STEM.PID.cap`. No other recording may use the same stem.
    pub stem: &'a Path,
    /// The largest size of a process's capture, in bytes.
    pub most_bytes: Option<u64>,
    /// How long to record.
    pub duration: Option<Duration>,
}

/// The result of a recording.
pub struct Recorded {
    /// The process that was started.
    pub pid: u32,
    /// How the started process ended.
    pub status: ExitStatus,
    /// Whether the kernel killed a process for lack of memory meanwhile.
    pub oom_kill: bool,
    /// The captures of the started process and its descendants, sorted by name.
    pub captures: Vec<PathBuf>,
    /// The prefix of the captures' names.
    pub stem: PathBuf,
    /// Programs of the tree that ran unrecorded, with the reasons.
    pub unrecorded: Vec<String>,
    /// Whether some processes run on without a capture so far: one of them may still begin
    /// one, which needs the capture of its parent.
    pub goes_on: bool,
}

impl Recorder {
    /// The recorder as `build::RECORDER` finds it.
    pub fn find() -> Result<Recorder> {
        build::RECORDER.find().map(Recorder)
    }

    /// Runs a command to its end.
    pub fn run(&self, recording: &Recording) -> Result<Recorded> {
        let before = captures(recording.stem)?;
        let (program, arguments) = recording.command.split_first().context("no command")?;
        let mut command = self.command(program, recording.subject, recording.stem);
        command.args(arguments);
        if let Some(bytes) = recording.most_bytes {
            command.env("HEAPMARK_RECORD_MAX_BYTES", bytes.to_string());
        }
        if let Some(duration) = recording.duration {
            let until_ns = monotonic_ns_after(duration);
            command.env("HEAPMARK_RECORD_UNTIL_NS", until_ns.to_string());
        }
        // A terminal sends Ctrl-C to all of us: the program decides whether that ends it. Other
        // signals are sent to heapmark alone and are meant for the program.
        let mut watched = vec![SIGINT, SIGQUIT];
        watched.extend(PASSED_ON);
        // What `nohup` has heapmark ignore, the program is to ignore, too: with a handler here it would not.
        watched.retain(|signal| !is_ignored(*signal));
        let mut signals = Signals::new(watched).context("cannot watch signals")?;
        let lender = Lender::of_captures(recording.stem)?;
        let programs = Handed::new()?;
        let oom_kills = OomKills::now();
        let mut child = command
            .env(&*LOG.to_string_lossy(), programs.told())
            .env(&*VARIABLE.to_string_lossy(), &lender.word)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pid = child.id();
        let handle = signals.handle();
        // Once the child has been waited for, its number may belong to another process.
        let pidfd = pidfd_open(Pid::from_child(&child), PidfdFlags::empty())
            .inspect_err(|_| _ = child.kill())
            .context("cannot watch the program")?;
        let watch = Watch::new(pid as i32, &self.0)
            .inspect_err(|_| _ = child.kill())
            .context("cannot start a thread")?;
        let pass_on = move || {
            for signal in signals.forever() {
                if PASSED_ON.contains(&signal)
                    && let Some(signal) = Signal::from_named_raw(signal)
                {
                    let _ = pidfd_send_signal(&pidfd, signal);
                }
            }
        };
        let watcher = std::thread::Builder::new()
            .spawn(pass_on)
            .inspect_err(|_| _ = child.kill())
            .context("cannot start a thread")?;
        let status = child.wait();
        let oom_kill = OomKills::now().since(oom_kills);
        handle.close();
        let _ = watcher.join();
        let ours = || -> Result<Vec<PathBuf>> {
            Ok(captures(recording.stem)?
                .difference(&before)
                .cloned()
                .collect())
        };
        let of_all = |captures: &[PathBuf]| -> Vec<Captured> {
            captures.iter().filter_map(|path| of(path)).collect()
        };
        let mut silent = silent(&lender.word, || Ok(of_all(&ours()?)))?;
        let captures = ours()?;
        let captured = of_all(&captures);
        // Some of these processes may have begun their captures just now.
        silent.retain(|(pid, _)| captured.iter().all(|one| one.pid != *pid));
        let status = status.context("cannot wait for the program")?;
        let mut unrecorded = watch.unrecorded(&captured, &programs, &self.0);
        let goes_on = !silent.is_empty();
        unrecorded.extend(silent.into_iter().map(|(_, words)| words));
        Ok(Recorded {
            goes_on,
            pid,
            status,
            oom_kill,
            captures,
            stem: recording.stem.to_path_buf(),
            unrecorded,
        })
    }

    fn command(&self, program: &OsStr, subject: Option<&Subject>, stem: &Path) -> Command {
        let mut command = Command::new(program);
        let files = subject
            .iter()
            .flat_map(|subject| &subject.library.files)
            .map(|file| file.clone().into_os_string());
        let inherited = std::env::var_os("LD_PRELOAD").filter(|files| !files.is_empty());
        let mut preload = self.0.clone().into_os_string();
        for file in files.chain(inherited) {
            preload.push(":");
            preload.push(file);
        }
        command
            .env("LD_PRELOAD", preload)
            .env("HEAPMARK_RECORD_TO", stem);
        command.envs(
            subject
                .iter()
                .flat_map(|subject| &subject.allocator.environment),
        );
        command
    }
}

impl Recorded {
    /// The folder of the captures.
    pub fn folder(&self) -> &Path {
        folder_of(&self.stem)
    }

    /// The capture of the program that was asked for. A shell that executes the program in its own place leaves an earlier capture.
    pub fn main(&self) -> Option<&PathBuf> {
        let start = format!("{}.{}.", self.stem.display(), self.pid);
        self.captures
            .iter()
            .filter(|path| path.to_string_lossy().starts_with(&start))
            .max_by_key(|path| (path.as_os_str().len(), path.as_os_str()))
    }

    /// The exit code as a shell reports it: that of the program, or 128 plus the number of the signal.
    pub fn code(&self) -> u8 {
        self.status
            .code()
            .or(self.status.signal().map(|signal| 128 + signal))
            .unwrap_or(1) as u8
    }
}

fn of(capture: &Path) -> Option<Captured> {
    let head = head_of(capture).ok()?;
    let started = head.get("begin") != Some("fork");
    Some(Captured {
        pid: head.get("pid")?.parse().ok()?,
        program: head.text("exe")?,
        started,
    })
}

/// The captures with this stem. A process that is killed before it can write leaves an empty file,
/// which is no capture.
fn captures(stem: &Path) -> Result<BTreeSet<PathBuf>> {
    let folder = folder_of(stem);
    let mut start = stem.file_name().unwrap_or_default().to_owned();
    start.push(".");
    let is_number = |part: &[u8]| !part.is_empty() && part.iter().all(u8::is_ascii_digit);
    let is_ours = |name: &OsStr| {
        let rest = name
            .as_encoded_bytes()
            .strip_prefix(start.as_encoded_bytes());
        let middle = rest.and_then(|rest| rest.strip_suffix(b".cap"));
        middle.is_some_and(|middle| middle.split(|byte| *byte == b'.').all(is_number))
    };
    let entries = folder.read_dir().with_path("cannot read", folder)?;
    let has_words = |entry: &DirEntry| entry.metadata().is_ok_and(|file| file.len() > 0);
    Ok(entries
        .flatten()
        .filter(|entry| is_ours(&entry.file_name()) && has_words(entry))
        .map(|entry| folder.join(entry.file_name()))
        .collect())
}
