//! Starts a measured process, waits for its end and leaves nothing of it behind. Its parent is a
//! launcher, never heapmark itself: an allocator that ends its parent process costs only its own
//! cell, and processes that leave the tree are found.

use super::cpus_seen::Answerer;
use super::exit::End;
use super::memory_file::{memory_file, stream_file, text};
use super::memory_limit::{Limited, MemoryLimit};
use super::oom_kills::OomKills;
use super::tree::{held_descendants, threads};
use super::turns::{Over, Side};
use crate::build::spawn_launcher;
use crate::plan::{CpusSeen, HugePages, Plan};
use anyhow::{Context, Result, ensure};
use heapmark_guest::launch::{account, forbid_huge_pages};
use heapmark_wire::Launched;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open,
    pidfd_send_signal, waitid,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time limit for ending all processes. heapmark does not wait longer for a process that cannot
/// be ended.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// The longest time that a signal may go unnoticed.
const SHORT_WAIT: Duration = Duration::from_millis(200);

/// A callback that looks at a running process from time to time. Returns the wait until the next
/// look.
pub type Look<'a> = &'a mut dyn FnMut(i32) -> Duration;

/// The error for a run that a signal has stopped: the process is gone, and there is no result.
#[derive(Debug)]
pub struct Interrupted;

impl std::fmt::Display for Interrupted {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Fails if a signal has stopped the run.
pub fn may_go_on(stop: &AtomicBool) -> Result<()> {
    ensure!(!stop.load(Ordering::Relaxed), Interrupted);
    Ok(())
}

/// A program to be run below the launcher, before it is started.
pub struct Launch {
    /// The launcher; the caller appends the program's words, and sets stdin and stdout.
    pub command: Command,
    /// The file into which the launcher writes its account of the program.
    pub account: File,
    /// What the program writes to stderr.
    pub stderr: File,
    limited: Option<Limited>,
    side: Option<Side>,
    /// The answerer of the program's questions about CPUs, kept for as long as the program runs.
    _answerer: Option<Answerer>,
}

/// The rules that apply to a program and to all processes that it starts.
#[derive(Default)]
pub struct Rules<'a> {
    /// Which memory of the process may be in huge pages.
    pub huge_pages: HugePages,
    /// The CPUs that are reported to the process when it asks for them.
    pub cpus_seen: Option<CpusSeen>,
    /// The limit on the memory of the process.
    pub limit: Option<&'a MemoryLimit>,
    /// The process's place in a duet.
    pub side: Option<&'a Side>,
}

impl Launch {
    /// Prepares the launch of a program, which gets exactly these variables unless the launcher's options contain
    /// `inherit`.
    pub fn new(
        launcher: &Path,
        options: &[&str],
        rules: &Rules,
        variables: impl IntoIterator<Item = String>,
    ) -> Result<Launch> {
        let limited = rules.limit.map(MemoryLimit::set).transpose()?;
        let answerer = rules.cpus_seen.map(Answerer::new).transpose()?;
        let account = memory_file("heapmark-account")?;
        let stderr = stream_file("heapmark-stderr")?;
        let mut command = Command::new(launcher);
        command
            .arg("launch")
            .arg(account.as_raw_fd().to_string())
            .args(options)
            .args(permit(rules.huge_pages))
            .args(rules.side.iter().flat_map(|side| side.words()))
            .args(limited.iter().flat_map(|limited| &limited.words))
            .args(answerer.iter().flat_map(Answerer::words))
            .args(variables)
            .arg("--")
            .env_clear()
            .stderr(stderr.try_clone().context("cannot hand on a memory file")?);
        inherits(&mut command, &account);
        if let Some(members) = limited.as_ref().and_then(Limited::members) {
            inherits(&mut command, members);
        }
        if let Some(answerer) = &answerer {
            inherits(&mut command, answerer.socket());
        }
        Ok(Launch {
            command,
            account,
            stderr,
            limited,
            side: rules.side.cloned(),
            _answerer: answerer,
        })
    }

