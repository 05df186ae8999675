//! Every program that a command's tree executes, whoever starts it and however short it lives: the kernel stops the whole tree at
//! each fork and each exec (ptrace), so that nobody is missed. Slow, and never timed. A set-user-ID program has no privileges here,
//! so how such a tree ends says nothing.

use anyhow::{Context, Result};
use std::collections::BTreeSet;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// A process that became a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Executed {
    pub pid: i32,
    /// Its file as the kernel names it.
    pub program: String,
}

/// How long nothing may have happened before the next look.
const WAIT: Duration = Duration::from_micros(200);
/// Slower than the plain command.
const SLOWER: u32 = 20;
/// What each process is stopped for; all of them end with this one.
const OPTIONS: i32 = libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_TRACEEXEC
    | libc::PTRACE_O_EXITKILL;

/// Runs it and follows it to its end. `None` where `stop` was set meanwhile; no program where the kernel lets nobody look.
pub(super) fn executed(mut command: Command, timeout: Duration, stop: &AtomicBool) -> Result<Option<Vec<Executed>>> {
    // SAFETY: only async-signal-safe system calls between fork and exec.
    unsafe {
        command.pre_exec(|| match trace(libc::PTRACE_TRACEME, 0, 0) {
            true => Ok(()),
            false => Err(std::io::Error::last_os_error()),
        });
    }
    let (first, began) = match command.process_group(0).spawn() {
        Ok(child) => (child.id() as i32, Instant::now()),
        Err(error) if error.raw_os_error() == Some(libc::EPERM) => return Ok(Some(Vec::new())),
        Err(error) => return Err(error).context("cannot trace a command"),
    };
    let (mut all, mut alive) = (Vec::new(), BTreeSet::new());
    let mut over = false;
    loop {
        let mut status = 0;
        // SAFETY: writes into a local. Only what this thread has started or traces is waited for.
        let pid = unsafe { libc::waitpid(-1, &mut status, libc::__WALL | libc::__WNOTHREAD | libc::WNOHANG) };
        let late = stop.load(Ordering::Relaxed) || began.elapsed() > timeout.saturating_mul(SLOWER);
        if (late || over) && (pid == 0 || pid == first) {
            // What it leaves behind shall not keep us, wherever it has gone.
            alive.iter().for_each(|pid| end(*pid));
        }
        match pid {
            0 => std::thread::sleep(WAIT),
            // Nobody is left.
            ..0 => break,
            _ if libc::WIFSTOPPED(status) => {
                if alive.insert(pid) {
                    trace(libc::PTRACE_SETOPTIONS, pid, OPTIONS as usize);
                }
                // A thread that executes takes its process's number, and nobody ever tells of its own again.
                if status >> 16 == libc::PTRACE_EVENT_EXEC {
                    former(pid).filter(|former| *former != pid).iter().for_each(|former| _ = alive.remove(former));
                }
                go_on(pid, first, status, &mut all);
            }
            _ => {
                alive.remove(&pid);
                over |= pid == first;
            }
        }
    }
    Ok((!stop.load(Ordering::Relaxed)).then_some(all))
}

/// Notes an exec and lets the process go on, with the signal that was meant for it.
fn go_on(pid: i32, first: i32, status: i32, all: &mut Vec<Executed>) {
    let (signal, event) = (libc::WSTOPSIG(status), status >> 16);
    // The very first program was executed before anybody could ask for events.
    let begins = signal == libc::SIGTRAP && event == 0 && pid == first && all.is_empty();
    if event == libc::PTRACE_EVENT_EXEC || begins {
        let program = std::fs::read_link(format!("/proc/{pid}/exe"));
        all.extend(program.ok().map(|program| Executed { pid, program: program.display().to_string() }));
    }
    // A new process begins with a stop that is ours, not somebody's signal.
    let ours = event != 0 || begins || signal == libc::SIGSTOP || signal == libc::SIGTRAP;
    trace(libc::PTRACE_CONT, pid, if ours { 0 } else { signal as usize });
}

fn end(pid: i32) {
    // SAFETY: a plain system call on a process that we trace: nobody else can have its number before we have waited for it.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// The number of the thread that has executed.
fn former(pid: i32) -> Option<i32> {
    let mut number: libc::c_ulong = 0;
    // SAFETY: writes into a local.
    let told = unsafe { libc::ptrace(libc::PTRACE_GETEVENTMSG, pid, 0, &raw mut number) };
    (told != -1).then_some(number as i32)
}

fn trace(request: libc::c_uint, pid: i32, data: usize) -> bool {
    // SAFETY: none of the requests made here reads or writes memory.
    unsafe { libc::ptrace(request, pid, 0, data) != -1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of the programs of a shell's line.
    fn programs(line: &str) -> Vec<String> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", line]).stdout(std::process::Stdio::null());
        let found = executed(command, Duration::from_secs(20), &AtomicBool::new(false)).unwrap().unwrap();
        found.iter().map(|one| one.program.rsplit('/').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn every_program_of_a_tree_is_seen_however_short_it_lives() {
        let seen = programs("/bin/true; (/bin/true | /bin/cat) ; exec /bin/sleep 0");
        let count = |name: &str| seen.iter().filter(|seen| *seen == name).count();
        assert_eq!((count("true"), count("cat"), count("sleep"), seen.len()), (2, 1, 1, 5), "{seen:?}");
    }

    #[test]
    fn signals_reach_whom_they_are_meant_for_and_what_is_left_behind_does_not_keep_us() {
        assert_eq!(programs("trap '/bin/true' USR1; kill -USR1 $$; /bin/cat /dev/null").len(), 3);
        let began = Instant::now();
        assert_eq!(programs("setsid /bin/sleep 86399 >/dev/null 2>&1 & sleep 0.3; exit 0").len(), 4);
        assert!(began.elapsed() < Duration::from_secs(3600));
    }
}
