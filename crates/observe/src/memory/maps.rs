//! `/proc/PID/maps` -> bytes by purpose (LL). Every mapped byte counts once.

use heapmark_wire::{Known, RangeKind};

/// What a process has mapped, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mapped {
    /// The `[heap]` region, and every anonymous one that starts exactly where the previous one
    /// ended.
    pub heap: u64,
    /// Other anonymous memory.
    pub mmap: u64,
    /// Regions of files other than the program: libraries, and memory files.
    pub mmap_so: u64,
    /// The main thread's stack and those of known worker threads.
    pub stack: u64,
    /// Regions of the program's file.
    pub text: u64,
    /// Regions with a name from the kernel: vdso, vvar, vsyscall.
    pub other: u64,
    /// Tables of the harness and the shared page.
    pub harness: u64,
    /// Address space that cannot be accessed: it uses no memory, and is in no figure above.
    pub reserved: u64,
}

impl Mapped {
    /// Reads a maps file. `program` is the path of the program's own file; `known` ranges do not
    /// belong to the allocator, wherever they are: the kernel merges neighbours, so a region may
    /// contain other data too.
    pub fn read(maps: &str, program: &str, known: &[Known]) -> Mapped {
        let mut mapped = Mapped::default();
        let mut heap_end = None;
        for region in maps.lines().filter_map(Region::parse) {
            let name = region.name;
            let size = region.end - region.start;
            let is_anonymous = name.is_empty() || name.starts_with("[anon");
            let is_heap = name == "[heap]" || is_anonymous && heap_end == Some(region.start);
            if is_heap {
                heap_end = Some(region.end);
            }
            if !region.accessible {
                mapped.reserved += size;
                continue;
            }
            let mut rest = size;
            for range in known {
                let shared = region.shared(range).min(rest);
                rest -= shared;
                match range.kind {
                    RangeKind::Stack => mapped.stack += shared,
                    RangeKind::Harness | RangeKind::Shared => mapped.harness += shared,
                }
            }
            let purpose = match name {
                _ if is_heap => &mut mapped.heap,
                _ if is_anonymous => &mut mapped.mmap,
                _ if name.starts_with("[stack") => &mut mapped.stack,
                _ if name.starts_with('[') => &mut mapped.other,
                _ if name == program => &mut mapped.text,
                _ => &mut mapped.mmap_so,
            };
            *purpose += rest;
        }
        mapped
    }

    /// Returns heap + mmap + mmap_so, as the paper plots it.
    pub fn total_dynamic(&self) -> u64 {
        self.heap + self.mmap + self.mmap_so
    }

    /// Returns all accessible memory, whatever its purpose.
    pub fn accessible(&self) -> u64 {
        self.total_dynamic() + self.stack + self.text + self.other + self.harness
    }
}

/// A line of a maps file.
struct Region<'a> {
    start: u64,
    end: u64,
    accessible: bool,
    /// Path without ` (deleted)`, name in brackets, or empty.
    name: &'a str,
}

