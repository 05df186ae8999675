//! A measured process from its start to its end, and nothing left of it. It is never a child of heapmark itself, but of a launcher: what
//! ends its parent costs no more than its own cell, and what leaves its tree is found.

use super::exit::End;
use super::memory_file::inherited_file;
use super::tree::{held_descendants, threads};
use anyhow::{Context, Result};
use heapmark_guest::launch::account;
use heapmark_wire::Launched;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open, pidfd_send_signal};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How long all that is ended at last may take; what cannot be ended is not waited for any longer.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// How long a signal may go unseen.
const SHORT_WAIT: Duration = Duration::from_millis(200);

/// Somebody who looks at a process from time to time while it runs, and says how long to wait for the next look.
pub type Look<'a> = &'a mut dyn FnMut(i32) -> Duration;

/// The beginning of a command whose remaining words are what is measured, with this environment and no other; and the file that the
/// launcher tells of it in.
pub(super) fn below<'a>(
    launcher: &Path,
    environment: impl IntoIterator<Item = (&'a String, &'a String)>,
    padding: u32,
) -> Result<(Command, File)> {
    let account = inherited_file("heapmark-account")?;
    let mut command = Command::new(launcher);
    command.arg("launch").arg(account.as_raw_fd().to_string());
    command.args(environment.into_iter().map(|(name, value)| format!("{name}={value}")));
    command.arg(format!("HEAPMARK_PADDING={}", "x".repeat(padding as usize))).arg("--").env_clear();
    Ok((command, account))
}

/// Starts a launcher, its environment, stdin and stdout set, waits for it, and lets `watch` look at it in between; `stderr` is a memory
/// file. `None` where `stop` was set meanwhile.
pub(super) fn run(
    mut command: Command,
    stderr: File,
    timeout: Duration,
    stop: &AtomicBool,
    mut watch: Option<Look<'_>>,
) -> Result<Option<End>> {
    command.stderr(stderr.try_clone().context("cannot hand on a memory file")?);
    let began = Instant::now();
    let child = spawn(&mut command)?;
    let pid = Pid::from_child(&child);
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
            // But for the launcher's only one.
            hang = Some((timeout, threads(pid.as_raw_nonzero().get()).into_iter().skip(1).collect()));
            break;
        }
    }
    end_tree(pid);
    let reaped = reap(pid.as_raw_nonzero().get(), began)?;
    let end = |hang| End { status: reaped.status, hang, usage: reaped.into(), stderr, unaccounted: false };
    Ok((!interrupted).then(|| end(hang)))
}

/// Starts a launcher in a group of its own; it ends with heapmark.
pub(super) fn spawn(command: &mut Command) -> Result<Child> {
    let host = std::process::id() as i32;
    // SAFETY: only async-signal-safe system calls between fork and exec.
    unsafe { command.process_group(0).pre_exec(move || before_exec(host)) };
    command.spawn().with_context(|| format!("cannot start {}", command.get_program().display()))
}

/// Ends a child that nobody has waited for, and all below it. The whole group, whether its leader has ended or not: nothing of a process
/// may run beside the next one. And whoever has left the group, as long as it can still be found by its parents.
pub(super) fn end_tree(child: Pid) {
    let tree = held_descendants(child.as_raw_nonzero().get());
    let _ = kill_process_group(child, Signal::KILL);
    tree.iter().for_each(|process| _ = pidfd_send_signal(process, Signal::KILL));
}

/// From now on, processes whose launcher was ended become heapmark's own, and not the whole system's.
pub fn adopt_orphans() {
    // SAFETY: a plain system call.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Ends all that heapmark has started, as it ends itself; returns when that is gone.
pub fn end_all() {
    let began = Instant::now();
    // What was started meanwhile is found in the next round.
    for _ in 0..10 {
        let tree = held_descendants(std::process::id() as i32);
        tree.iter().for_each(|process| _ = pidfd_send_signal(process, Signal::KILL));
        for process in &tree {
            let left = END_PATIENCE.saturating_sub(began.elapsed());
            let _ = left.try_into().map(|left| poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left)));
        }
    }
}

/// Ends them. To be called where heapmark has no children of its own.
pub fn end_orphans() {
    heapmark_guest::launch::sweep(0);
}

/// From now on this thread's descriptors are its own: what other threads open no child of its inherits. Says whether that is so.
pub fn own_descriptors() -> bool {
    // SAFETY: a plain system call.
    unsafe { libc::unshare(libc::CLONE_FILES) == 0 }
}

fn before_exec(host: i32) -> std::io::Result<()> {
    // SAFETY: plain system calls with plain numbers.
    unsafe {
        // A heapmark that is killed takes its launcher along.
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
