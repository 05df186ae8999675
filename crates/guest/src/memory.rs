//! Memory of the harness itself, always directly from the kernel, and the kernel's figures about this process's memory.

use core::ffi::{CStr, c_int, c_void};
use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};
use core::ptr::{self, NonNull};
use core::sync::atomic::{
    AtomicPtr,
    Ordering::{Acquire, Release},
};
use heapmark_wire::{Page, RangeKind};

use crate::{published, sys};

/// Maps the shared page, and closes the inherited descriptor behind `/proc/self/fd/NUMBER`, so that a process that a
/// library forks later does not inherit it. `None` if the file is not a shared page.
pub fn map_page(path: &CStr) -> Option<&'static Page> {
    let (address, bytes) = map(path, libc::O_RDWR, libc::PROT_READ | libc::PROT_WRITE)?;
    let number = path.to_str().ok()?.strip_prefix("/proc/self/fd/");
    if let Some(inherited) = number.and_then(|number| number.parse().ok()) {
        // SAFETY: heapmark opened it for this process, which needs it no longer.
        unsafe { libc::close(inherited) };
    }
    // SAFETY: never unmapped, so `'static` holds, and zeroed memory is a valid page.
    (bytes >= size_of::<Page>()).then(|| unsafe { &*address.cast::<Page>() })
}

/// Maps a file for reading, permanently; `None` if that fails or the file is empty.
pub fn map_file(path: &CStr) -> Option<&'static [u8]> {
    let (address, bytes) = map(path, libc::O_RDONLY, libc::PROT_READ)?;
    // SAFETY: never unmapped, so `'static` holds.
    Some(unsafe { core::slice::from_raw_parts(address.cast(), bytes) })
}

/// Maps a whole file.
fn map(path: &CStr, access: c_int, protection: c_int) -> Option<(*mut c_void, usize)> {
    // SAFETY: plain system calls; a fresh mapping.
    unsafe {
        let fd = libc::open(path.as_ptr(), access | libc::O_CLOEXEC);
        let mut stat: libc::stat = core::mem::zeroed();
        if fd < 0 || libc::fstat(fd, &mut stat) != 0 {
            return None;
        }
        let bytes = stat.st_size as usize;
        let address = libc::mmap(ptr::null_mut(), bytes, protection, libc::MAP_SHARED, fd, 0);
        libc::close(fd);
        (address != libc::MAP_FAILED).then_some((address, bytes))
    }
}

/// Maps fresh writable memory; `None` if the kernel provides none.
pub fn anonymous(bytes: usize, flags: c_int) -> Option<NonNull<c_void>> {
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh mapping.
    let address = unsafe {
        let flags = flags | libc::MAP_ANONYMOUS;
        libc::mmap(ptr::null_mut(), bytes, access, flags, -1, 0)
    };
    NonNull::new(address).filter(|address| address.as_ptr() != libc::MAP_FAILED)
}

/// A zeroed table of the harness, present in memory before the clock starts.
pub struct HarnessTable<T> {
    start: NonNull<T>,
    len: usize,
    /// Whether all pages are resident from the start.
    populated: bool,
}

// SAFETY: a table owns its entries, as a boxed slice would. Entries that are not made for sharing belong to one thread
// at a time: the table's users give each thread a part of its own, or hand parts over.
unsafe impl<T> Sync for HarnessTable<T> {}

/// A value that only one thread at a time uses, which the order of the threads' work ensures.
#[derive(Default)]
pub struct InTurn<T>(pub T);

// SAFETY: only one thread at a time uses the value.
unsafe impl<T> Sync for InTurn<T> {}

impl<T> Deref for InTurn<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Puts a value into memory of the harness, where it stays until the process ends.
pub fn keep<T>(value: T) -> *mut T {
    let mut home = ManuallyDrop::new(HarnessTable::<T>::zeroed(1));
    let place = home.as_mut_ptr();
    // SAFETY: the table has room for one entry. Zeroed memory may not be a valid `T`, but it is written before it is
    // read.
    unsafe { ptr::write(place, value) };
    place
}

/// A value that is set once and stays until the process ends.
pub struct SetOnce<T>(AtomicPtr<T>);

impl<T> SetOnce<T> {
    /// A value that is not yet set.
    pub const fn unset() -> SetOnce<T> {
        SetOnce(AtomicPtr::new(ptr::null_mut()))
    }

    /// Sets the value.
    pub fn set(&self, value: T) {
        self.0.store(keep(value), Release);
    }

    /// The value, if it has been set; any part that threads change must be made for sharing.
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or set once and never changed.
        unsafe { self.0.load(Acquire).as_ref() }
    }
}

impl<T> HarnessTable<T> {
    /// A table of `len` zeroed entries. `T` must be valid when all its bytes are zero.
    pub fn zeroed(len: usize) -> HarnessTable<T> {
        HarnessTable::map(len, true, libc::MAP_PRIVATE)
    }

