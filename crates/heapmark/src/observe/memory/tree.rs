//! Samples the memory of a process and its descendants from outside, at a rate that costs less than
//! half a per cent of a core.

use super::pace::Pace;
use super::process_files::{ProcessFiles, Walked};
use crate::observe::clock::thread_cpu_ns;
use std::time::Duration;

/// What was sampled of a tree of processes.
#[derive(Clone, Copy, Default)]
pub struct Tree {
    /// Highest sum of resident sets. Pages that processes share count once for each.
    pub peak_rss_bytes: u64,
    /// Highest sum of PSS: resident sets with shared pages divided among the processes that share
    /// them; 0 if not sampled.
    pub peak_pss_bytes: u64,
    /// Highest sum of resident sets as the same page-table walks found them.
    pub walked_rss_bytes: u64,
    /// Most processes at once.
    pub processes: usize,
    /// How often it was sampled.
    pub looks: u64,
}

/// The walks must have seen at least this share of a known peak, for their own peak to be one.
const SEEN: f64 = 0.95;
/// The least number of looks that catch a peak of several processes.
const LEAST_LOOKS: u64 = 10;

impl Tree {
    /// Why [`Tree::peak_pss_bytes`] is no peak, if there were too few looks. `largest_bytes` is the
    /// kernel's peak RSS of the largest of the `programs`.
    pub fn missed(&self, largest_bytes: u64, programs: usize) -> Option<String> {
        let mib = |bytes: u64| format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20));
        let looks = self.looks;
        if (self.walked_rss_bytes as f64) < largest_bytes as f64 * SEEN {
            let saw = mib(self.walked_rss_bytes);
            let was = mib(largest_bytes);
            return Some(format!("{looks} looks, which saw {saw} of {was} at most"));
        }
        (programs > 1 && looks < LEAST_LOOKS)
            .then(|| format!("{looks} looks at {programs} programs"))
    }
}

/// Samples a tree.
pub struct TreeSampler {
    seen: Tree,
    pace: Pace,
    /// Whether page tables are walked. That takes long and delays the process, so never in a timed
    /// one.
    walks: bool,
}

impl TreeSampler {
    /// Page tables may be walked only if the process is not timed.
    pub fn new(walks: bool) -> TreeSampler {
        TreeSampler {
            seen: Tree::default(),
            pace: Pace::default(),
            walks,
        }
    }

    /// Samples these processes; returns the wait until the next look.
    pub fn look(&mut self, processes: &[i32]) -> Duration {
        // Not kept open: a tree may have more processes than heapmark may have open files.
        let files = || processes.iter().copied().map(ProcessFiles::of);
        let resident = files().filter_map(|mut files| files.resident_bytes());
        let seen = &mut self.seen;
        seen.peak_rss_bytes = seen.peak_rss_bytes.max(resident.sum());
        if self.walks {
            let walked: Vec<Walked> = files().filter_map(|mut files| files.walked()).collect();
            let sum = |bytes: fn(&Walked) -> u64| walked.iter().map(bytes).sum::<u64>();
            seen.peak_pss_bytes = seen.peak_pss_bytes.max(sum(|one| one.pss_bytes));
            seen.walked_rss_bytes = seen.walked_rss_bytes.max(sum(|one| one.rss_bytes));
        }
        seen.processes = seen.processes.max(processes.len());
        seen.looks += 1;
        let next = self.pace.next(thread_cpu_ns());
        // If nothing is timed, the cost of a look matters less than a missed peak.
        if self.walks { next / UNTIMED } else { next }
    }

    /// What was sampled so far.
    pub fn seen(&self) -> Tree {
        self.seen
    }
}

/// An untimed process is sampled this many times more often.
const UNTIMED: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peak_that_came_and_went_between_two_looks_is_missed() {
        let seen = |walked_rss_bytes, looks| Tree {
            walked_rss_bytes,
            looks,
            ..Tree::default()
        };
        let mib = 1 << 20;
        assert_eq!(
            seen(16 * mib, 40).missed(24 * mib, 1).unwrap(),
            "40 looks, which saw 16.0 MiB of 24.0 MiB at most"
        );
        assert_eq!(
            seen(0, 0).missed(24 * mib, 1).unwrap(),
            "0 looks, which saw 0.0 MiB of 24.0 MiB at most"
        );
        assert_eq!(seen(23 * mib, 3).missed(24 * mib, 1), None);
        assert_eq!(
            seen(40 * mib, 9).missed(24 * mib, 2).unwrap(),
            "9 looks at 2 programs"
        );
        assert_eq!(seen(40 * mib, 10).missed(24 * mib, 2), None);
    }

    #[test]
    fn this_very_process_is_seen_and_one_that_is_gone_is_not() {
        let own = std::process::id() as i32;
        let mut watcher = TreeSampler::new(true);
        watcher.look(&[own]);
        let once = watcher.seen();
        assert!(
            once.peak_rss_bytes > 0
                && once.peak_pss_bytes > 0
                && once.peak_pss_bytes <= once.walked_rss_bytes
        );
        watcher.look(&[own, own]);
        let twice = watcher.seen();
        assert!(
            twice.peak_rss_bytes > once.peak_rss_bytes,
            "the sum over the processes"
        );
        assert_eq!((twice.processes, twice.looks), (2, 2));
        let mut timed = TreeSampler::new(false);
        timed.look(&[own, i32::MAX]);
        assert_eq!(timed.seen().peak_pss_bytes, 0, "no page table is walked");
        assert!(timed.seen().peak_rss_bytes > 0);
    }
}
