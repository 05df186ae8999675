//! What the kernel reports about the memory of a running process: `/proc/PID/statm`, `smaps_rollup`
//! and `maps`.

use crate::machine::root::reread;
use heapmark_catalog::folder::listing;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::{File, read_to_string};
use std::path::PathBuf;

/// The files of one process. Each is opened when it is first read, and kept open: opening one costs
/// as much as reading it.
pub struct ProcessFiles {
    pid: i32,
    open: BTreeMap<&'static str, File>,
    text: String,
}

impl ProcessFiles {
    /// Returns the files of a process.
    pub fn of(pid: i32) -> ProcessFiles {
        ProcessFiles {
            pid,
            open: BTreeMap::new(),
            text: String::new(),
        }
    }

    /// Returns the resident set; `None` once the process has ended.
    pub fn resident_bytes(&mut self) -> Option<u64> {
        resident_bytes(self.text("statm")?).filter(|bytes| *bytes > 0)
    }

    /// Returns whether the process executes a program of its own, and not its parent's since a fork; `None` once the process
    /// has ended.
    pub fn has_executed(&mut self) -> Option<bool> {
        has_executed(self.text("stat")?)
    }

    /// Returns the results of a walk of the page tables, which takes much longer than other reads.
    pub fn walked(&mut self) -> Option<Walked> {
        Walked::of(self.text("smaps_rollup")?)
    }

    /// Returns a size from `/proc/PID/status` in bytes.
    pub fn status_bytes(&mut self, key: &str) -> Option<u64> {
        kib_bytes(self.text("status")?, key)
    }

    /// Returns the process's mappings. A process that is ending has an empty address space, which is not a point of
    /// its life.
    pub fn maps(&mut self) -> Option<&str> {
        self.text("maps").filter(|maps| !maps.is_empty())
    }

    fn text(&mut self, name: &'static str) -> Option<&str> {
        let file = match self.open.entry(name) {
            Entry::Occupied(open) => open.into_mut(),
            Entry::Vacant(new) => {
                new.insert(File::open(format!("/proc/{}/{name}", self.pid)).ok()?)
            }
        };
        reread(file, &mut self.text)
    }
}

/// Returns how many threads of a process run, or would if they had a CPU.
pub fn ready_threads(pid: i32) -> usize {
    let is_ready = |task: &PathBuf| {
        let stat = read_to_string(task.join("stat")).unwrap_or_default();
        stat_words(&stat).next() == Some("R")
    };
    let tasks = listing(format!("/proc/{pid}/task"));
    tasks.filter(is_ready).count()
}

/// Returns the resident set in bytes, from the second word of statm.
pub fn resident_bytes(statm: &str) -> Option<u64> {
    Some(statm.split_whitespace().nth(1)?.parse::<u64>().ok()? * rustix::param::page_size() as u64)
}

/// Returns the words of `/proc/PID/stat` behind the program's name, which may contain anything. The first one is the state.
pub fn stat_words(stat: &str) -> impl Iterator<Item = &str> {
    let (_, words) = stat.rsplit_once(')').unwrap_or_default();
    words.split_whitespace()
}

/// Returns whether a process has executed a program since it was forked, from `/proc/PID/stat`.
fn has_executed(stat: &str) -> Option<bool> {
    /// The kernel's `PF_FORKNOEXEC`.
    const FORKED: u64 = 0x40;
    let flags: u64 = stat_words(stat).nth(6)?.parse().ok()?;
    Some(flags & FORKED == 0)
}

/// Returns the size that follows a key as a number of KiB, in bytes.
fn kib_bytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? << 10)
}

/// The results of a walk of the page tables.
#[derive(Clone, Copy)]
pub struct Walked {
    pub rss_bytes: u64,
    pub pss_bytes: u64,
    pub anon_huge_bytes: u64,
    /// Bytes that the kernel may take back at any time, since they were freed by MADV_FREE.
    pub lazily_free_bytes: u64,
}

impl Walked {
    fn of(rollup: &str) -> Option<Walked> {
        let bytes = |key: &str| kib_bytes(rollup, key);
        Some(Walked {
            lazily_free_bytes: bytes("LazyFree:").unwrap_or(0),
            rss_bytes: bytes("Rss:")?,
            pss_bytes: bytes("Pss:")?,
            anon_huge_bytes: bytes("AnonHugePages:")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_process_is_told_from_one_that_executes_its_own_program() {
        let of = |flags: &str| has_executed(&format!("7 (a) b) S 1 7 7 0 -1 {flags} 100 0 0 0"));
        assert_eq!(of("4194304"), Some(true));
        assert_eq!(of("4194368"), Some(false));
        assert_eq!(has_executed("7 (a"), None);
    }
}