impl Region<'_> {
    fn parse(line: &str) -> Option<Region<'_>> {
        // Address, permissions, offset, device, inode; the name may contain spaces.
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let permissions = words.next()?;
        let name = words.nth(3)?.trim_start();
        let address = |word| u64::from_str_radix(word, 16).ok();
        (permissions.len() == 4).then_some(Region {
            start: address(start)?,
            end: address(end)?,
            accessible: !permissions.starts_with("---"),
            name: name.strip_suffix(" (deleted)").unwrap_or(name),
        })
    }

    /// Returns the bytes of a known range that lie in this region.
    fn shared(&self, range: &Known) -> u64 {
        let start = range.start.max(self.start);
        range.end.min(self.end).saturating_sub(start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: &str = "/opt/heap mark/heapmark-guest";

    fn read(maps: &str) -> Mapped {
        Mapped::read(maps, PROGRAM, &[])
    }

    fn known(start: u64, end: u64, kind: RangeKind) -> Known {
        Known { start, end, kind }
    }

    #[test]
    fn an_ordinary_process_is_told_apart() {
        let maps = "\
5581a0000000-5581a0002000 r--p 00000000 fe:00 1234                       /opt/heap mark/heapmark-guest
5581a0002000-5581a0005000 r-xp 00002000 fe:00 1234                       /opt/heap mark/heapmark-guest
5581a0006000-5581a0007000 rw-p 00005000 fe:00 1234                       /opt/heap mark/heapmark-guest
5581a1000000-5581a1021000 rw-p 00000000 00:00 0                          [heap]
7f0000000000-7f0000100000 rw-p 00000000 00:00 0 
7f0000200000-7f0000226000 r--p 00000000 fe:00 326269                     /usr/lib/libc.so.6
7f0000226000-7f0000227000 rw-p 00026000 fe:00 326269                     /usr/lib/libc.so.6
7f0000227000-7f0000234000 rw-p 00000000 00:00 0 
7f0000300000-7f0000304000 r--p 00000000 00:00 0                          [vvar]
7f0000304000-7f0000306000 r-xp 00000000 00:00 0                          [vdso]
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]
ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]
";
        let mapped = read(maps);
        let expected = Mapped {
            heap: 0x21000,
            mmap: 0x100000 + 0xd000,
            mmap_so: 0x27000,
            stack: 0x21000,
            text: 0x6000,
            other: 0x7000,
            harness: 0,
            reserved: 0,
        };
        assert_eq!(mapped, expected);
        assert_eq!(mapped.total_dynamic(), 0x21000 + 0x10d000 + 0x27000);
        assert_eq!(
            mapped.accessible(),
            mapped.total_dynamic() + 0x21000 + 0x6000 + 0x7000
        );
    }

    #[test]
    fn anonymous_regions_that_continue_the_heap_are_heap() {
        let maps = "\
10000-20000 rw-p 00000000 00:00 0                          [heap]
20000-28000 rw-p 00000000 00:00 0 
28000-29000 rw-p 00000000 00:00 0 
2a000-2b000 rw-p 00000000 00:00 0 
2b000-2c000 rw-p 00000000 00:00 0 
";
        let mapped = read(maps);
        assert_eq!((mapped.heap, mapped.mmap), (0x19000, 0x2000));
    }

    #[test]
    fn a_file_behind_the_heap_ends_it() {
        let maps = "\
10000-20000 rw-p 00000000 00:00 0                          [heap]
20000-21000 r--p 00000000 fe:00 7                          /lib/x.so
21000-22000 rw-p 00000000 00:00 0 
";
        let mapped = read(maps);
        assert_eq!(
            (mapped.heap, mapped.mmap_so, mapped.mmap),
            (0x10000, 0x1000, 0x1000)
        );
    }

    #[test]
    fn what_cannot_be_accessed_is_reserved_whatever_it_is() {
        let maps = "\
10000-20000 rw-p 00000000 00:00 0                          [heap]
20000-40000 ---p 00000000 00:00 0 
40000-50000 rw-p 00000000 00:00 0 
7f0000000000-7f0004000000 ---p 00000000 00:00 0 
7f0004000000-7f0004001000 ---p 00001000 fe:00 7                          /lib/x.so
7f0005000000-7f0005001000 r--p 00000000 00:00 0 
";
        let mapped = read(maps);
        assert_eq!(mapped.reserved, 0x20000 + 0x4000000 + 0x1000);
        // Inaccessible anonymous memory continues the heap like other anonymous memory.
        assert_eq!(
            (mapped.heap, mapped.mmap, mapped.mmap_so),
            (0x20000, 0x1000, 0)
        );
    }

    #[test]
    fn stacks_and_tables_are_taken_out_even_where_the_kernel_has_merged_them() {
        let maps = "\
7f0000000000-7f0000010000 ---p 00000000 00:00 0 
7f0000010000-7f0000100000 rw-p 00000000 00:00 0 
7f0000200000-7f0000300000 rw-s 00000000 00:01 99                         /memfd:heapmark-page (deleted)
";
        let stack = known(0x7f0000010000, 0x7f0000050000, RangeKind::Stack);
        let table = known(0x7f0000050000, 0x7f0000060000, RangeKind::Harness);
        let page = known(0x7f0000200000, 0x7f0000300000, RangeKind::Harness);
        let gone = known(0x7f0000400000, 0x7f0000500000, RangeKind::Stack);
        let mapped = Mapped::read(maps, PROGRAM, &[stack, table, page, gone]);
        assert_eq!((mapped.stack, mapped.harness), (0x40000, 0x110000));
        assert_eq!(
            (mapped.mmap, mapped.mmap_so, mapped.reserved),
            (0xa0000, 0, 0x10000)
        );
    }

    #[test]
    fn deleted_files_are_still_files_and_the_deleted_program_is_still_the_program() {
        let maps = "\
10000-20000 r-xp 00000000 fe:00 1                          /opt/heap mark/heapmark-guest (deleted)
30000-40000 r-xp 00000000 fe:00 2                          /lib/old.so (deleted)
50000-52000 rw-s 00000000 00:01 3                          /memfd:arena (deleted)
";
        let mapped = read(maps);
        assert_eq!((mapped.text, mapped.mmap_so), (0x10000, 0x12000));
    }

    #[test]
    fn anonymous_memory_that_an_allocator_has_named_is_anonymous() {
        let maps = "\
10000-20000 rw-p 00000000 00:00 0                          [heap]
20000-21000 rw-p 00000000 00:00 0                          [anon:scudo:primary]
30000-34000 rw-p 00000000 00:00 0                          [anon: glibc: malloc]
40000-41000 rw-s 00000000 00:01 5                          [anon_shmem:pool]
50000-51000 rw-p 00000000 00:00 0                          [stack:77]
";
        let mapped = read(maps);
        assert_eq!(
            (mapped.heap, mapped.mmap, mapped.stack),
            (0x11000, 0x5000, 0x1000)
        );
    }

    #[test]
    fn lines_that_are_none_count_nothing() {
        assert_eq!(
            read("nonsense\n10000-x rw-p 0 0 0 \n\n10000-20000\n"),
            Mapped::default()
        );
    }
}
