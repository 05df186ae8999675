//! Input that is piped or redirected into heapmark: read once into an unnamed file, from which every process of a command then reads.

use crate::build::hex;
use crate::file::{Draft, WithPath};
use crate::plan::{Case, PipedInput};
use crate::report::units;
use anyhow::{Context, Result};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::env;
use std::fs::File;
use std::io::{ErrorKind, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// The most bytes that are read: an endless input must not fill a disk.
const MOST_BYTES: u64 = 1 << 30;
/// The time before a message is printed: input that arrives sooner needs none.
const TELL_AFTER: Duration = Duration::from_secs(1);
/// The longest wait for input: some programs that start others leave a pipe open to which no process ever writes, and an error is better
/// than waiting forever.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads heapmark's own stdin to its end; `None` if stdin is a terminal or empty.
pub fn read() -> Result<Option<PipedInput>> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        return Ok(None);
    }
    let stdin = stdin.as_fd().try_clone_to_owned();
    let stdin = File::from(stdin.context("cannot read stdin")?);
    let found = keep(stdin, MOST_BYTES, PATIENCE)?;
    if let Some(input) = &found {
        say!(
            "every process reads what came from stdin: {} (an empty one: `< /dev/null`)",
            units::bytes(input.bytes as f64)
        );
    }
    Ok(found)
}

/// Reads stdin again for an interrupted run, in which every process must read the same input.
pub fn take_up(cases: &mut [Case]) -> Result<()> {
    let commands = cases.iter_mut().filter_map(Case::command_mut);
    let mut stored: Vec<&mut PipedInput> = commands
        .filter_map(|command| command.piped.as_mut())
        .collect();
    let Some(wanted) = stored.first().map(|input| input.sha256.clone()) else {
        return Ok(());
    };
    let found = read()?.filter(|input| input.sha256 == wanted);
    let Some(found) = found else {
        let size = units::bytes(stored[0].bytes as f64);
        refuse!(
            "this run's command reads {size} that were piped into heapmark: pipe or redirect the same into it again"
        );
    };
    stored.iter_mut().for_each(|input| **input = found.clone());
    Ok(())
}

/// Copies an input to its end into an unnamed file; fails if the input is too long, or if nothing comes for `patience`.
fn keep(mut input: File, most_bytes: u64, patience: Duration) -> Result<Option<PipedInput>> {
    let mut buffer = vec![0; 1 << 16];
    let mut hash = Sha256::new();
    let mut kept = None;
    let mut bytes = 0;
    let mut is_told = false;
    loop {
        if !is_told && !is_there(&input, TELL_AFTER.min(patience))? {
            is_told = true;
            say!(
                "waiting for the end of stdin, which is the command's input ({} so far); for an empty one: `< /dev/null`",
                units::bytes(bytes as f64)
            );
        }
        if is_told && !is_there(&input, patience)? {
            refuse!(
                "nothing came from stdin for {} s, and it has no end: close it (`< /dev/null`), or name a file (--stdin FILE)",
                patience.as_secs()
            );
        }
        let count = match input.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) => return Err(error).context("cannot read stdin"),
        };
        bytes += count as u64;
        if bytes > most_bytes {
            refuse!(
                "stdin holds more than {}, or has no end: name a file instead (--stdin FILE), or give less of it (head -c)",
                units::bytes(most_bytes as f64)
            );
        }
        let file = match &mut kept {
            Some(file) => file,
            none => none.insert(unnamed_file()?),
        };
        let place = || {
            format!(
                "cannot keep what comes from stdin in {}",
                env::temp_dir().display()
            )
        };
        file.write_all(&buffer[..count]).with_context(place)?;
        hash.update(&buffer[..count]);
    }
    Ok(kept.map(|file| PipedInput {
        bytes,
        sha256: hex(&hash.finalize()),
        file: Some(Arc::new(file)),
    }))
}

/// Whether data, or the end of the input, arrives within a time.
fn is_there(input: &File, within: Duration) -> Result<bool> {
    let time = within.try_into().context("a time out of range")?;
    loop {
        match poll(&mut [PollFd::new(input, PollFlags::IN)], Some(&time)) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready.context("cannot wait for stdin")? > 0),
        }
    }
}

/// A file that only this user can read, and that disappears when its last descriptor is closed: its name goes at once.
fn unnamed_file() -> Result<File> {
    let folder = env::temp_dir();
    let made = Draft::file(&folder.join("stdin"), 0o600).with_path("cannot write into", &folder);
    made.map(|(_named, file)| file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;

    fn pipe() -> (File, File) {
        let (read, write) = std::io::pipe().unwrap();
        let [read, write] = [OwnedFd::from(read), OwnedFd::from(write)].map(File::from);
        (read, write)
    }

    #[test]
    fn what_comes_is_kept_where_nobody_else_finds_it() {
        let (read, mut write) = pipe();
        let writer = std::thread::spawn(move || write.write_all(&[b'x'; 300_000]).unwrap());
        let kept = keep(read, 1 << 20, PATIENCE).unwrap().unwrap();
        writer.join().unwrap();
        let file = kept.file.unwrap().metadata().unwrap();
        assert_eq!((kept.bytes, file.len()), (300_000, 300_000));
        assert_eq!((file.nlink(), file.mode() & 0o777), (0, 0o600));
        assert_eq!(kept.sha256.len(), 64);
    }

    #[test]
    fn nothing_is_no_input_and_what_has_no_end_is_refused() {
        let (read, write) = pipe();
        drop(write);
        assert!(keep(read, 10, PATIENCE).unwrap().is_none());
        let zero = || File::open("/dev/zero").unwrap();
        let error = keep(zero(), 1 << 20, PATIENCE).unwrap_err().to_string();
        assert!(
            error.contains("more than 1.00 MiB, or has no end"),
            "{error}"
        );
        let (read, mut write) = pipe();
        write.write_all(b"some").unwrap();
        let error = keep(read, 10, Duration::from_millis(10)).unwrap_err();
        assert!(
            error.to_string().contains("has no end: close it"),
            "{error}"
        );
    }
}
