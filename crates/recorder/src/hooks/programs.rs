//! Programs that this one executes or spawns. A recorded program has a capture of its own; for
//! those that leave none, a file of heapmark's lists which there were. A child calls this between
//! fork and exec, perhaps on its parent's memory and stack: nothing is changed here, and nothing
//! allocated.

use crate::local::Errno;
use crate::metadata::decimal;
use crate::next::found;
use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use heapmark_wire::lent::LOG;

type Words = *const *const c_char;

unsafe extern "C" {
    static environ: Words;
}

const PATH_BYTES: usize = 256;

struct Log {
    known: AtomicBool,
    path: UnsafeCell<[u8; PATH_BYTES]>,
}

// SAFETY: written once, when there is one thread.
unsafe impl Sync for Log {}

static FILE: Log = Log { known: AtomicBool::new(false), path: UnsafeCell::new([0; PATH_BYTES]) };

/// Reads the environment; once per program.
pub fn configure() {
    // SAFETY: `getenv` returns a C string, and there is one thread.
    unsafe {
        let value = libc::getenv(LOG.as_ptr());
        if !value.is_null() && CStr::from_ptr(value).count_bytes() < PATH_BYTES {
            FILE.path.get().cast::<c_char>().copy_from(value, CStr::from_ptr(value).count_bytes());
            FILE.known.store(true, Ordering::Release);
        }
    }
}

/// Writes `+PID 1 PATH` and a zero byte if the program gets the recorder, with `0` if it does not;
/// with `-PID` if it was not executed after all.
unsafe fn note(sign: &[u8], pid: c_int, path: *const c_char, words: Words) {
    if !FILE.known.load(Ordering::Acquire) || path.is_null() {
        return;
    }
    let _errno = Errno::keep();
    // SAFETY: plain system calls; the program's own strings.
    unsafe {
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
        let file = libc::syscall(libc::SYS_openat, libc::AT_FDCWD, FILE.path.get(), flags, 0);
        if file < 0 {
            return;
        }
        let mut digits = [0; 20];
        let given: &[u8] = if gets_recorder(words) { b" 1 " } else { b" 0 " };
        let part = |bytes: &[u8]| libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let path = CStr::from_ptr(path).to_bytes_with_nul();
        let parts = [part(sign), part(decimal(pid as u64, &mut digits)), part(given), part(path)];
        libc::syscall(libc::SYS_writev, file, parts.as_ptr(), parts.len());
        libc::syscall(libc::SYS_close, file);
    }
}

unsafe fn gets_recorder(words: Words) -> bool {
    // SAFETY: an array of C strings with a null at its end, if there is one.
    unsafe {
        let has = |name: &[u8]| {
            let mut at = words;
            while !at.is_null() && !(*at).is_null() {
                if CStr::from_ptr(*at).to_bytes().starts_with(name) {
                    return true;
                }
                at = at.add(1);
            }
            false
        };
        has(b"LD_PRELOAD=") && has(b"HEAPMARK_RECORD_TO=")
    }
}

/// Executes a program; returns only if that fails.
unsafe fn execute(path: *const c_char, words: Words, call: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: no arguments; as the program's call.
    unsafe {
        let pid = libc::syscall(libc::SYS_getpid) as c_int;
        note(b"+", pid, path, words);
        let failed = call();
        note(b"-", pid, path, words);
        failed
    }
}

/// # Safety
/// As POSIX defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(path: *const c_char, arguments: Words, words: Words) -> c_int {
    let Some(call) = found().execve else { return -1 };
    // SAFETY: as the program's call.
    unsafe { execute(path, words, || call(path, arguments, words)) }
}

/// # Safety
/// As POSIX defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, arguments: Words) -> c_int {
    let Some(call) = found().execv else { return -1 };
    // SAFETY: as the program's call.
    unsafe { execute(path, environ, || call(path, arguments)) }
}

/// # Safety
/// As POSIX defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, arguments: Words) -> c_int {
    let Some(call) = found().execvp else { return -1 };
    // SAFETY: as the program's call.
    unsafe { execute(file, environ, || call(file, arguments)) }
}

/// # Safety
/// As glibc defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(file: *const c_char, arguments: Words, words: Words) -> c_int {
    let Some(call) = found().execvpe else { return -1 };
    // SAFETY: as the program's call.
    unsafe { execute(file, words, || call(file, arguments, words)) }
}

/// The type of `posix_spawn` and `posix_spawnp`.
pub type Spawn =
    unsafe extern "C" fn(*mut libc::pid_t, *const c_char, *const c_void, *const c_void, Words, Words) -> c_int;

unsafe fn spawn(
    call: Option<Spawn>,
    pid: *mut libc::pid_t,
    file: *const c_char,
    how: [*const c_void; 2],
    both: [Words; 2],
) -> c_int {
    let Some(call) = call else { return libc::ENOSYS };
    let mut child = 0;
    // SAFETY: as the program's call.
    unsafe {
        let failed = call(&mut child, file, how[0], how[1], both[0], both[1]);
        if failed == 0 {
            note(b"+", child, file, both[1]);
            if !pid.is_null() {
                *pid = child;
            }
        }
        failed
    }
}

/// # Safety
/// As POSIX defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Words,
    words: Words,
) -> c_int {
    // SAFETY: as the program's call.
    unsafe { spawn(found().posix_spawn, pid, path, [actions, attributes], [arguments, words]) }
}

/// # Safety
/// As POSIX defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut libc::pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: Words,
    words: Words,
) -> c_int {
    // SAFETY: as the program's call.
    unsafe { spawn(found().posix_spawnp, pid, file, [actions, attributes], [arguments, words]) }
}
