//! What processes hold, by kind, from `/proc/PID/smaps`. Reading that walks the page tables and delays the process, so
//! it is never done to a process that is timed.

use super::reach::Mapping;
use crate::catalog::folder::listing;
use serde::Serialize;
use std::fs;
use std::ops::AddAssign;
use std::path::PathBuf;

/// Resident memory in bytes, each byte counted under one kind, and other sizes that grow with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct ResidentByKind {
    /// All that is resident.
    pub rss_bytes: u64,
    /// Proportional set size: pages that several processes share are divided among them.
    pub pss_bytes: u64,
    /// The heap and anonymous mappings: those of allocators, and those that the program makes itself.
    pub heap_bytes: u64,
    /// Heap bytes in glibc's arenas other than the main one.
    pub arena_bytes: u64,
    /// Stacks: that of the first thread, and those of other threads if their registers may be read.
    pub stack_bytes: u64,
    /// The program, libraries and other files.
    pub file_bytes: u64,
    /// Memory files and shared memory.
    pub shared_bytes: u64,
    /// Mappings that the kernel provides.
    pub other_bytes: u64,
    /// The part of all resident memory that is in huge pages.
    pub huge_bytes: u64,
    /// The part of all resident memory that the kernel may take back at any time, because the allocator has freed it
    /// with MADV_FREE.
    pub lazily_freed_bytes: u64,
    /// Memory that is not resident, but in swap.
    pub swapped_bytes: u64,
    /// How many mappings there are.
    pub mappings: u64,
}

impl AddAssign for ResidentByKind {
    fn add_assign(&mut self, other: ResidentByKind) {
        let ResidentByKind {
            rss_bytes,
            pss_bytes,
            heap_bytes,
            arena_bytes,
            stack_bytes,
            file_bytes,
            shared_bytes,
            other_bytes,
            huge_bytes,
            lazily_freed_bytes,
            swapped_bytes,
            mappings,
        } = other;
        self.rss_bytes += rss_bytes;
        self.pss_bytes += pss_bytes;
        self.heap_bytes += heap_bytes;
        self.arena_bytes += arena_bytes;
        self.stack_bytes += stack_bytes;
        self.file_bytes += file_bytes;
        self.shared_bytes += shared_bytes;
        self.other_bytes += other_bytes;
        self.huge_bytes += huge_bytes;
        self.lazily_freed_bytes += lazily_freed_bytes;
        self.swapped_bytes += swapped_bytes;
        self.mappings += mappings;
    }
}

/// The largest heap of a glibc arena. This much is reserved for each heap, which begins at a multiple of it.
const ARENA: u64 = 64 << 20;

impl ResidentByKind {
    /// Returns the memory of a process with this `smaps`.
    pub fn of(pid: i32, smaps: &str) -> ResidentByKind {
        ResidentByKind::read(smaps, &stack_pointers(pid))
    }

    /// Returns the memory of several processes now, without those that are gone or may not be read.
    pub fn of_all(pids: &[i32]) -> ResidentByKind {
        let mut all = ResidentByKind::default();
        for pid in pids {
            let smaps = fs::read_to_string(format!("/proc/{pid}/smaps"));
            all += ResidentByKind::of(*pid, &smaps.unwrap_or_default());
        }
        all
    }

    fn read(smaps: &str, stack_pointers: &[u64]) -> ResidentByKind {
        let mut held = ResidentByKind::default();
        let mut kind: fn(&mut ResidentByKind) -> &mut u64 = |held| &mut held.other_bytes;
        // For a range that may be an arena's heap: its beginning, the end of the part seen so far, and the resident
        // bytes in it.
        let mut arena: Option<(u64, u64, u64)> = None;
        for line in smaps.lines() {
            if let Some(region) = Mapping::of(line) {
                held.mappings += 1;
                let of_thread = |at: &u64| (region.start..region.end).contains(at);
                let name = region.file;
                let is_anonymous =
                    name.is_empty() || name == "[heap]" || name.starts_with("[anon:");
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
                arena = match arena {
                    Some((start, end, bytes))
                        if end == region.start && region.end <= start + ARENA && is_anonymous =>
                    {
                        Some((start, region.end, bytes))
                    }
                    _ if name.is_empty() && region.start % ARENA == 0 && region.is_written => {
                        Some((region.start, region.end, 0))
                    }
                    _ => None,
                };
                // All that was reserved for the heap has been seen.
                if let Some((start, end, bytes)) = arena
                    && end == start + ARENA
                {
                    held.arena_bytes += bytes;
                    if !region.is_written {
                        arena = None;
                    }
                }
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
                    if let Some((start, end, so_far)) = &mut arena {
                        match *end == *start + ARENA {
                            true => held.arena_bytes += bytes,
                            false => *so_far += bytes,
                        }
                    }
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
}

/// Returns addresses in the threads' stacks: the second-last word of `syscall`, if the thread waits and may be read.
fn stack_pointers(pid: i32) -> Vec<u64> {
    let pointer = |task: PathBuf| {
        let call = fs::read_to_string(task.join("syscall")).ok()?;
        let word = call.split_whitespace().rev().nth(1)?;
        u64::from_str_radix(word.strip_prefix("0x")?, 16).ok()
    };
    listing(format!("/proc/{pid}/task"))
        .filter_map(pointer)
        .collect()
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
        let held = ResidentByKind::read(smaps, &[0x35000]);
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
        assert_eq!((held.mappings, held.arena_bytes), (6, 0));
        assert_eq!(kib(ResidentByKind::read(smaps, &[]).heap_bytes), 96);
    }

    #[test]
    fn the_heaps_of_glibcs_arenas_are_known_by_what_is_reserved_for_them() {
        let smaps = "\
7f0000000000-7f0001000000 rw-p 00000000 00:00 0 
Rss:                  64 kB
7f0001000000-7f0004000000 ---p 00000000 00:00 0 
Rss:                   0 kB
7f0004000000-7f0008000000 rw-p 00000000 00:00 0 
Rss:                  32 kB
7f0010000000-7f0010001000 rw-p 00000000 00:00 0 
Rss:                   4 kB
7f0010002000-7f0014000000 ---p 00000000 00:00 0 
Rss:                   0 kB
7f0018000000-7f0030000000 rw-p 00000000 00:00 0 
Rss:                 128 kB
";
        // Two heaps of arenas: one used in part, one used up; the other reservations are not of arenas.
        assert_eq!(
            ResidentByKind::read(smaps, &[]).arena_bytes,
            (64 + 32) << 10
        );
    }
}
