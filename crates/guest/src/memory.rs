//! Memory of the harness itself, always straight from the kernel, and what the kernel says of this process's memory.

use core::ffi::CStr;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use heapmark_wire::{Kind, Page};

use crate::{fail, watched};

/// Maps the shared page; `None` where the file is not one.
pub fn map_page(path: &CStr) -> Option<&'static Page> {
    // SAFETY: plain system calls on a path we own; the mapping is never undone, so `'static` holds, and zeroed memory is a
    // valid page.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        let mut stat: libc::stat = core::mem::zeroed();
        if fd < 0 || libc::fstat(fd, &mut stat) != 0 || (stat.st_size as usize) < size_of::<Page>() {
            return None;
        }
        let address = libc::mmap(
            core::ptr::null_mut(),
            size_of::<Page>(),
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            fd,
            0,
        );
        libc::close(fd);
        if address == libc::MAP_FAILED { None } else { Some(&*address.cast::<Page>()) }
    }
}

/// A zeroed table of the harness, present in memory before the clock starts.
pub struct Table<T> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: a table owns its entries, as a boxed slice would.
unsafe impl<T: Sync> Sync for Table<T> {}

impl<T> Table<T> {
    /// A table of `len` zeroed entries. `T` must be valid when all its bytes are zero.
    pub fn zeroed(len: usize) -> Table<T> {
        Table::map(len, libc::MAP_POPULATE)
    }

    /// As [`Table::zeroed`], but its pages come when they are touched: for tables far larger than their use.
    pub fn reserved(len: usize) -> Table<T> {
        Table::map(len, libc::MAP_NORESERVE)
    }

    fn map(len: usize, flags: i32) -> Table<T> {
        let bytes = len.saturating_mul(size_of::<T>()).max(1);
        // SAFETY: a fresh private mapping.
        let address = unsafe {
            libc::mmap(
                core::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags,
                -1,
                0,
            )
        };
        match NonNull::new(address.cast()) {
            Some(start) if address != libc::MAP_FAILED => {
                watched::know(address.addr(), bytes, Kind::Harness);
                Table { start, len }
            }
            _ => fail::give_up("oom", format_args!("no {bytes} bytes for a table of the harness")),
        }
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        let bytes = (self.len * size_of::<T>()).max(1);
        watched::forget(self.start.as_ptr().addr());
        // SAFETY: the mapping made by `map`, nobody borrows it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), bytes) };
    }
}

impl<T> Deref for Table<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: page-aligned, zeroed, `len` entries that live as long as the table.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for Table<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// Keeps neighbours out of each other's cache lines, and out of the adjacent-line prefetcher's reach.
#[repr(align(128))]
#[derive(Default)]
pub struct Padded<T>(pub T);

/// Resident set of this process, from the page tables themselves. Costs time in proportion to the resident set, so ask
/// while it is small.
pub fn resident_bytes() -> u64 {
    proc_kib(c"/proc/self/smaps_rollup", "Rss:").or_else(|| proc_kib(c"/proc/self/status", "VmRSS:")).unwrap_or(0) << 10
}

/// Address space of this process, touched or not.
pub fn mapped_bytes() -> u64 {
    proc_kib(c"/proc/self/status", "VmSize:").unwrap_or(0) << 10
}

/// Highest resident set since this program was executed.
pub fn peak_resident_bytes() -> u64 {
    proc_kib(c"/proc/self/status", "VmHWM:").unwrap_or(0) << 10
}

/// What the kernel thinks can be had without swapping.
pub fn available_bytes() -> Option<u64> {
    proc_kib(c"/proc/meminfo", "MemAvailable:").map(|kib| kib << 10)
}

/// The number behind `key` in a file of the proc file system.
fn proc_kib(path: &CStr, key: &str) -> Option<u64> {
    let mut room = [0u8; 4096];
    let text = read_file(path, &mut room)?;
    text.lines().find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
}

/// A small file of the kernel's, read without the heap.
pub fn read_file<'r>(path: &CStr, room: &'r mut [u8]) -> Option<&'r str> {
    // SAFETY: plain system calls into a buffer of the caller.
    let len = unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        if fd < 0 {
            return None;
        }
        let len = libc::read(fd, room.as_mut_ptr().cast(), room.len());
        libc::close(fd);
        len.max(0) as usize
    };
    core::str::from_utf8(&room[..len]).ok()
}
