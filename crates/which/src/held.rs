//! What a process holds, by kind: from one walk of its page tables, `/proc/PID/smaps`.

use crate::process::Process;
use anyhow::{Context, Result};
use heapmark_core::catalog::folder::listing;
use heapmark_core::execute::reach::mappings;
use serde::Serialize;
use std::fs;

/// Resident memory in bytes, each byte in one kind, and counts of what grows with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Held {
    /// All that is resident.
    pub rss_bytes: u64,
    /// The same, with what several processes share divided among them.
    pub pss_bytes: u64,
    /// The heap and anonymous mappings: allocators', and what the program maps itself.
    pub heap_bytes: u64,
    /// Stacks: the first thread's, and others' if their registers may be read.
    pub stack_bytes: u64,
    /// The program, libraries and other files.
    pub file_bytes: u64,
    /// Memory files and shared memory.
    pub shared_bytes: u64,
    /// Of the kernel's.
    pub other_bytes: u64,
    /// Of all that, in huge pages.
    pub huge_bytes: u64,
    /// Of all that, what the kernel may take back at any time, since the allocator has freed it by MADV_FREE.
    pub lazily_freed_bytes: u64,
    /// Not resident, but in swap.
    pub swapped_bytes: u64,
    /// How many mappings there are.
    pub mappings: u64,
    /// How many of these the kernel allows.
    pub most_mappings: u64,
}

impl Held {
    /// By a process now.
    pub fn by(process: &Process) -> Result<Held> {
        let smaps = process.text("smaps")?;
        let mut held = read(&smaps, &stack_pointers(process.pid));
        let most = fs::read_to_string("/proc/sys/vm/max_map_count").context("max_map_count")?;
        held.most_mappings = most.trim().parse().context("max_map_count")?;
        Ok(held)
    }
}

/// Where the threads' stacks are: the second word from behind, if the thread waits and may be read.
fn stack_pointers(pid: i32) -> Vec<u64> {
    let pointer = |task: std::path::PathBuf| {
        let call = fs::read_to_string(task.join("syscall")).ok()?;
        let word = call.split_whitespace().rev().nth(1)?;
        u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
    };
    listing(format!("/proc/{pid}/task"))
        .filter_map(pointer)
        .collect()
}

fn read(smaps: &str, stack_pointers: &[u64]) -> Held {
    let mut held = Held::default();
    let mut kind: fn(&mut Held) -> &mut u64 = |held| &mut held.other_bytes;
    for line in smaps.lines() {
        if let Some(mapping) = mappings(line).next() {
            held.mappings += 1;
            let of_thread = |at: &u64| (mapping.start..mapping.end).contains(at);
            let name = mapping.file;
            let is_anonymous = name.is_empty() || name == "[heap]" || name.starts_with("[anon:");
            kind = match name {
                _ if name.starts_with("[stack") => |held| &mut held.stack_bytes,
                _ if is_anonymous && stack_pointers.iter().any(of_thread) => {
                    |held| &mut held.stack_bytes
                }
                _ if is_anonymous => |held| &mut held.heap_bytes,
                _ if is_shared_memory(name) => |held| &mut held.shared_bytes,
                _ if name.starts_with('/') => |held| &mut held.file_bytes,
                _ => |held| &mut held.other_bytes,
            };
            continue;
        }
        let Some((key, value)) = line.split_once(':') else {
            continue;
        };
        let kib = value.split_whitespace().next().unwrap_or_default();
        let Ok(kib) = kib.parse::<u64>() else {
            continue;
        };
        let bytes = kib << 10;
        match key {
            "Rss" => {
                held.rss_bytes += bytes;
                *kind(&mut held) += bytes;
            }
            "Pss" => held.pss_bytes += bytes,
            "AnonHugePages" => held.huge_bytes += bytes,
            "LazyFree" => held.lazily_freed_bytes += bytes,
            "Swap" => held.swapped_bytes += bytes,
            _ => {}
        }
    }
    held
}

fn is_shared_memory(name: &str) -> bool {
    ["/dev/shm/", "/memfd:", "/SYSV", "/dev/zero", "[anon_shmem"]
        .iter()
        .any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_resident_byte_has_one_kind() {
        let smaps = "\
10000-20000 r-xp 00000000 fe:00 12                         /bin/a b
Rss:                  16 kB
Pss:                   8 kB
VmFlags: rd ex mr mw me
20000-30000 rw-p 00000000 00:00 0                          [heap]
Rss:                  32 kB
Pss:                  32 kB
AnonHugePages:         4 kB
LazyFree:             12 kB
30000-40000 rw-p 00000000 00:00 0 
Rss:                  64 kB
Pss:                  64 kB
Swap:                  4 kB
50000-60000 rw-s 00000000 00:01 5                          /memfd:pool (deleted)
Rss:                   4 kB
Pss:                   2 kB
70000-80000 rw-p 00000000 00:00 0                          [stack]
Rss:                   8 kB
Pss:                   8 kB
90000-a0000 r-xp 00000000 00:00 0                          [vdso]
Rss:                   4 kB
Pss:                   0 kB
";
        let held = read(smaps, &[0x35000]);
        let kib = |bytes: u64| bytes >> 10;
        assert_eq!(
            [
                held.heap_bytes,
                held.stack_bytes,
                held.file_bytes,
                held.shared_bytes,
                held.other_bytes
            ]
            .map(kib),
            [32, 72, 16, 4, 4]
        );
        assert_eq!((kib(held.rss_bytes), kib(held.pss_bytes)), (128, 114));
        assert_eq!(
            [held.huge_bytes, held.lazily_freed_bytes, held.swapped_bytes].map(kib),
            [4, 12, 4]
        );
        assert_eq!(held.mappings, 6);
        assert_eq!(kib(read(smaps, &[]).heap_bytes), 96);
    }
}
