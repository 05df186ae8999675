//! The file that a process writes, by direct system calls: the C library's functions are thread
//! cancellation points, and a preloaded library may replace them. No descriptor is kept: the file
//! is opened for each chunk, by its path, and only if it is still the same file. So a program that
//! closes all unknown descriptors closes none of ours, and nothing is ever written into a file of
//! its own.
//!
//! A chunk is filled with zeros before it is mapped: a full disk must be an error here, not a
//! signal in the program. And the kernel maps a page that it already holds as dirty three times as
//! fast as one for which it has to ask the file system.

use crate::decimal::decimal;
use crate::layout::{CaptureFile, PATH_BYTES};
use crate::lent::{self, Lender};
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_long};
use core::sync::atomic::Ordering;
use heapmark_wire::capture::{CHUNK_BYTES, FIRST_BYTES, Header};

/// The reason why there is no further chunk. The word is stored in the capture and shown to the
/// user.
pub type Reason = &'static str;

impl CaptureFile {
    /// Creates `STEM.PID.cap`, or `STEM.PID.2.cap` if that exists. If this process may not create it, heapmark does; then
    /// another file may lie at the path, and only the inode identifies the file.
    pub fn create(&mut self, stem: &[u8], pid: u32) -> Result<(), Reason> {
        // Without space for any event there is no recording.
        if file_size_limit() < (CHUNK_BYTES + FIRST_BYTES) as u64 {
            return Err("file-size-limit");
        }
        for attempt in 1..1000 {
            let mut path = Path {
                bytes: &mut self.path,
                length: 0,
            };
            path.add(stem)?.add(b".")?.add_number(pid)?;
            if attempt > 1 {
                path.add(b".")?.add_number(attempt)?;
            }
            path.add(b".cap\0")?;
            // Only the owner may read the file: a command line may hold secrets.
            let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
            let descriptor = match open(&self.path, flags) {
                Err(libc::EEXIST) => continue,
                Err(error) if is_forbidden(error) => lend(0).ok_or(word(error))?,
                opened => opened.map_err(word)?,
            };
            (self.device, self.inode) = identity(&descriptor).ok_or("no-file")?;
            return Ok(());
        }
        Err("no-file")
    }

    /// Undoes [`CaptureFile::create`], if the path is that of the file that was created.
    pub fn remove(&self) {
        let there = open(&self.path, libc::O_RDONLY | libc::O_CLOEXEC);
        if there.is_ok_and(|there| identity(&there) == Some((self.device, self.inode))) {
            // SAFETY: the path is a C string.
            unsafe { libc::syscall(libc::SYS_unlinkat, libc::AT_FDCWD, self.path.as_ptr(), 0) };
        }
    }

    /// Maps a fresh, zeroed chunk of this many bytes, if all chunks together then have at most
    /// `most` bytes.
    pub fn chunk(&self, bytes: usize, most: u64) -> Result<Fresh, Reason> {
        let before = self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        if before + bytes as u64 > most {
            return Err("max-bytes");
        }
        let place = self.next.fetch_add(1, Ordering::Relaxed);
        let descriptor = match open(&self.path, libc::O_RDWR | libc::O_CLOEXEC) {
            Err(error) if is_forbidden(error) => lend(self.inode).ok_or(word(error))?,
            opened => opened.map_err(word)?,
        };
        if identity(&descriptor) != Some((self.device, self.inode)) {
            return Err("file-gone");
        }
        fill(&descriptor, place, bytes)?;
        // SAFETY: a new mapping.
        let chunk = unsafe {
            libc::syscall(
                libc::SYS_mmap,
                0,
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                descriptor.0,
                offset(place),
            )
        };
        if chunk == -1 {
            Err(word(errno()))
        } else {
            Ok(Fresh {
                at: chunk as *mut u8,
                place,
                bytes: bytes as u32,
            })
        }
    }
}

/// A chunk that is not used yet.
pub struct Fresh {
    pub at: *mut u8,
    /// The chunk's number in the file.
    pub place: u32,
    pub bytes: u32,
}

/// Unmaps a chunk; its contents stay in the file.
///
/// # Safety
/// The chunk is the recorder's own, and no longer used.
pub unsafe fn unmap(chunk: *mut Header) {
    // SAFETY: guaranteed by the caller.
    unsafe { libc::syscall(libc::SYS_munmap, chunk, (*chunk).bytes()) };
}

/// Reads as much of the start of a file as fits; empty if the file cannot be read.
pub fn read<'a>(path: &CStr, room: &'a mut [u8]) -> &'a [u8] {
    let Ok(descriptor) = open(path.to_bytes_with_nul(), libc::O_RDONLY | libc::O_CLOEXEC) else {
        return &[];
    };
    let mut length = 0;
    while length < room.len() {
        let rest = &mut room[length..];
        // SAFETY: the buffer is ours.
        match unsafe { libc::syscall(libc::SYS_read, descriptor.0, rest.as_mut_ptr(), rest.len()) }
        {
            bytes @ 1.. => length += bytes as usize,
            _ => break,
        }
    }
    &room[..length]
}

