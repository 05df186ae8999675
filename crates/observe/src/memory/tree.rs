//! Samples the memory of a process and its descendants from outside, at a rate that costs less than
//! half a per cent of a core.

use super::pace::Pace;
use super::process_files::{ProcessFiles, Walked, ready_threads};
use crate::clock::thread_cpu_ns;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What was sampled of a tree of processes.
#[derive(Clone, Copy, Default)]
pub struct Tree {
    /// Highest sum of resident sets. Pages that processes share count once for each, except between a
    /// fork and what is then executed.
    pub peak_rss_bytes: u64,
    /// Highest sum of PSS: resident sets with shared pages divided among the processes that share
    /// them; 0 if not sampled.
    pub peak_pss_bytes: u64,
    /// Highest sum of resident sets, as found by the page-table walks that found the PSS.
    pub walked_rss_bytes: u64,
    /// The most processes at a time.
    pub processes: usize,
    /// How often the tree was sampled.
    pub looks: u64,
    /// How often no thread of the tree ran or was ready to run; 0 if page tables were not walked.
    pub idle_looks: u64,
    /// How often two or more threads of the tree ran or were ready to run.
    pub parallel_looks: u64,
}

/// The least share of a known peak that the walks must have found, for their own peak to count as
/// one.
const SEEN: f64 = 0.95;
/// The least number of looks that catch a peak of several processes.
const LEAST_LOOKS: u64 = 10;

impl Tree {
    /// Returns why [`Tree::peak_pss_bytes`] is no peak, if there were too few looks.
    /// `largest_bytes` is the kernel's peak RSS of the largest of the `programs`.
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

/// A forked process that has executed nothing for this long works as a copy of its parent. Before that it may be about to
/// execute a program, and then it gives back all memory that it shares with its parent.
const COPY: Duration = Duration::from_millis(100);

/// Which part of a process's memory counts.
#[derive(Clone, Copy)]
enum Counted {
    /// All memory of the process.
    All,
    /// Memory beyond the bytes that the process had when it was first seen, just forked; and when that was.
    Beyond(u64, Instant),
}

impl Counted {
    /// Returns how a process's memory counts, given how it counted before. `None` if the process
    /// has ended.
    fn of(files: &mut ProcessFiles, before: Option<Counted>) -> Option<Counted> {
        match before {
            Some(Counted::All) => Some(Counted::All),
            // Checked before the process's memory is read: a program that it executes in between holds little memory
            // yet.
            _ if files.has_executed()? => Some(Counted::All),
            Some(Counted::Beyond(_, since)) if since.elapsed() >= COPY => Some(Counted::All),
            Some(known) => Some(known),
            None => Some(Counted::Beyond(files.resident_bytes()?, Instant::now())),
        }
    }
}

/// Samples a process tree.
pub struct TreeSampler {
    seen: Tree,
    /// The processes of the last look.
    known: BTreeMap<i32, Counted>,
    pace: Pace,
    /// Whether page tables are walked. A walk takes long and delays the process, so timed processes are never walked.
    walks: bool,
}

impl TreeSampler {
    /// Makes a sampler, which may walk page tables only if the process is not timed.
    pub fn new(walks: bool) -> TreeSampler {
        TreeSampler {
            seen: Tree::default(),
            known: BTreeMap::new(),
            pace: Pace::default(),
            walks,
        }
    }