    /// Starts the program and waits for its end. Calls `watch` while the program runs. Fails with [`Interrupted`] if
    /// `stop` was set. A program that takes turns has twice the time, because the other side uses half of it.
    pub fn run(
        mut self,
        timeout: Duration,
        stop: &AtomicBool,
        mut watch: Option<Look<'_>>,
    ) -> Result<End> {
        let oom_kills = OomKills::now();
        let began = Instant::now();
        let launcher = Pid::from_child(&spawn_launcher(&mut self.command)?);
        let pid = launcher.as_raw_nonzero().get();
        let runs = self.side.as_ref().map(|side| side.runs(launcher));
        let exited =
            pidfd_open(launcher, PidfdFlags::empty()).context("cannot watch a measured process")?;
        let longest = match self.side {
            Some(_) => timeout.saturating_mul(2),
            None => timeout,
        };
        let mut hang = None;
        let mut wants_terminal = false;
        let mut next_look = watch.as_ref().map(|_| began);
        let is_over = || self.side.as_ref().is_some_and(|side| side.is_over());
        let mut ready = vec![PollFd::new(&exited, PollFlags::IN)];
        ready.extend(
            self.side
                .iter()
                .map(|side| PollFd::from_borrowed_fd(side.over(), PollFlags::IN)),
        );
        let interrupted = loop {
            let left = longest.saturating_sub(began.elapsed());
            // Short waits, so that a signal that arrives between the check and the poll is noticed
            // soon.
            let until_look = next_look.map_or(SHORT_WAIT, |next| {
                next.saturating_duration_since(Instant::now())
            });
            let wait = left
                .min(SHORT_WAIT)
                .min(until_look)
                .try_into()
                .context("a timeout out of range")?;
            let found = poll(&mut ready, Some(&wait));
            if found.is_ok() && ready[0].revents().contains(PollFlags::IN) {
                break false;
            }
            if let Some(watch) = &mut watch
                && next_look.is_some_and(|next| next <= Instant::now())
            {
                let wait = watch(pid);
                // The wait is counted from the end of a look, because slow looks must leave the guest time to run.
                next_look = Instant::now().checked_add(wait);
            }
            if stop.load(Ordering::Relaxed) || is_over() {
                break true;
            }
            wants_terminal = wants_terminal_now(launcher);
            if wants_terminal {
                break false;
            }
            if left.is_zero() {
                // All threads except the first, which is the launcher's only one.
                hang = Some((timeout, threads(pid).into_iter().skip(1).collect()));
                break false;
            }
        };
        end_tree(launcher);
        // Dropped before the launcher is reaped: after that, its number can belong to another process.
        drop(runs);
        let launched = reap(pid, began)?;
        ensure!(!interrupted || !is_over(), Over);
        ensure!(!interrupted, Interrupted);
        let account = Launched::parse(&text(&self.account, 0));
        Ok(End {
            oom_kill: OomKills::now().since(oom_kills),
            unaccounted: account.is_none(),
            launched: account.unwrap_or(launched),
            hang,
            wants_terminal,
            under_limit: self.limited.map(Limited::end),
            stderr: self.stderr,
        })
    }
}

/// Returns whether a program below this launcher, or the launcher with it, was stopped because it reads from its terminal
/// or changes it: heapmark is what runs in the foreground there, so that nothing would continue the program.
fn wants_terminal_now(launcher: Pid) -> bool {
    let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
    let status = waitid(WaitId::Pid(launcher), options);
    let signal = status
        .ok()
        .flatten()
        .and_then(|status| status.stopping_signal());
    signal.is_some_and(|signal| [libc::SIGTTIN, libc::SIGTTOU].contains(&signal))
}

/// Makes a command's process inherit this file, whose descriptor must stay open until the process is started. Other
/// processes, which other threads may start at any time, do not inherit it, so no process can write into the files of
/// another.
pub fn inherits(command: &mut Command, file: impl AsFd) {
    let descriptor = file.as_fd().as_raw_fd();
    // SAFETY: one system call, on a descriptor that the caller keeps open.
    unsafe {
        command.pre_exec(move || {
            let file = BorrowedFd::borrow_raw(descriptor);
            Ok(fcntl_setfd(file, FdFlags::empty())?)
        })
    };
}

