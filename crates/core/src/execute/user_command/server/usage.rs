//! What a server has used up to a moment. Only the difference between the start and the end of its
//! client is measured.

use crate::execute::tree::{cpu_ns, descendants, resident_bytes};
use crate::execute::user_command::in_malloc::{Calls, Times};
use crate::execute::user_command::reached::ReachFile;
use crate::observe::memory::stat_words;
use anyhow::Result;

/// What the processes of a server have used.
#[derive(Clone, Copy, Default)]
pub struct Used {
    pub cpu_ns: u64,
    /// Resident memory at that moment.
    pub rss_bytes: u64,
    /// Malloc's live bytes at that moment, if they are counted.
    pub live_bytes: Option<u64>,
    /// Calls of malloc and free, if they are timed.
    pub calls: Calls,
}

impl Used {
    /// Returns the usage until now of all processes that a launcher has started; zero once the
    /// server itself has ended.
    pub fn until_now(
        launcher: i32,
        times: Option<&Times>,
        reach: Option<&ReachFile>,
    ) -> Result<Used> {
        let calls = times.map(Times::read).transpose()?.unwrap_or_default();
        let mut tree = descendants(launcher);
        if tree.first().is_none_or(|server| has_ended(&stat(*server))) {
            tree.clear();
        }
        let live_bytes = reach.map(|reach| reach.live_bytes(&tree)).transpose()?;
        Ok(Used {
            live_bytes: live_bytes.flatten(),
            rss_bytes: tree.iter().map(|pid| resident_bytes(*pid)).sum(),
            cpu_ns: tree.into_iter().map(with_children_ns).sum(),
            calls,
        })
    }

    /// Returns what was used since an earlier moment. `None` if CPU time shrank: a process that had used some is gone.
    pub fn since(self, earlier: Used) -> Option<Used> {
        Some(Used {
            cpu_ns: self.cpu_ns.checked_sub(earlier.cpu_ns)?,
            calls: self.calls.since(earlier.calls),
            ..self
        })
    }
}

/// Returns the CPU time of a process and of the children that it has waited for, as the kernel
/// reports it for other processes.
fn with_children_ns(pid: i32) -> u64 {
    cpu_ns(pid) + of_its_children_ns(&stat(pid))
}

/// Returns the text of a process's `stat` file in `/proc`; empty if the process is gone.
pub(super) fn stat(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default()
}

/// Returns whether the process is a zombie, or gone.
pub(super) fn has_ended(stat: &str) -> bool {
    matches!(stat_words(stat).next(), None | Some("Z" | "X"))
}

/// Returns the CPU time of a process's children: fields 16 and 17.
fn of_its_children_ns(stat: &str) -> u64 {
    let ticks = stat_words(stat).skip(13).take(2);
    let ticks: u64 = ticks.filter_map(|ticks| ticks.parse::<u64>().ok()).sum();
    ticks * (1_000_000_000 / rustix::param::clock_ticks_per_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_waited_for_is_its_own() {
        let stat = "7 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 11 12 30 40 20 0";
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!(of_its_children_ns(stat), 70 * tick_ns);
        assert_eq!(of_its_children_ns(""), 0);
        assert!(!has_ended(stat) && has_ended("7 (S) Z 1 2") && has_ended(""));
    }

    #[test]
    fn what_is_gone_is_not_taken_for_nothing() {
        let used = |cpu_ns| Used {
            cpu_ns,
            ..Used::default()
        };
        assert_eq!(used(70).since(used(30)).map(|used| used.cpu_ns), Some(40));
        assert!(used(0).since(used(30)).is_none());
    }
}
