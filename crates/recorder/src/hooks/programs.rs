//! Programs that this one executes or spawns. A recorded program has a capture of its own; a file of heapmark's lists all
//! programs, so that those without a capture are known. A child calls this between fork and exec, perhaps on its parent's
//! memory and stack: nothing is changed here, and nothing allocated.

use crate::next::{CStringArray, Spawn};
use crate::program_log::note;
use crate::thread::found;
use core::ffi::{c_char, c_int, c_void};

unsafe extern "C" {
    static environ: CStringArray;
}

/// Executes a program; returns only if that fails.
unsafe fn execute(path: *const c_char, words: CStringArray, call: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: no arguments; valid if the program's own call is.
    unsafe {
        let pid = libc::syscall(libc::SYS_getpid) as c_int;
        note(b"+", pid, path, words);
        let failed = call();
        note(b"-", pid, path, words);
        failed
    }
}

/// # Safety
/// The requirements of POSIX for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execve(
    path: *const c_char,
    arguments: CStringArray,
    words: CStringArray,
) -> c_int {
    let Some(call) = found().execve else {
        return -1;
    };
    // SAFETY: valid if the program's own call is.
    unsafe { execute(path, words, || call(path, arguments, words)) }
}

/// # Safety
/// The requirements of POSIX for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execv(path: *const c_char, arguments: CStringArray) -> c_int {
    let Some(call) = found().execv else { return -1 };
    // SAFETY: valid if the program's own call is.
    unsafe { execute(path, environ, || call(path, arguments)) }
}

/// # Safety
/// The requirements of POSIX for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvp(file: *const c_char, arguments: CStringArray) -> c_int {
    let Some(call) = found().execvp else {
        return -1;
    };
    // SAFETY: valid if the program's own call is.
    unsafe { execute(file, environ, || call(file, arguments)) }
}

/// # Safety
/// The requirements of glibc for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn execvpe(
    file: *const c_char,
    arguments: CStringArray,
    words: CStringArray,
) -> c_int {
    let Some(call) = found().execvpe else {
        return -1;
    };
    // SAFETY: valid if the program's own call is.
    unsafe { execute(file, words, || call(file, arguments, words)) }
}

unsafe fn spawn(
    call: Option<Spawn>,
    pid: *mut libc::pid_t,
    file: *const c_char,
    how: [*const c_void; 2],
    both: [CStringArray; 2],
) -> c_int {
    let Some(call) = call else {
        return libc::ENOSYS;
    };
    let mut child = 0;
    // SAFETY: valid if the program's own call is.
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
/// The requirements of POSIX for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawn(
    pid: *mut libc::pid_t,
    path: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: CStringArray,
    words: CStringArray,
) -> c_int {
    // SAFETY: valid if the program's own call is.
    unsafe {
        spawn(
            found().posix_spawn,
            pid,
            path,
            [actions, attributes],
            [arguments, words],
        )
    }
}

/// # Safety
/// The requirements of POSIX for this function hold.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_spawnp(
    pid: *mut libc::pid_t,
    file: *const c_char,
    actions: *const c_void,
    attributes: *const c_void,
    arguments: CStringArray,
    words: CStringArray,
) -> c_int {
    // SAFETY: valid if the program's own call is.
    unsafe {
        spawn(
            found().posix_spawnp,
            pid,
            file,
            [actions, attributes],
            [arguments, words],
        )
    }
}