/// Waits for the end of a child that is not below a launcher. Ends the child, with all that it has started, if it exceeds
/// the timeout, if `stop` was set, or if the duet of its side is over; in these cases, the result is `None`,
/// [`Interrupted`], or [`Over`].
pub fn wait_for(
    child: &mut Child,
    timeout: Duration,
    stop: &AtomicBool,
    side: Option<&Side>,
) -> Result<Option<ExitStatus>> {
    let began = Instant::now();
    let exited = pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .context("cannot watch a process")?;
    let mut ready = vec![PollFd::new(&exited, PollFlags::IN)];
    ready.extend(side.map(|side| PollFd::from_borrowed_fd(side.over(), PollFlags::IN)));
    loop {
        if let Some(status) = child.try_wait().context("a process is lost")? {
            return Ok(Some(status));
        }
        let left = timeout.saturating_sub(began.elapsed());
        let is_over = side.is_some_and(Side::is_over);
        if is_over || left.is_zero() || stop.load(Ordering::Relaxed) {
            // Listed before the child ends, because the processes that it has started get another parent then.
            let tree = held_descendants(child.id() as i32);
            let _ = child.kill();
            kill(&tree);
            child.wait().context("a process is lost")?;
            ensure!(!is_over, Over);
            may_go_on(stop)?;
            return Ok(None);
        }
        let wait = left.min(SHORT_WAIT);
        let wait = wait.try_into().context("a timeout out of range")?;
        // The result is ignored: the loop checks everything that can end the wait.
        let _ = poll(&mut ready, Some(&wait));
    }
}

/// Returns an environment as arguments of the launcher, with padding of this many bytes.
pub fn padded(
    environment: &BTreeMap<String, String>,
    padding: u32,
) -> impl Iterator<Item = String> {
    let padding = format!("HEAPMARK_PADDING={}", "x".repeat(padding as usize));
    environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"))
        .chain([padding])
}

/// Ends a child that has not been waited for, and all processes below it. Ends the whole group,
/// even if its leader has ended: nothing of a process may run during the next one. Also ends
/// descendants that left the group, if they can still be found through their parents.
pub fn end_tree(child: Pid) {
    let tree = held_descendants(child.as_raw_nonzero().get());
    let _ = kill_process_group(child, Signal::KILL);
    kill(&tree);
}

fn kill(tree: &[OwnedFd]) {
    for process in tree {
        let _ = pidfd_send_signal(process, Signal::KILL);
    }
}

/// Makes heapmark adopt processes whose launcher was ended, in place of the system's init process.
pub fn adopt_orphans() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Returns the launcher's arguments for a rule on huge pages, which applies to the program and all processes that it
/// starts.
fn permit(which: HugePages) -> Vec<&'static str> {
    match which {
        HugePages::Machine => Vec::new(),
        which => vec!["thp", which.word()],
    }
}

/// Refuses a plan with a rule for huge pages that this kernel does not support.
pub fn knows_huge_pages(plan: &Plan) -> Result<()> {
    let rules = plan.cases.iter().map(|case| plan.huge_pages_of(case));
    let knows = |which: HugePages| which.is_machines() || knows_rule(which);
    ensure!(
        rules.into_iter().all(knows),
        "--thp: this kernel cannot do that (advised needs Linux 6.18): take never, or machine"
    );
    Ok(())
}

/// Returns whether the kernel accepts a rule, by trying it on this process and restoring the former setting.
fn knows_rule(which: HugePages) -> bool {
    // SAFETY: a plain system call.
    let before = unsafe { libc::prctl(libc::PR_GET_THP_DISABLE, 0, 0, 0, 0) };
    let knows = forbid_huge_pages(which == HugePages::Advised);
    let (is_set, flags) = (before & 1, before & !1);
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_THP_DISABLE, is_set, flags, 0, 0) };
    knows
}

/// Ends all processes that heapmark has started, when heapmark itself ends. Waits until they are gone, or for
/// `END_PATIENCE`.
pub fn end_all() {
    let began = Instant::now();
    // The next round finds processes that were started during this one.
    for _ in 0..10 {
        let tree = held_descendants(std::process::id() as i32);
        kill(&tree);
        for process in &tree {
            let left = END_PATIENCE.saturating_sub(began.elapsed());
            let _ = left
                .try_into()
                .map(|left| poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)));
        }
    }
}

/// Ends adopted processes. Call it only while heapmark has no children of its own.
pub fn end_orphans() {
    heapmark_guest::launch::sweep(0);
}

/// Gives this thread a descriptor table of its own, with room for as many open files as a process may have. Returns
/// whether that worked: the rules of a container may forbid it.
pub fn own_descriptors() -> bool {
    // SAFETY: a plain system call.
    unsafe { libc::unshare(libc::CLONE_FILES) == 0 }
}

