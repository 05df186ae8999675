//! A measured process from its start to its end, and nothing left of it.

use super::report::Report;
use super::{Guest, Outcome, Usage};
use anyhow::{Context, Result, anyhow};
use heapmark_guest::launch::account;
use heapmark_wire::{EXIT_FAILED, Launched, Page, Phase};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How much of a failed process's stderr is kept.
const STDERR_BYTES: u64 = 4096;
/// How much of a memory file is ever read.
const MOST_TEXT_BYTES: u64 = 16 << 20;

/// The exit code of a process that the dynamic linker did not start.
const LINKER_REFUSED: i32 = 127;

/// How many threads of a process that hangs are described.
const MOST_THREADS: usize = 16;

/// How long a signal may go unseen.
const SHORT_WAIT: Duration = Duration::from_millis(200);

/// The memory file that host and guest share.
pub(super) struct SharedPage {
    file: File,
    address: *mut Page,
}

impl SharedPage {
    pub(super) fn new(job: &str) -> Result<SharedPage> {
        let file = inherited_file("heapmark-page")?;
        ftruncate(&file, size_of::<Page>() as u64).context("cannot size a memory file")?;
        // SAFETY: a fresh shared mapping of a file of that size; zeroed memory is a valid page.
        let address = unsafe {
            let protection = ProtFlags::READ | ProtFlags::WRITE;
            mmap(std::ptr::null_mut(), size_of::<Page>(), protection, MapFlags::SHARED, &file, 0)
        };
        let page = SharedPage { address: address.context("cannot map a memory file")?.cast(), file };
        page.page()
            .set_job(job)
            .map_err(|_| anyhow!("the job's {} bytes do not fit into the shared page", job.len()))?;
        Ok(page)
    }

    /// A command that starts the guest with this page.
    pub(super) fn command(&self, guest: &Guest) -> Command {
        let mut command = Command::new(guest.path());
        command.arg(self.argument()).stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Under which name a child finds it.
    pub(super) fn argument(&self) -> String {
        format!("/proc/self/fd/{}", self.file.as_raw_fd())
    }

    pub(super) fn page(&self) -> &Page {
        // SAFETY: mapped by `new` until drop; what the guest writes there is read with care for torn text.
        unsafe { &*self.address }
    }

    pub(super) fn phase(&self) -> Phase {
        self.page().phase()
    }

    pub(super) fn report(&self) -> &str {
        self.page().report()
    }
}

impl Drop for SharedPage {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and no reference is left.
        let _ = unsafe { munmap(self.address.cast(), size_of::<Page>()) };
    }
}

/// How a process ended, before its report is read.
pub(super) struct End {
    status: i32,
    /// Set where it was killed for its time: the limit, and what its threads were doing.
    hang: Option<(Duration, Vec<String>)>,
    pub(super) usage: Usage,
    stderr: File,
}

/// How a process ended that a launcher ran.
pub(super) struct LaunchedEnd {
    pub end: End,
    /// Processes that it left running.
    pub left_behind: u64,
    /// Why it could not be started.
    pub refused: Option<String>,
}

/// Somebody who looks at a process from time to time while it runs, and says how long to wait for the next look.
pub type Look<'a> = &'a mut dyn FnMut(i32) -> Duration;