    /// Like [`HarnessTable::zeroed`], but in memory that does not count as anonymous: for tables that grow with the
    /// measured program.
    pub fn shared(len: usize) -> HarnessTable<T> {
        HarnessTable::map(len, true, libc::MAP_SHARED)
    }

    /// Like [`HarnessTable::zeroed`], but each page becomes resident when it is touched: for tables far larger than
    /// their use.
    pub fn reserved(len: usize) -> HarnessTable<T> {
        let table: HarnessTable<T> = HarnessTable::map(len, false, libc::MAP_PRIVATE);
        // SAFETY: advice about a mapping of ours.
        unsafe {
            libc::madvise(
                table.start.as_ptr().cast(),
                len * size_of::<T>(),
                libc::MADV_NOHUGEPAGE,
            )
        };
        table
    }

    fn map(len: usize, populated: bool, kind: i32) -> HarnessTable<T> {
        let bytes = len.saturating_mul(size_of::<T>()).max(1);
        let flags = if populated {
            libc::MAP_POPULATE
        } else {
            libc::MAP_NORESERVE
        };
        match anonymous(bytes, kind | flags) {
            Some(address) => {
                let start = address.cast();
                let range = match kind {
                    libc::MAP_SHARED => RangeKind::Shared,
                    _ => RangeKind::Harness,
                };
                published::know(address.addr().get(), bytes, range);
                let table = HarnessTable {
                    start,
                    len,
                    populated,
                };
                published::harness_grows(table.resident_bytes() as i64);
                table
            }
            None => fail!("oom", "no {bytes} bytes for a table of the harness"),
        }
    }

    /// The entries of one part of the table, if each part has `each` entries.
    pub fn part(&self, index: usize, each: usize) -> &[T] {
        &self[index * each..][..each]
    }

    /// Returns the table's bytes that are known to be resident: 0 for a reserved table, of which only its user can know
    /// that.
    fn resident_bytes(&self) -> usize {
        if self.populated {
            (self.len * size_of::<T>())
                .max(1)
                .next_multiple_of(sys::page_bytes())
        } else {
            0
        }
    }
}

impl<T> Drop for HarnessTable<T> {
    fn drop(&mut self) {
        let bytes = (self.len * size_of::<T>()).max(1);
        published::harness_grows(-(self.resident_bytes() as i64));
        published::forget(self.start.as_ptr().addr());
        // SAFETY: the mapping made by `map`, which is no longer borrowed.
        unsafe { libc::munmap(self.start.as_ptr().cast(), bytes) };
    }
}

impl<T> Deref for HarnessTable<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: page-aligned, zeroed, `len` entries that live as long as the table.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> DerefMut for HarnessTable<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

/// Keeps neighbours in separate cache lines, beyond the reach of the adjacent-line prefetcher.
#[repr(align(128))]
#[derive(Default)]
pub struct Padded<T>(pub T);

impl<T> Deref for Padded<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.0
    }
}

/// Resident memory of this process, in bytes.
#[derive(Clone, Copy, Default)]
pub struct Resident {
    /// The whole resident set.
    pub rss: u64,
    /// The resident set, with each shared page divided by the number of processes that share it.
    pub pss: u64,
    /// Anonymous memory in huge pages.
    pub huge: u64,
    /// The part that lies in no file on a disk: anonymous and shared memory, where some allocators keep their heap.
    pub fileless: u64,
}

impl Resident {
    /// Reads the page tables themselves. The cost grows with the resident set, so this is used while the set is small
    /// or nothing is timed. If the kernel does not offer this, its counters are read instead.
    pub fn now() -> Resident {
        let mut room = [0u8; 4096];
        match read_file(c"/proc/self/smaps_rollup", &mut room) {
            Some(text) => {
                let bytes = |key| kib(text, key).unwrap_or(0) << 10;
                let (rss, pss) = (bytes("Rss:"), bytes("Pss:"));
                // Proportional shares are counted, since a page of shared memory that is mapped at two places is
                // resident only once.
                let shared = kib(text, "Pss_Shmem:")
                    .or_else(|| proc_kib(c"/proc/self/status", "RssShmem:"))
                    .unwrap_or(0);
                let fileless = bytes("Anonymous:") + (shared << 10);
                Resident {
                    rss,
                    pss,
                    huge: bytes("AnonHugePages:"),
                    fileless,
                }
            }
            None => Resident::counted(),
        }
    }

    /// Reads the kernel's counters: cheap, but on some kernels off by what each CPU has not reported yet. Leaves `pss`
    /// and `huge` at 0.
    pub fn counted() -> Resident {
        let mut room = [0u8; 4096];
        let text = read_file(c"/proc/self/status", &mut room).unwrap_or_default();
        let bytes = |key| kib(text, key).unwrap_or(0) << 10;
        Resident {
            rss: bytes("VmRSS:"),
            fileless: bytes("RssAnon:") + bytes("RssShmem:"),
            ..Resident::default()
        }
    }
}

