//! Makes free memory present in the machine before each measured process.
//!
//! A virtual machine returns free memory to its host after seconds (free page reporting, balloons).
//! The next first touch of such a page fetches it again and takes up to fifty times as long as
//! usual. How many of these pages a process meets depends on what ran before it, not on its
//! allocator: allocators that take huge pages showed two modes, ten times apart. So as many bytes
//! as a process will touch are touched here and freed just before it: the kernel then has them
//! ready for every process alike. Before the first block the same is done once for the largest
//! process of the run.

use crate::observe::{Groups, Root};
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};
use std::ptr::null_mut;

/// The smallest page size of any machine, so that no page is skipped.
const PAGE_BYTES: usize = 4096;

/// The memory that processes may still take: what the machine or its control group has left, whichever is less.
pub fn memory_left(root: &Root) -> Option<u64> {
    let limit = Groups::of(root, "memory").and_then(|groups| groups.memory_left(root));
    let available = root.memory_bytes("MemAvailable").into_iter();
    available.chain(limit.map(|left| left.bytes)).min()
}

/// Touches this many bytes and frees them, if there is memory for it. If memory is short, the
/// measured process itself reports it.
pub fn make_present(root: &Root, bytes: u64) {
    let bytes = harmless(root, bytes) as usize;
    if bytes == 0 {
        return;
    }
    // SAFETY: a mapping of our own, written within its length and unmapped at once.
    unsafe {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
        let Ok(begin) =
            mmap_anonymous(null_mut(), bytes, ProtFlags::READ | ProtFlags::WRITE, flags)
        else {
            return;
        };
        // Huge pages cost most when fetched again; a kernel without them gives small pages.
        _ = madvise(begin, bytes, Advice::LinuxHugepage);
        for offset in (0..bytes).step_by(PAGE_BYTES) {
            begin.cast::<u8>().add(offset).write_volatile(1);
        }
        _ = munmap(begin, bytes);
    }
}

/// Limits `bytes` to half of the available memory, so that nothing is evicted for them.
fn harmless(root: &Root, bytes: u64) -> u64 {
    bytes.min(memory_left(root).unwrap_or(0) / 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{create_dir_all, read_to_string, write};

    const MIB: u64 = 1 << 20;

    /// The peak resident set of this process.
    fn peak_bytes() -> u64 {
        let status = read_to_string("/proc/self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:"))
            .unwrap();
        line.trim()
            .strip_suffix(" kB")
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1024
    }

    #[test]
    fn what_is_asked_for_is_touched_but_never_more_than_half_of_what_is_left() {
        let root = tempfile::tempdir().unwrap();
        create_dir_all(root.path().join("proc")).unwrap();
        let say = |available_mib: u64| {
            let text = format!("MemAvailable: {} kB\n", available_mib * 1024);
            write(root.path().join("proc/meminfo"), text).unwrap();
            Root::at(root.path())
        };
        assert_eq!(harmless(&say(256), 1 << 40), 128 * MIB);
        assert_eq!(harmless(&say(1024), 300 * MIB), 300 * MIB);
        make_present(&say(1024), 300 * MIB);
        assert!(peak_bytes() >= 300 * MIB, "{}", peak_bytes());
    }
}
