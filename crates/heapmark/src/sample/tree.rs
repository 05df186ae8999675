//! Follows the memory of a process and its descendants from outside, so seldom that it costs less than half a per cent of a core.

use super::pace::Pace;
use super::thread_cpu_ns;
use std::time::Duration;

/// What was seen of a tree of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Highest sum of resident sets. Pages that processes share count once for each.
    pub peak_rss_bytes: u64,
    /// Highest sum of resident sets in which shared pages are divided among those that share them; 0 where nobody looked.
    pub peak_pss_bytes: u64,
    /// Most processes at once.
    pub processes: usize,
    /// Times that it was looked at.
    pub looks: u64,
}

/// Looks at a tree.
pub struct TreeWatcher {
    seen: Tree,
    pace: Pace,
    /// Whether page tables are walked, which takes long and holds the process up: never in a timed one.
    walks: bool,
}

impl TreeWatcher {
    /// In a process that is not timed, page tables may be walked.
    pub fn new(walks: bool) -> TreeWatcher {
        TreeWatcher { seen: Tree::default(), pace: Pace::default(), walks }
    }

    /// Looks at these processes; says how long to wait for the next look.
    pub fn look(&mut self, processes: &[i32]) -> Duration {
        let sum = |bytes: fn(i32) -> Option<u64>| processes.iter().filter_map(|pid| bytes(*pid)).sum::<u64>();
        let seen = &mut self.seen;
        seen.peak_rss_bytes = seen.peak_rss_bytes.max(sum(resident_bytes));
        if self.walks {
            seen.peak_pss_bytes = seen.peak_pss_bytes.max(sum(shared_out_bytes));
        }
        seen.processes = seen.processes.max(processes.len());
        seen.looks += 1;
        let next = self.pace.next(thread_cpu_ns());
        // Where nothing is timed, what a look costs matters less than a peak that is missed.
        if self.walks { next / UNTIMED } else { next }
    }

    /// What was seen until now.
    pub fn seen(&self) -> Tree {
        self.seen
    }
}

/// So many times more often a process is looked at that is not timed.
const UNTIMED: u32 = 10;

fn resident_bytes(pid: i32) -> Option<u64> {
    super::series::resident_bytes(&std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?)
}

fn shared_out_bytes(pid: i32) -> Option<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    super::follower::rolled_up_bytes(&rollup, "Pss:")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_very_process_is_seen_and_one_that_is_gone_is_not() {
        let own = std::process::id() as i32;
        let mut watcher = TreeWatcher::new(true);
        watcher.look(&[own]);
        let once = watcher.seen();
        assert!(once.peak_rss_bytes > 0 && once.peak_pss_bytes > 0 && once.peak_pss_bytes <= once.peak_rss_bytes);
        watcher.look(&[own, own]);
        let twice = watcher.seen();
        assert!(twice.peak_rss_bytes > once.peak_rss_bytes, "the sum over the processes");
        assert_eq!((twice.processes, twice.looks), (2, 2));
        let mut timed = TreeWatcher::new(false);
        timed.look(&[own, i32::MAX]);
        assert_eq!(timed.seen().peak_pss_bytes, 0, "no page table is walked");
        assert!(timed.seen().peak_rss_bytes > 0);
    }
}