/// Starts a command, its stdin and stdout set, waits for it, and lets `watch` look at it in between. `None` where `stop` was set meanwhile.
pub(super) fn run(
    mut command: Command,
    environment: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    padding: u32,
    timeout: Duration,
    stop: &AtomicBool,
    mut watch: Option<Look<'_>>,
) -> Result<Option<End>> {
    let stderr = memory_file("heapmark-stderr")?;
    command
        .env_clear()
        .envs(environment)
        .env("HEAPMARK_PADDING", "x".repeat(padding as usize))
        .stderr(stderr.try_clone().context("cannot hand on a memory file")?)
        .process_group(0);
    let host = std::process::id() as i32;
    // SAFETY: only async-signal-safe system calls between fork and exec.
    unsafe { command.pre_exec(move || before_exec(host)) };

    let began = Instant::now();
    let child = command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))?;
    let pid = rustix::process::Pid::from_child(&child);
    let exited = pidfd_open(pid, PidfdFlags::empty()).context("cannot watch a measured process")?;
    let mut interrupted = false;
    let mut hang = None;
    let mut next_look = watch.as_ref().map(|_| began);
    loop {
        let left = timeout.saturating_sub(began.elapsed());
        // Short waits, so that a signal between the check and the poll is seen soon.
        let until_look = next_look.map_or(SHORT_WAIT, |next| next.saturating_duration_since(Instant::now()));
        let wait = left.min(SHORT_WAIT).min(until_look).try_into().context("a timeout out of range")?;
        let mut ready = [PollFd::new(&exited, PollFlags::IN)];
        if matches!(poll(&mut ready, Some(&wait)), Ok(1..)) {
            break;
        }
        if let Some(watch) = &mut watch
            && next_look.is_some_and(|next| next <= Instant::now())
        {
            let wait = watch(pid.as_raw_nonzero().get());
            // From the end of one look to the next: a slow look must not leave the guest nothing but looks.
            next_look = Instant::now().checked_add(wait);
        }
        if stop.load(Ordering::Relaxed) {
            interrupted = true;
            break;
        }
        if left.is_zero() {
            hang = Some((timeout, threads(pid.as_raw_nonzero().get())));
            break;
        }
    }
    // The whole group, whether its leader has ended or not: nothing of a process may run beside the next one. And whoever has
    // left the group, as long as it can still be found by its parents.
    let tree = held_descendants(pid.as_raw_nonzero().get());
    let _ = kill_process_group(pid, Signal::KILL);
    tree.iter().for_each(|process| _ = pidfd_send_signal(process, Signal::KILL));
    let reaped = reap(pid.as_raw_nonzero().get(), began)?;
    Ok((!interrupted).then(|| End { status: reaped.status, hang, usage: reaped.into(), stderr }))
}

fn before_exec(host: i32) -> std::io::Result<()> {
    // SAFETY: plain system calls with plain numbers.
    unsafe {
        // A heapmark that is killed takes its guest along.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // And one that was killed just before that, too.
        if libc::getppid() != host {
            libc::_exit(1);
        }
        let none = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
    Ok(())
}

/// What the kernel counted for a child that began then.
fn reap(pid: i32, began: Instant) -> Result<Launched> {
    let mut status = 0;
    // SAFETY: writes into locals; the child is ours and not yet reaped.
    let (done, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &mut status, 0, &mut usage), usage)
    };
    if done != pid {
        return Err(std::io::Error::last_os_error()).context("cannot reap the guest");
    }
    Ok(account(status, began.elapsed().as_nanos() as u64, &usage))
}

/// One line per thread of a process that does not end, and of its children: its state, and where in the kernel it waits.
fn threads(pid: i32) -> Vec<String> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let describe = |task: std::fs::DirEntry| {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let status = read("status");
        let state = status.lines().find_map(|line| line.strip_prefix("State:")).unwrap_or("?").trim().to_string();
        let waits = read("wchan");
        let place = if waits.is_empty() || waits == "0" { "in user code".into() } else { format!("in {waits}") };
        let line = format!("thread {}: {state} {place}", task.file_name().display());
        let children = read("children");
        let children = children.split_whitespace().filter_map(|child| child.parse().ok());
        [line].into_iter().chain(children.flat_map(threads)).collect::<Vec<_>>()
    };
    tasks.flatten().flat_map(describe).take(MOST_THREADS).collect()
}

/// The descendants of a process, the nearest first.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut all = vec![pid];
    for place in 0.. {
        let Some(parent) = all.get(place) else { break };
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
        let children = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let words: Vec<String> = children.collect();
        all.extend(words.iter().flat_map(|text| text.split_whitespace()).filter_map(|word| word.parse::<i32>().ok()));
    }
    all.split_off(1)
}

/// The same by handles: a number may be somebody else's by the time that it is used.
fn held_descendants(pid: i32) -> Vec<OwnedFd> {
    let open = |pid: i32| Some((pid, pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?));
    let handles: Vec<(i32, OwnedFd)> = descendants(pid).into_iter().filter_map(open).collect();
    // Who is one of them now was none else when its handle was made.
    let still = descendants(pid);
    handles.into_iter().filter(|(pid, _)| still.contains(pid)).map(|(_, handle)| handle).collect()
}

/// An unnamed file that goes away with its last user.
pub(super) fn memory_file(name: &str) -> Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::CLOEXEC).context("cannot create a memory file")?))
}

