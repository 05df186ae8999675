//! One command of a build: runs it when a slot is free, logs its output, and reports which step
//! failed and why. Independent of allocators.

use super::carried::GUEST;
use super::launched::{self, Environment, ending_with_heapmark};
use anyhow::{Context, Result, bail};
use heapmark_catalog::file::WithPath;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Condvar, Mutex, PoisonError};

/// How many commands may run at once, over all allocators.
pub struct Slots {
    free: Mutex<usize>,
    freed: Condvar,
}

impl Slots {
    /// Creates slots for `count` commands, at least one.
    pub fn new(count: usize) -> Slots {
        Slots {
            free: Mutex::new(count.max(1)),
            freed: Condvar::new(),
        }
    }

    fn with<T>(&self, run: impl FnOnce() -> T) -> T {
        let lock = || self.free.lock().unwrap_or_else(PoisonError::into_inner);
        let mut free = self
            .freed
            .wait_while(lock(), |free| *free == 0)
            .unwrap_or_else(PoisonError::into_inner);
        *free -= 1;
        drop(free);
        let result = run();
        *lock() += 1;
        self.freed.notify_one();
        result
    }
}

/// Runs the steps of one build, and logs them.
pub struct Steps<'a> {
    log: Mutex<Log>,
    slots: &'a Slots,
    launcher: PathBuf,
}

/// A log of what commands write, as they write it.
struct Log {
    file: File,
    /// Name of the step that wrote to the log last.
    head: String,
}

impl Log {
    fn add(&mut self, head: &str, words: &[u8]) -> io::Result<()> {
        if self.head != head {
            self.head = head.to_owned();
            write!(self.file, "\n# {head}\n")?;
        }
        self.file.write_all(words)
    }
}

impl<'a> Steps<'a> {
    /// Creates the log file in which the steps of one build are logged.
    pub fn new(log: &Path, slots: &'a Slots) -> Result<Steps<'a>> {
        let log = Log {
            file: File::create(log).with_path("creating", log)?,
            head: String::new(),
        };
        Ok(Steps {
            log: Mutex::new(log),
            slots,
            launcher: GUEST.find()?,
        })
    }

    /// Runs `command`; if it fails, the error contains `step` and the command's output.
    pub fn run(&self, step: &str, command: &mut Command) -> Result<()> {
        let head = format!("{step}\n{command:?}");
        let log = |words: &[u8]| {
            let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
            log.add(&head, words)
        };
        let run = || launched::run(&self.launcher, &*command, Environment::Inherited, log);
        let (status, words) = self.slots.with(run).with_context(|| step.to_owned())?;
        if !status.success() {
            bail!("{step} failed ({status}):\n{}", telling(&words));
        }
        Ok(())
    }

    /// Unpacks a tar archive, compressed or not, into a folder.
    pub fn unpack(&self, archive: &Path, into: &Path) -> Result<()> {
        let mut tar = Command::new("tar");
        // Do not restore owners that the archive names.
        tar.arg("-xof")
            .arg(archive)
            .arg("-C")
            .arg(into)
            .env_remove("TAR_OPTIONS");
        self.run("unpacking", &mut tar)
    }
}

/// Returns what a command prints; `None` if it fails.
pub fn output(command: &mut Command) -> Option<String> {
    let output = ending_with_heapmark(command).output().ok()?;
    let words = String::from_utf8_lossy(&output.stdout).into_owned();
    output.status.success().then_some(words)
}

/// Returns the lines that name an error, or the last lines if none does.
fn telling(words: &str) -> String {
    let errors: Vec<&str> = words
        .lines()
        .filter(|line| line.contains("error:") || line.contains("undefined reference"))
        .take(5)
        .collect();
    if !errors.is_empty() {
        return errors.join("\n");
    }
    let lines: Vec<&str> = words.lines().collect();
    lines[lines.len().saturating_sub(8)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_told_before_last_words() {
        assert_eq!(telling("a.c:1: error: no\nnote: x\n"), "a.c:1: error: no");
        assert_eq!(telling("one\ntwo\n"), "one\ntwo");
    }

    #[test]
    fn a_failing_step_says_its_name_and_its_words() {
        let folder = tempfile::tempdir().unwrap();
        let slots = Slots::new(0);
        let steps = Steps::new(&folder.path().join("log"), &slots).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo broken >&2; exit 3"]);
        let error = steps
            .run("compiling x.c", &mut command)
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("compiling x.c failed") && error.contains("broken"),
            "{error}"
        );
    }
}