/// Reaps a child that was started at `began`, and returns what the kernel counted for it.
fn reap(pid: i32, began: Instant) -> Result<Launched> {
    let mut status = 0;
    // SAFETY: writes into locals; the child is ours and not yet reaped.
    let (done, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        (libc::wait4(pid, &mut status, 0, &mut usage), usage)
    };
    if done != pid {
        return Err(io::Error::last_os_error()).context("cannot reap the guest");
    }
    Ok(account(status, began.elapsed().as_nanos() as u64, &usage))
}

/// Returns the time at which this duration from now ends, in nanoseconds, on the clock that a library in a child reads.
pub fn monotonic_ns_after(duration: Duration) -> u128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let now = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
    (now + duration).as_nanos()
}

#[cfg(test)]
mod tests {
    use super::super::turns::Duet;
    use super::*;
    use crate::plan::{Turn, Turns};
    use rustix::event::Timespec;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    use std::sync::Arc;

    fn duet() -> Arc<Duet> {
        let length = Duration::from_millis(10);
        let turn = Turn {
            by: Turns::Slices,
            length,
            enough: length,
        };
        Duet::new(turn, vec![0], 0).unwrap()
    }

    /// A shell that runs this script in place of the launcher.
    fn launch(folder: &Path, script: &str, side: Option<&Side>) -> Launch {
        std::fs::write(folder.join("launch"), script).unwrap();
        let rules = Rules {
            side,
            ..Rules::default()
        };
        let mut launch = Launch::new(Path::new("/bin/sh"), &[], &rules, []).unwrap();
        launch.command.current_dir(folder);
        launch
    }

    #[test]
    fn no_process_inherits_the_account_of_another() {
        let folder = tempfile::tempdir().unwrap();
        let mut own = launch(folder.path(), "test -e /proc/self/fd/$1", None);
        let is_there = format!("test -e /proc/self/fd/{}", own.account.as_raw_fd());
        let mut other = Command::new("/bin/sh");
        other.args(["-c", &is_there]);
        assert!(!other.status().unwrap().success());
        assert!(own.command.status().unwrap().success());
    }

    #[test]
    fn a_process_that_takes_turns_has_twice_the_time() {
        const TIMEOUT: Duration = Duration::from_millis(100);
        let folder = tempfile::tempdir().unwrap();
        let side = duet().side(0);
        for (side, longest) in [(None, TIMEOUT), (Some(&side), 2 * TIMEOUT)] {
            let began = Instant::now();
            let launch = launch(folder.path(), "sleep 600", side);
            let end = launch.run(TIMEOUT, &AtomicBool::new(false), None).unwrap();
            assert_eq!(end.hang.map(|(limit, _)| limit), Some(TIMEOUT));
            assert!(began.elapsed() >= longest);
        }
    }

    #[test]
    fn a_child_that_is_waited_for_no_longer_ends_with_what_it_has_started() {
        let ended = |timeout: Duration, stop: bool, side: Option<&Side>| {
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "sleep 600 & echo $!; wait"]);
            let mut shell = shell.stdout(Stdio::piped()).spawn().unwrap();
            let mut number = String::new();
            let mut printed = BufReader::new(shell.stdout.take().unwrap());
            printed.read_line(&mut number).unwrap();
            let sleep = Pid::from_raw(number.trim().parse().unwrap()).unwrap();
            let sleep = pidfd_open(sleep, PidfdFlags::empty()).unwrap();
            let ended = wait_for(&mut shell, timeout, &AtomicBool::new(stop), side);
            assert!(shell.try_wait().unwrap().is_some());
            let wait = Timespec::try_from(Duration::from_secs(60)).unwrap();
            let mut ready = [PollFd::new(&sleep, PollFlags::IN)];
            assert_eq!(poll(&mut ready, Some(&wait)), Ok(1));
            ended
        };
        let long = Duration::from_secs(600);
        assert!(ended(Duration::ZERO, false, None).unwrap().is_none());
        assert!(ended(long, true, None).unwrap_err().is::<Interrupted>());
        let duet = duet();
        duet.end();
        let side = duet.side(0);
        assert!(ended(long, false, Some(&side)).unwrap_err().is::<Over>());
    }
}