    /// Samples these processes; returns the wait until the next look.
    pub fn look(&mut self, processes: &[i32]) -> Duration {
        // The files are not kept open: a tree may have more processes than heapmark may have open
        // files.
        let mut before = std::mem::take(&mut self.known);
        let mut resident_bytes = 0;
        for pid in processes {
            let mut files = ProcessFiles::of(*pid);
            let Some(counted) = Counted::of(&mut files, before.remove(pid)) else {
                continue;
            };
            let bytes = files.resident_bytes().unwrap_or(0);
            resident_bytes += match counted {
                Counted::All => bytes,
                Counted::Beyond(shared_bytes, _) => bytes.saturating_sub(shared_bytes),
            };
            self.known.insert(*pid, counted);
        }
        let seen = &mut self.seen;
        seen.peak_rss_bytes = seen.peak_rss_bytes.max(resident_bytes);
        if self.walks {
            let is_all = |pid: &&i32| matches!(self.known.get(pid), Some(Counted::All));
            let counted = processes.iter().filter(is_all);
            let walked = counted.filter_map(|pid| ProcessFiles::of(*pid).walked());
            let walked: Vec<Walked> = walked.collect();
            let sum = |bytes: fn(&Walked) -> u64| walked.iter().map(bytes).sum::<u64>();
            seen.peak_pss_bytes = seen.peak_pss_bytes.max(sum(|one| one.pss_bytes));
            seen.walked_rss_bytes = seen.walked_rss_bytes.max(sum(|one| one.rss_bytes));
            let ready: usize = processes.iter().map(|pid| ready_threads(*pid)).sum();
            seen.idle_looks += u64::from(ready == 0);
            seen.parallel_looks += u64::from(ready > 1);
        }
        seen.processes = seen.processes.max(processes.len());
        seen.looks += 1;
        let next = self.pace.next(thread_cpu_ns());
        // If nothing is timed, the cost of a look matters less than a missed peak.
        if self.walks { next / UNTIMED } else { next }
    }

    /// Returns what was sampled so far.
    pub fn seen(&self) -> Tree {
        self.seen
    }
}

/// An untimed process is sampled this many times more often.
const UNTIMED: u32 = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

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
        let own_pid = std::process::id() as i32;
        let mut watcher = TreeSampler::new(true);
        watcher.look(&[own_pid]);
        let once = watcher.seen();
        assert!(
            once.peak_rss_bytes > 0
                && once.peak_pss_bytes > 0
                && once.peak_pss_bytes <= once.walked_rss_bytes
        );
        watcher.look(&[own_pid, own_pid]);
        let twice = watcher.seen();
        assert!(
            twice.peak_rss_bytes > once.peak_rss_bytes,
            "the sum over the processes"
        );
        assert_eq!((twice.processes, twice.looks), (2, 2));
        let mut timed = TreeSampler::new(false);
        timed.look(&[own_pid, i32::MAX]);
        assert_eq!(timed.seen().peak_pss_bytes, 0, "no page table is walked");
        assert!(timed.seen().peak_rss_bytes > 0);
    }

    #[test]
    fn what_was_just_forked_adds_nothing_until_it_works_as_a_copy() {
        let own_pid = std::process::id() as i32;
        // A copy has no page of the program's file before it runs that code: so most must be other memory.
        let _written = std::hint::black_box(vec![1_u8; 128 << 20]);
        let (wait, go) = std::io::pipe().unwrap();
        // SAFETY: the child makes async-signal-safe calls only, and ends when the pipe is closed.
        let child = unsafe {
            match libc::fork() {
                0 => {
                    libc::close(go.as_raw_fd());
                    libc::read(wait.as_raw_fd(), [0_u8].as_mut_ptr().cast(), 1);
                    libc::_exit(0)
                }
                child => child,
            }
        };
        let mut watcher = TreeSampler::new(false);
        watcher.look(&[own_pid]);
        let alone_bytes = watcher.seen().peak_rss_bytes;
        watcher.look(&[own_pid, child]);
        let forked_bytes = watcher.seen().peak_rss_bytes;
        let began = Instant::now();
        while watcher.seen().peak_rss_bytes < alone_bytes * 3 / 2 && began.elapsed() < COPY * 100 {
            watcher.look(&[own_pid, child]);
        }
        let copied_bytes = watcher.seen().peak_rss_bytes;
        drop(go);
        // SAFETY: a plain system call on a child that has not been waited for.
        unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
        assert!(
            child > 0 && forked_bytes < alone_bytes * 3 / 2,
            "{forked_bytes}"
        );
        assert!(copied_bytes >= alone_bytes * 3 / 2, "{copied_bytes}");
    }
}
