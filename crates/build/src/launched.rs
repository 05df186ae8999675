//! Runs the commands of a build below the guest's launcher, so that they and all processes that they started end with heapmark, however it
//! ends: a compiler that keeps running would take CPU time from the next run.

use super::paths::in_path;
use anyhow::{Context, Result};
use heapmark_wire::Launched;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{FdFlags, fcntl_setfd};
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Bytes of a command's output that are kept from its beginning and from its end.
const FIRST_BYTES: usize = 1 << 20;
const LAST_BYTES: usize = 1 << 16;

/// The environment variables that a command gets besides those set for it.
#[derive(Clone, Copy, PartialEq)]
pub enum Environment {
    /// The caller's variables.
    Inherited,
    /// No variables besides those set for the command.
    Own,
}

/// Runs a command to its end; returns its output, without the middle if it is long. `log` gets the output while the command runs.
pub fn run(
    launcher: &Path,
    command: &Command,
    environment: Environment,
    log: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(ExitStatus, String)> {
    let name = command.get_program();
    let starting = || format!("starting {command:?}");
    let program = match name.to_str().filter(|name| !name.contains('/')) {
        Some(name) => in_path(name)
            .ok_or_else(|| io::Error::from(ErrorKind::NotFound))
            .with_context(starting)?,
        None => name.into(),
    };
    let mut account = memfd_create("heapmark-account", MemfdFlags::CLOEXEC)
        .map(File::from)
        .context("cannot create a memory file")?;
    let (words, writer) = io::pipe().with_context(starting)?;
    let mut launched = Command::new(launcher);
    let descriptor = account.as_raw_fd();
    launched
        .arg("launch")
        .arg(descriptor.to_string())
        .args(["inherit", "--"])
        .arg(program)
        .args(command.get_args())
        .stdin(Stdio::null())
        .stdout(writer.try_clone().with_context(starting)?)
        .stderr(writer);
    if environment == Environment::Own {
        launched.env_clear();
    }
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => launched.env(name, value),
            None => launched.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        launched.current_dir(folder);
    }
    // SAFETY: one system call, on a descriptor that `account` keeps open.
    unsafe {
        launched.pre_exec(move || {
            let account = BorrowedFd::borrow_raw(descriptor);
            Ok(fcntl_setfd(account, FdFlags::empty())?)
        })
    };
    let mut child = spawn_launcher(&mut launched)?;
    // Dropping the command closes this process's end of the pipe.
    drop(launched);
    let text = gather(words, log);
    let launcher_status = child.wait().with_context(starting)?;
    account.rewind().context("cannot read a memory file")?;
    let account = io::read_to_string(account).context("cannot read a memory file")?;
    let status = match Launched::parse(&account) {
        Some(Launched {
            errno: 0, status, ..
        }) => ExitStatus::from_raw(status),
        Some(failed) => {
            return Err(io::Error::from_raw_os_error(failed.errno)).with_context(starting);
        }
        // The launcher itself was killed.
        None => launcher_status,
    };
    Ok((status, text.context("writing the log")?))
}

/// Reads all output to its end, even if the log cannot be written any more.
fn gather(
    mut words: impl Read,
    mut log: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<String> {
    let (mut first, mut last, mut left_out) = (Vec::new(), Vec::new(), 0);
    let mut room = [0; 1 << 14];
    let mut logged = Ok(());
    loop {
        let read = match words.read(&mut room) {
            Ok(0) => break,
            Ok(read) => &room[..read],
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let (early, late) = read.split_at(read.len().min(FIRST_BYTES - first.len()));
        logged = logged.and_then(|()| log(early));
        first.extend(early);
        last.extend(late);
        let too_much = last.len().saturating_sub(LAST_BYTES);
        left_out += too_much;
        last.drain(..too_much);
    }
    if left_out > 0 {
        let words = format!("\n[{left_out} bytes are left out here]\n");
        last.splice(..0, words.into_bytes());
    }
    logged.and_then(|()| log(&last))?;
    first.extend(last);
    Ok(String::from_utf8_lossy(&first).into_owned())
}

/// How often a program whose file is still open for writing is tried, and the pause between two tries.
const MOST_TRIES: u32 = 200;
const PAUSE: Duration = Duration::from_millis(1);

/// Starts a launcher in its own process group; the launcher ends with heapmark.
pub fn spawn_launcher(command: &mut Command) -> Result<Child> {
    let command = ending_with_heapmark(command.process_group(0));
    let mut spawned = command.spawn();
    for _ in 0..MOST_TRIES {
        // A process that another thread started while the launcher was written has the launcher's file open until it
        // executes its own program.
        match &spawned {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => sleep(PAUSE),
            _ => break,
        }
        spawned = command.spawn();
    }
    spawned.with_context(|| format!("cannot start {}", command.get_program().display()))
}

/// Has the kernel kill the command's process when heapmark ends.
pub fn ending_with_heapmark(command: &mut Command) -> &mut Command {
    let host = std::process::id() as i32;
    // SAFETY: only async-signal-safe system calls between fork and exec.
    unsafe { command.pre_exec(move || before_exec(host)) }
}

fn before_exec(host: i32) -> io::Result<()> {
    // SAFETY: plain system calls with plain numbers.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        // Covers the case that heapmark was killed just before that call.
        if libc::getppid() != host {
            libc::_exit(1);
        }
        let none: libc::rlimit = std::mem::zeroed();
        libc::setrlimit(libc::RLIMIT_CORE, &none);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_words_the_first_and_the_last_are_kept_and_the_log_gets_the_same() {
        let much = [vec![b'a'; 3 * FIRST_BYTES], b"the end".to_vec()].concat();
        let mut log: Vec<u8> = Vec::new();
        let text = gather(&much[..], |bytes| {
            log.extend(bytes);
            Ok(())
        });
        let text = text.unwrap();
        assert_eq!(text.as_bytes(), log);
        assert!(text.len() < FIRST_BYTES + LAST_BYTES + 100);
        assert!(text.starts_with("aaa") && text.ends_with("aaathe end"));
        let left_out = much.len() - FIRST_BYTES - LAST_BYTES;
        let words = format!("[{left_out} bytes are left out here]");
        assert!(text.contains(&words));
        let full = gather(&much[..], |_| Err(io::Error::other("planted")));
        assert_eq!(full.unwrap_err().to_string(), "planted");
    }

    #[test]
    fn a_launcher_that_is_still_open_for_writing_starts_once_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let launcher = folder.path().join("launcher");
        std::fs::copy("/bin/true", &launcher).unwrap();
        let open = File::options().append(true).open(&launcher).unwrap();
        let mut busy = Command::new(&launcher);
        assert_eq!(
            busy.spawn().unwrap_err().kind(),
            ErrorKind::ExecutableFileBusy
        );
        let closing = std::thread::spawn(move || {
            sleep(10 * PAUSE);
            drop(open);
        });
        assert!(spawn_launcher(&mut busy).unwrap().wait().unwrap().success());
        closing.join().unwrap();
    }
}
