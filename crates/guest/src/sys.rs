//! System calls without the C library in between: in the measured process, any function of the C library may belong to
//! another library, and a measured number must not pass through that library.

use core::arch::asm;
use core::ffi::{CStr, c_long};

/// Makes a system call of up to six arguments; an error is returned as its negative number.
///
/// # Safety
/// The kernel may read and write whatever the arguments point to.
#[inline(always)]
pub unsafe fn call<const GIVEN: usize>(number: c_long, given: [usize; GIVEN]) -> isize {
    let mut args = [0; 6];
    args[..GIVEN].copy_from_slice(&given);
    let result;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel preserves all registers but these three; the caller guarantees the rest.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") args[0], in("rsi") args[1], in("rdx") args[2],
            in("r10") args[3], in("r8") args[4], in("r9") args[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the kernel preserves all registers but the result's; the caller guarantees the rest.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") args[0] => result,
            in("x1") args[1], in("x2") args[2], in("x3") args[3], in("x4") args[4], in("x5") args[5],
            options(nostack),
        );
    }
    result
}

/// A file that is being read.
pub struct RawFile(usize);

impl RawFile {
    /// Opens a file for reading; `None` if it cannot be opened.
    pub fn open(path: &CStr) -> Option<RawFile> {
        let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as usize;
        // SAFETY: the kernel reads the path.
        let file = unsafe {
            call(
                libc::SYS_openat,
                [libc::AT_FDCWD as usize, path.as_ptr().addr(), flags],
            )
        };
        (file >= 0).then_some(RawFile(file as usize))
    }

    /// Reads the next bytes; returns 0 at the end of the file, and if reading fails.
    pub fn read(&self, room: &mut [u8]) -> usize {
        // SAFETY: the kernel writes into the buffer.
        unsafe {
            call(
                libc::SYS_read,
                [self.0, room.as_mut_ptr().addr(), room.len()],
            )
        }
        .max(0) as usize
    }

    /// Passes each line to `take`, except for lines longer than a few KiB.
    pub fn lines(&self, mut take: impl FnMut(&str)) {
        let (mut room, mut kept) = ([0u8; 8192], 0);
        loop {
            let read = self.read(&mut room[kept..]);
            if read == 0 {
                return;
            }
            let text = &room[..kept + read];
            let whole = text
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |place| place + 1);
            text[..whole]
                .split(|byte| *byte == b'\n')
                .filter_map(|line| core::str::from_utf8(line).ok())
                .for_each(&mut take);
            let rest = if whole == 0 { 0 } else { text.len() - whole };
            room.copy_within(whole..whole + rest, 0);
            kept = rest;
        }
    }

    /// Fills the buffer from this offset on; `false` if there are too few bytes or reading fails.
    pub fn fill_from(&self, at: usize, room: &mut [u64]) -> bool {
        let bytes = size_of_val(room);
        // SAFETY: the kernel writes into the buffer.
        unsafe {
            call(
                libc::SYS_pread64,
                [self.0, room.as_mut_ptr().addr(), bytes, at],
            ) == bytes as isize
        }
    }
}

impl Drop for RawFile {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, and no longer used.
        unsafe { call(libc::SYS_close, [self.0]) };
    }
}

/// Sleeps for this long; a signal may end the sleep earlier.
pub fn sleep_ns(ns: u64) {
    let time = timespec(ns);
    // SAFETY: the kernel reads a local.
    unsafe { call(libc::SYS_nanosleep, [(&raw const time).addr()]) };
}

/// Sleeps until the monotonic clock shows this time, whatever signals come.
pub fn sleep_until(ns: u64) {
    let time = timespec(ns);
    let until = (&raw const time).addr();
    let (clock, flags) = (libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME);
    // SAFETY: the kernel reads a local.
    while unsafe {
        call(
            libc::SYS_clock_nanosleep,
            [clock as usize, flags as usize, until],
        )
    } == -libc::EINTR as isize
    {}
}

fn timespec(ns: u64) -> libc::timespec {
    libc::timespec {
        tv_sec: (ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    }
}

/// Like [`sleep_ns`], but in milliseconds.
pub fn sleep_ms(ms: u64) {
    sleep_ns(ms * 1_000_000);
}

/// From now on, sleeps of the calling thread end on time: otherwise the kernel may end a sleep up to 50 us late, so
/// that several sleeps can end at once.
pub fn wake_punctually() {
    // SAFETY: no pointers.
    unsafe { call(libc::SYS_prctl, [libc::PR_SET_TIMERSLACK as usize, 1]) };
}

/// Sleeps while the word has this value, or until woken; may return at any time.
pub fn sleep_on(word: *mut u32, value: u32) {
    futex(word, libc::FUTEX_WAIT, value);
}

/// Wakes up to this many of the threads that sleep on the word.
pub fn wake(word: *mut u32, most: u32) {
    futex(word, libc::FUTEX_WAKE, most);
}

fn futex(word: *mut u32, operation: i32, value: u32) {
    let operation = (operation | libc::FUTEX_PRIVATE_FLAG) as usize;
    // SAFETY: the kernel reads a word of the caller's. No timeout is given.
    unsafe { call(libc::SYS_futex, [word.addr(), operation, value as usize]) };
}

/// Yields the CPU.
pub fn give_way() {
    // SAFETY: no pointers.
    unsafe { call(libc::SYS_sched_yield, []) };
}

/// Page size of this system: 4096 bytes, or 16 or 64 KiB on some ARM machines.
pub fn page_bytes() -> usize {
    // SAFETY: reads the auxiliary vector.
    match unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize {
        0 => 4096,
        bytes => bytes,
    }
}
