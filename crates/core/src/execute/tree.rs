//! The processes below a process, from `/proc`.

use crate::catalog::folder::listing;
use crate::catalog::joined;
use crate::observe::memory::ProcessFiles;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::read_to_string;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// The most threads of a hanging process that are described.
const MOST_THREADS: usize = 16;

/// Returns one line per thread of a hanging process and of its children: its state, and where in
/// the kernel it waits.
pub fn threads(pid: i32) -> Vec<String> {
    let tasks = listing(format!("/proc/{pid}/task"));
    let describe = |task: PathBuf| {
        let read = |name: &str| read_to_string(task.join(name)).unwrap_or_default();
        let status = read("status");
        let state = field(&status, "State:").unwrap_or("?").trim();
        let place = match read("wchan") {
            waits if waits.is_empty() || waits == "0" => "in user code".into(),
            waits => format!("in {waits}"),
        };
        let mut lines = vec![format!(
            "thread {}: {state} {place}",
            task.file_name().unwrap_or_default().display()
        )];
        let children = read("children");
        let children = children.split_whitespace();
        lines.extend(children.flat_map(|child| child.parse().map_or(Vec::new(), threads)));
        lines
    };
    tasks.flat_map(describe).take(MOST_THREADS).collect()
}

/// Returns the value of a line of `/proc/PID/status`.
pub fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))
}

/// Returns the file of the program that a process executes.
pub fn program(pid: i32) -> std::io::Result<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/exe"))
}

/// Returns the resident memory of a process in bytes; 0 if the process is gone.
pub fn resident_bytes(pid: i32) -> u64 {
    ProcessFiles::of(pid).resident_bytes().unwrap_or(0)
}

/// Returns the descendants of a process, the nearest first.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut all = vec![pid];
    for place in 0.. {
        let Some(parent) = all.get(place) else { break };
        let tasks = listing(format!("/proc/{parent}/task"));
        let children = tasks.filter_map(|task| read_to_string(task.join("children")).ok());
        let children = joined(children, " ");
        let children = children.split_whitespace();
        all.extend(children.filter_map(|word| word.parse::<i32>().ok()));
    }
    all.split_off(1)
}

/// Returns the descendants of a process as handles: a process number may belong to another process by the time it is
/// used.
pub fn held_descendants(pid: i32) -> Vec<OwnedFd> {
    let open = |pid: i32| {
        let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty());
        Some((pid, handle.ok()?))
    };
    let handles: Vec<(i32, OwnedFd)> = descendants(pid).into_iter().filter_map(open).collect();
    // A process that is still a descendant now was one when its handle was opened.
    let still = descendants(pid);
    handles
        .into_iter()
        .filter_map(|(pid, handle)| still.contains(&pid).then_some(handle))
        .collect()
}

/// Returns the CPU time of all threads of a process; 0 if it has ended.
pub(super) fn cpu_ns(pid: i32) -> u64 {
    // SAFETY: both calls write into locals.
    unsafe {
        let mut clock = 0;
        let mut time: libc::timespec = std::mem::zeroed();
        if libc::clock_getcpuclockid(pid, &mut clock) != 0
            || libc::clock_gettime(clock, &mut time) != 0
        {
            return 0;
        }
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }
}
