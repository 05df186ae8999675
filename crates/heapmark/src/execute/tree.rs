//! The processes below a process, from `/proc`.

use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::OwnedFd;

/// The most threads that are described of a hanging process.
const MOST_THREADS: usize = 16;

/// One line per thread of a hanging process and of its children: its state, and where in the kernel
/// it waits.
pub(super) fn threads(pid: i32) -> Vec<String> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let describe = |task: std::fs::DirEntry| {
        let read = |name: &str| std::fs::read_to_string(task.path().join(name)).unwrap_or_default();
        let status = read("status");
        let state = status
            .lines()
            .find_map(|line| line.strip_prefix("State:"))
            .unwrap_or("?")
            .trim()
            .to_string();
        let waits = read("wchan");
        let place = if waits.is_empty() || waits == "0" {
            "in user code".into()
        } else {
            format!("in {waits}")
        };
        let line = format!("thread {}: {state} {place}", task.file_name().display());
        let children = read("children");
        let children = children
            .split_whitespace()
            .filter_map(|child| child.parse().ok());
        [line]
            .into_iter()
            .chain(children.flat_map(threads))
            .collect::<Vec<_>>()
    };
    tasks
        .flatten()
        .flat_map(describe)
        .take(MOST_THREADS)
        .collect()
}

/// The descendants of a process, the nearest first.
pub fn descendants(pid: i32) -> Vec<i32> {
    let mut all = vec![pid];
    for place in 0.. {
        let Some(parent) = all.get(place) else { break };
        let tasks = std::fs::read_dir(format!("/proc/{parent}/task"))
            .into_iter()
            .flatten()
            .flatten();
        let children =
            tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
        let words: Vec<String> = children.collect();
        all.extend(
            words
                .iter()
                .flat_map(|text| text.split_whitespace())
                .filter_map(|word| word.parse::<i32>().ok()),
        );
    }
    all.split_off(1)
}

/// The same as handles: a process number may belong to another process by the time it is used.
pub(super) fn held_descendants(pid: i32) -> Vec<OwnedFd> {
    let open = |pid: i32| {
        Some((
            pid,
            pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?,
        ))
    };
    let handles: Vec<(i32, OwnedFd)> = descendants(pid).into_iter().filter_map(open).collect();
    // A process that is still a descendant now was one when its handle was opened.
    let still = descendants(pid);
    handles
        .into_iter()
        .filter(|(pid, _)| still.contains(pid))
        .map(|(_, handle)| handle)
        .collect()
}