/// As [`memory_file`], and inherited on purpose: a child is told its number.
pub(super) fn inherited_file(name: &str) -> Result<File> {
    Ok(File::from(memfd_create(name, MemfdFlags::empty()).context("cannot create a memory file")?))
}

/// What a memory file holds from `start` on, cut where a process wrote without end.
pub(super) fn text(mut file: &File, start: u64) -> String {
    let mut text = Vec::new();
    let _ = file.seek(SeekFrom::Start(start));
    let _ = file.take(MOST_TEXT_BYTES).read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}

impl End {
    /// The end of the process that a launcher ran, in place of the launcher's own, as far as it wrote an account.
    pub(super) fn launched(self, account: &File, command: &str) -> LaunchedEnd {
        let Some(launched) = Launched::parse(&text(account, 0)) else {
            return LaunchedEnd { end: self, left_behind: 0, refused: None };
        };
        let refused = (launched.errno != 0)
            .then(|| format!("cannot start {command}: {}", std::io::Error::from_raw_os_error(launched.errno)));
        let end = End { status: launched.status, usage: launched.into(), ..self };
        LaunchedEnd { end, left_behind: launched.left_behind, refused }
    }

    /// Whether it ended by itself, with exit code 0.
    pub(super) fn is_clean(&self) -> bool {
        self.hang.is_none() && self.status == 0
    }

    /// Its exit code, where it ended by itself.
    pub(super) fn code(&self) -> Option<i32> {
        (self.hang.is_none() && libc::WIFEXITED(self.status)).then(|| libc::WEXITSTATUS(self.status))
    }

    /// All that the process wrote to stderr.
    pub(super) fn stderr(&self) -> String {
        text(&self.stderr, 0)
    }

    /// The last part of it.
    pub(super) fn last_words(&self) -> String {
        let length = self.stderr.metadata().map_or(0, |metadata| metadata.len());
        text(&self.stderr, length.saturating_sub(STDERR_BYTES)).trim_end().to_string()
    }

    /// The outcome, where the way it ended decides it; `None` where the guest came to its end and its report decides.
    pub(super) fn outcome(&self, phase: Phase, report: &Report<'_>) -> Option<Outcome> {
        let phase_word = || phase.word().to_string();
        if let Some((limit, threads)) = &self.hang {
            let (after_s, threads) = (limit.as_secs_f64(), threads.clone());
            return Some(Outcome::Hang { after_s, phase: phase_word(), threads });
        }
        if libc::WIFSIGNALED(self.status) {
            let signal = libc::WTERMSIG(self.status);
            return Some(match signal {
                // Nobody of ours sends it before the process has ended.
                libc::SIGKILL => Outcome::Oom {
                    what: format!("killed in phase {}, most likely by the kernel for lack of memory", phase.word()),
                },
                _ => Outcome::Crash { signal: signal_name(signal), phase: phase_word() },
            });
        }
        let code = libc::WEXITSTATUS(self.status);
        match (code, phase, report.failure()) {
            (0, Phase::Done, None) => None,
            (EXIT_FAILED, _, Some((kind, what))) => {
                let what = what.to_string();
                Some(match kind {
                    "oom" => Outcome::Oom { what: format!("{what} in phase {}", phase.word()) },
                    "wrong-result" => Outcome::WrongResult { what },
                    "unsupported" => Outcome::Unsupported { why: what },
                    _ => Outcome::Error { what },
                })
            }
            (LINKER_REFUSED, Phase::Load, _) => Some(match self.linker_words() {
                Some(why) => Outcome::NotLoaded { why },
                None => Outcome::Exit { code, phase: phase_word() },
            }),
            _ => Some(Outcome::Exit { code, phase: phase_word() }),
        }
    }

    /// What the dynamic linker said before it gave up: what the preloaded library needs is missing.
    fn linker_words(&self) -> Option<String> {
        const SAYS: [&str; 2] = ["error while loading shared libraries: ", "symbol lookup error: "];
        let words = |line: &'_ str| SAYS.iter().find_map(|says| Some(line.find(says)? + says.len()));
        self.last_words().lines().find_map(|line| Some(line[words(line)?..].to_string()))
    }
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGILL => "SIGILL",
        libc::SIGFPE => "SIGFPE",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGSYS => "SIGSYS",
        libc::SIGTERM => "SIGTERM",
        other => return format!("signal {other}"),
    };
    name.to_string()
}
