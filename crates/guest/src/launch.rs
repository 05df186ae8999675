//! `heapmark-guest launch FD NAME=VALUE... -- COMMAND ARGUMENT...`: runs another program as a child of this small process
//! and writes what the kernel counted for it to a file. What `wait4` calls the peak resident set covers what a process was
//! before `exec`, too; a child of heapmark itself would have been a copy of heapmark.

use crate::clock::now_ns;
use crate::fail;
use core::ffi::{CStr, c_char, c_int};
use core::fmt::{self, Write};
use heapmark_wire::Launched;

/// Runs the command and returns this process's exit code: 0 where the result was written.
///
/// # Safety
/// `argv` must be what the C runtime passed to `main`.
pub unsafe fn main(argc: c_int, argv: *const *const c_char) -> c_int {
    let count = argc.max(0) as usize;
    // SAFETY: the C runtime passed `argc` valid strings.
    let argument = |index: usize| unsafe { CStr::from_ptr(*argv.add(index)) };
    let separator = (3..count).find(|index| argument(*index) == c"--");
    let file = argument(2).to_str().ok().and_then(|text| text.parse().ok());
    let (Some(separator), Some(file)) = (separator.filter(|place| place + 1 < count), file) else {
        return fail::usage();
    };
    // SAFETY: the environment's strings stand in a row before the separator, the command's behind it up to the null that
    // ends `argv`; the array is this process's to change.
    let (environment, command) = unsafe {
        *argv.add(separator).cast_mut() = core::ptr::null();
        (argv.add(3), argv.add(separator + 1))
    };
    // SAFETY: a plain system call. The command inherits nothing of ours.
    unsafe { libc::fcntl(file, libc::F_SETFD, libc::FD_CLOEXEC) };
    let start_ns = now_ns();
    // SAFETY: plain system calls; the child only executes.
    let (child, status, usage) = unsafe {
        let parent = libc::getpid();
        let child = libc::fork();
        if child == 0 {
            execute(parent, command, environment, file);
        }
        let (mut status, mut usage) = (0, core::mem::zeroed());
        (child, libc::wait4(child, &mut status, 0, &mut usage), (status, usage))
    };
    let wall_ns = now_ns() - start_ns;
    if child < 0 || status != child {
        return 1;
    }
    let (status, usage) = usage;
    let launched = account(status, wall_ns, &usage);
    c_int::from(write!(File(file), "{launched}").is_err())
}

/// What `wait4` told of a process that took this long.
pub fn account(status: c_int, wall_ns: u64, usage: &libc::rusage) -> Launched {
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
    Launched {
        errno: 0,
        status,
        wall_ns,
        user_ns: ns(usage.ru_utime),
        sys_ns: ns(usage.ru_stime),
        minor_faults: usage.ru_minflt as u64,
        major_faults: usage.ru_majflt as u64,
        voluntary_switches: usage.ru_nvcsw as u64,
        involuntary_switches: usage.ru_nivcsw as u64,
        max_rss_bytes: (usage.ru_maxrss as u64) << 10,
    }
}

/// Becomes the command; where that fails, says why in the file.
unsafe fn execute(parent: c_int, command: *const *const c_char, environment: *const *const c_char, file: c_int) -> ! {
    // SAFETY: plain system calls on the caller's strings.
    unsafe {
        // Whoever ends this launcher ends its child.
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        if libc::getppid() == parent {
            libc::execve(*command, command, environment);
            let _ = writeln!(File(file), "errno={}", *libc::__errno_location());
        }
        libc::_exit(127)
    }
}

struct File(c_int);

impl Write for File {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // SAFETY: writes a text to a file that heapmark opened for this.
        let written = unsafe { libc::write(self.0, text.as_ptr().cast(), text.len()) };
        if written == text.len() as isize { Ok(()) } else { Err(fmt::Error) }
    }
}
