//! What heapmark finds around itself before a command begins: stdout, the limits of its process, and
//! the programs in `PATH`.

use super::Exit;
use crate::build::trusted_path;
use anyhow::{Result, bail};
use rustix::process::{Resource, getrlimit};
use signal_hook::consts::SIGABRT;
use std::io::{self, Stdout};
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether stdout was closed when this process began: Rust then opens `/dev/null` in its place.
static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the dynamic linker calls such functions once, before `main`.
#[used]
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: a plain system call.
    let is_closed = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) } < 0;
    CLOSED.store(is_closed, Ordering::Relaxed);
}

/// Stdout; fails if it was closed when this process began.
pub fn stdout() -> Result<Stdout> {
    if CLOSED.load(Ordering::Relaxed) {
        bail!("stdout is closed, so nothing can be printed: use >/dev/null if it is not wanted");
    }
    Ok(io::stdout())
}

/// The least stack, in bytes: parsing the command line needs almost as much.
const LEAST_STACK: u64 = 512 << 10;

/// Turns conditions that would end heapmark without a message into errors, and moves the folders in which another user could
/// replace programs to the end of `PATH`.
///
/// # Safety
///
/// No other thread may exist yet.
pub unsafe fn prepare() -> Result<()> {
    if let Some(bytes) = getrlimit(Resource::Stack).current
        && bytes < LEAST_STACK
    {
        bail!(
            "the limit of its stack is {} KiB: heapmark needs {} (ulimit -s)",
            bytes >> 10,
            LEAST_STACK >> 10
        );
    }
    let out_of_memory = || {
        // SAFETY: plain system calls. Rust aborts if it gets no memory, after printing a message about that.
        unsafe {
            let words = b"heapmark: ended by that; if it is memory, raise its limit (ulimit -v)\n";
            libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len());
            libc::_exit(Exit::Failed as i32)
        }
    };
    // SAFETY: the function makes only calls that a signal's handler may make.
    unsafe { signal_hook::low_level::register(SIGABRT, out_of_memory)? };
    let (path, weaknesses) = trusted_path();
    if !weaknesses.is_empty() {
        for why in weaknesses {
            say!("warning: PATH has {why}: programs are looked for there last (chmod go-w, chown)");
        }
        // SAFETY: the caller promises that no other thread exists yet.
        unsafe { std::env::set_var("PATH", path) };
    }
    Ok(())
}

/// The least limit on open files: with fewer, not even a compiler is found.
const LEAST_FILES: u64 = 16;

/// Fails if the limit on open files is very low: later errors would not name that as the cause.
pub fn refuse_few_files() -> Result<()> {
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < LEAST_FILES => {
            refuse!("ulimit -n is {most}: heapmark needs {LEAST_FILES} open files at least")
        }
        _ => Ok(()),
    }
}