/// A mapping of this process that belongs to no file on a disk.
pub struct FilelessMapping {
    pub start: usize,
    /// The mapping's resident bytes, each page of shared memory divided by the number of processes that share it.
    pub bytes: u64,
}

/// Passes each mapping that belongs to no file on a disk to `take`, except for stacks that the kernel made.
pub fn fileless_mappings(mut take: impl FnMut(FilelessMapping)) {
    let mut mapping = None;
    let Some(smaps) = sys::RawFile::open(c"/proc/self/smaps") else {
        return;
    };
    smaps.lines(|line| {
        if let Some((start, name)) = mapping_head(line) {
            mapping = counted_by(name).map(|key| (start, key));
        } else if let Some((start, key)) = mapping
            && let Some(kib) = kib(line, key)
        {
            let bytes = kib << 10;
            take(FilelessMapping { start, bytes });
        }
    });
}

/// Start and name of a mapping, if this is the mapping's first line in `smaps`.
fn mapping_head(line: &str) -> Option<(usize, &str)> {
    let (range, rest) = line.split_once(' ')?;
    let (start, _) = range.split_once('-')?;
    let name = rest.splitn(5, ' ').nth(4)?.trim_start();
    Some((usize::from_str_radix(start, 16).ok()?, name))
}

/// The key of the line in `smaps` with the resident bytes of a mapping of this name; `None` if such a mapping does not
/// count.
fn counted_by(name: &str) -> Option<&'static str> {
    let has = |prefixes: &[&str]| prefixes.iter().any(|prefix| name.starts_with(prefix));
    if name.is_empty() || has(&["[heap]", "[anon:"]) {
        Some("Anonymous:")
    } else if has(&["/memfd:", "/dev/zero", "/dev/shm/", "/SYSV", "[anon_shmem:"]) {
        Some("Pss:")
    } else {
        None
    }
}

/// Returns the bytes of this process's address space, touched or not.
pub fn mapped_bytes() -> u64 {
    proc_kib(c"/proc/self/status", "VmSize:").unwrap_or(0) << 10
}

/// Makes the kernel forget the highest resident set so far. If that is not allowed, the peak is that of the whole
/// process.
pub fn forget_peak() {
    // SAFETY: plain system calls, with texts that end with a zero.
    unsafe {
        let file = libc::open(
            c"/proc/self/clear_refs".as_ptr(),
            libc::O_WRONLY | libc::O_CLOEXEC,
        );
        if file >= 0 {
            libc::write(file, c"5".as_ptr().cast(), 1);
            libc::close(file);
        }
    }
}

/// Returns the highest resident set since [`forget_peak`].
pub fn peak_resident_bytes() -> u64 {
    proc_kib(c"/proc/self/status", "VmHWM:").unwrap_or(0) << 10
}

/// Returns the bytes that only this process maps and that it has written to: in a forked process, those that it has
/// copied. `None` if the kernel does not report them.
pub fn private_dirty_bytes() -> Option<u64> {
    let mut room = [0u8; 4096];
    private_dirty_in(read_file(c"/proc/self/smaps_rollup", &mut room)?)
}

fn private_dirty_in(rollup: &str) -> Option<u64> {
    Some(kib(rollup, "Private_Dirty:")? << 10)
}

/// The kernel's estimate of memory available without swapping.
pub fn available_bytes() -> Option<u64> {
    proc_kib(c"/proc/meminfo", "MemAvailable:").map(|kib| kib << 10)
}

/// Returns the number of KiB after `key` in a file of the proc file system.
pub fn proc_kib(path: &CStr, key: &str) -> Option<u64> {
    let mut room = [0u8; 4096];
    kib(read_file(path, &mut room)?, key)
}

fn kib(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| {
        line.strip_prefix(key)?
            .split_whitespace()
            .next()?
            .parse()
            .ok()
    })
}

/// Reads a small file of the kernel without using the heap.
pub fn read_file<'r>(path: &CStr, room: &'r mut [u8]) -> Option<&'r str> {
    let len = sys::RawFile::open(path)?.read(room);
    core::str::from_utf8(&room[..len]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copied_memory_that_the_kernel_does_not_tell_is_not_0() {
        let rollup = "Rss:  20 kB\nPrivate_Dirty:  8 kB\n";
        assert_eq!(private_dirty_in(rollup), Some(8192));
        assert_eq!(private_dirty_in("Private_Dirty: 0 kB\n"), Some(0));
        assert_eq!(private_dirty_in("Rss: 20 kB\n"), None);
    }
}