/// An open file that is closed when dropped.
pub struct Descriptor(pub c_long);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the descriptor is the recorder's own.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// Opens the file at `path`, which ends with a zero byte.
fn open(path: &[u8], flags: i32) -> Result<Descriptor, i32> {
    // SAFETY: the path is a C string.
    uninterrupted(|| unsafe {
        libc::syscall(
            libc::SYS_openat,
            libc::AT_FDCWD,
            path.as_ptr(),
            flags,
            0o600,
        )
    })
    .map(Descriptor)
}

/// Returns whether the error means that this process lacks the rights, perhaps only by now: heapmark may
/// have them.
fn is_forbidden(error: i32) -> bool {
    matches!(error, libc::EACCES | libc::EPERM)
}

fn lend(inode: u64) -> Option<Descriptor> {
    lent::CAPTURES
        .ask(inode)
        .map(|descriptor| Descriptor(descriptor.into()))
}

/// Opens the file that heapmark hands to all processes, for writing at its end; borrows it if this
/// process may not open it, or if another file lies there.
///
/// `path` ends with a zero byte.
pub fn handed(path: &[u8], device_and_inode: (u64, u64), lender: &Lender) -> Option<Descriptor> {
    // A FIFO at this path must not make the process wait for a reader.
    let there = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC | there;
    open(path, flags)
        .ok()
        .filter(|file| identity(file) == Some(device_and_inode))
        .or_else(|| lender.ask(0).map(|file| Descriptor(file.into())))
}

/// Returns the device and the inode of an open file. A separate function: the buffer that the
/// kernel fills leaves the stack before anything else is done.
#[inline(never)]
fn identity(descriptor: &Descriptor) -> Option<(u64, u64)> {
    // SAFETY: zeros are a valid value of a structure of numbers, which `fstat` fills.
    unsafe {
        let mut found: libc::stat = core::mem::zeroed();
        (libc::fstat(descriptor.0 as i32, &mut found) == 0).then_some((found.st_dev, found.st_ino))
    }
}

/// Makes a system call, and repeats it if a stop interrupted it: a thread cannot prevent stops.
fn uninterrupted(call: impl Fn() -> c_long) -> Result<c_long, i32> {
    loop {
        match call() {
            -1 if errno() == libc::EINTR => {}
            -1 => return Err(errno()),
            result => return Ok(result),
        }
    }
}

/// Writes zeros, which reserves the chunk at `place` on the disk. Writes as much at a time as
/// possible: small writes get small pages, which are mapped one by one.
fn fill(descriptor: &Descriptor, place: u32, bytes: usize) -> Result<(), Reason> {
    // Beyond the limit the kernel would send a signal.
    if offset(place) + bytes as u64 > file_size_limit() {
        return Err("file-size-limit");
    }
    let mut filled = 0;
    while filled < bytes {
        let (zeros, at) = (
            ZEROS.0.get().cast::<u8>().wrapping_add(filled),
            offset(place) + filled as u64,
        );
        // SAFETY: reads zeros that are never written; the chunk is ours and not used yet.
        let write = || unsafe {
            libc::syscall(libc::SYS_pwrite64, descriptor.0, zeros, bytes - filled, at)
        };
        match uninterrupted(write).map_err(word)? {
            0 => return Err("no-space"),
            bytes => filled += bytes as usize,
        }
    }
    Ok(())
}

/// Zeros that are never written: the kernel maps one page for all of them.
struct Zeros(UnsafeCell<[u8; CHUNK_BYTES]>);

// SAFETY: the bytes are never written.
unsafe impl Sync for Zeros {}

static ZEROS: Zeros = Zeros(UnsafeCell::new([0; CHUNK_BYTES]));

fn file_size_limit() -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: fills a local variable.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if known { limit.rlim_cur } else { u64::MAX }
}

fn offset(chunk: u32) -> u64 {
    u64::from(chunk) * CHUNK_BYTES as u64
}

fn word(error: i32) -> Reason {
    match error {
        libc::ENOSPC => "no-space",
        libc::EDQUOT => "quota",
        libc::EFBIG => "file-size-limit",
        libc::EACCES | libc::EPERM | libc::EROFS => "no-permission",
        libc::ENOENT | libc::ENOTDIR => "file-gone",
        libc::EMFILE | libc::ENFILE => "no-descriptor",
        libc::ENOMEM => "no-memory",
        _ => "no-file",
    }
}

fn errno() -> i32 {
    // SAFETY: the variable belongs to the calling thread.
    unsafe { *libc::__errno_location() }
}

/// A path under construction.
struct Path<'a> {
    bytes: &'a mut [u8; PATH_BYTES],
    length: usize,
}

impl Path<'_> {
    fn add(&mut self, part: &[u8]) -> Result<&mut Self, Reason> {
        let end = self.length + part.len();
        self.bytes
            .get_mut(self.length..end)
            .ok_or("long-path")?
            .copy_from_slice(part);
        self.length = end;
        Ok(self)
    }

    fn add_number(&mut self, number: u32) -> Result<&mut Self, Reason> {
        self.add(decimal(number.into(), &mut [0; 20]))
    }
}
