//! One file per command: reads flags, calls the stages, prints. No judging and no measuring here.

pub mod build;
pub mod claims;
pub mod compare;
pub mod doctor;
pub mod export;
pub mod flags;
pub mod list;
mod long;
pub mod noise;
mod output;
pub mod record;
pub mod replay;
pub mod report;
pub mod run;
pub mod selftest;
pub mod signals;
pub mod trace;
pub mod try_command;

use crate::build::Library;
use crate::catalog::{Allocator, Tier};
use crate::execute::{Guest, Subject};
use crate::report::plain;
use crate::store::{self, Run};
use anyhow::Context;
use heapmark_trace::Fault;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

/// Shown below `--help`.
pub const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 heapmark failed, 2 usage, 3 a `--fail-on` condition was met, 4 some processes did \
not end `ok` (what this machine lacks is `absent`, which is not a failure), 5 `--strict` and the machine has warnings, 6 a trace or capture is damaged (events before the \
damage were read), 7 a trace is inconsistent (for example a block freed twice), 130 interrupted (what was measured is stored; `heapmark run --resume DIR` goes on).";

/// Exit codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done = 0,
    /// heapmark itself failed.
    Failed = 1,
    /// A usage error.
    Usage = 2,
    /// A condition of `--fail-on` was met.
    Condition = 3,
    /// Some processes did not end `ok`.
    NotAllOk = 4,
    /// `--strict`, and the machine has warnings.
    Warned = 5,
    /// A trace or a capture is damaged; the events before the damage were read.
    Damaged = 6,
    /// The bytes of a trace are whole, but its events cannot have happened.
    Impossible = 7,
    /// Stopped by a signal.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error of the user, not of heapmark.
#[derive(Debug)]
pub struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Marks an error as one of usage. A fault of a trace keeps its own exit code, whichever command
/// reads it.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    if error.is::<Fault>() {
        error
    } else {
        Usage(format!("{error:#}")).into()
    }
}

impl Exit {
    /// Prints an error as one message and returns the exit code.
    pub fn of_error(error: &anyhow::Error) -> Exit {
        say(&format!("heapmark: {error:#}"));
        match error.downcast_ref::<Fault>() {
            Some(fault) => trace::exit(fault.kind()),
            None if error.is::<Usage>() => Exit::Usage,
            None => Exit::Failed,
        }
    }
}

/// Prints to stdout. A reader that stops early, as `| head` does, is not a failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Prints to stderr, line by line: the text may quote a file or a process. Write errors are
/// ignored, so that a run goes on if stderr is closed.
pub(crate) fn say(text: &str) {
    text.lines()
        .for_each(|line| drop(writeln!(std::io::stderr(), "{}", plain(line))));
}

/// Reports which parts of a run are left out because they are damaged or missing.
pub(crate) fn say_damage(dir: &Path, run: &Run) {
    if run.unreadable_lines > 0 {
        let file = store::samples_of(dir);
        say(&format!(
            "{}: torn or damaged lines, left out: {}",
            file.display(),
            run.unreadable_lines
        ));
    }
    if let [first, others @ ..] = run.damaged_tables.as_slice() {
        let more = if others.is_empty() {
            String::new()
        } else {
            format!(" and {} more", others.len())
        };
        say(&format!(
            "{}{more}: gone or damaged, left out; bring back what was written",
            first.display()
        ));
    }
}

/// Whether this stream should get colours.
pub(crate) fn wants_colour(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal()
        && !set("NO_COLOR")
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Characters in a line of stdout.
pub(crate) fn width() -> usize {
    width_of(&std::io::stdout())
}

/// Characters in a line of a stream; 100 if it is not a terminal.
fn width_of(stream: &impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(stream).ok();
    // A terminal whose size was never set reports 0.
    size.map(|size| usize::from(size.ws_col))
        .filter(|columns| *columns > 0)
        .map_or(100, |columns| columns.max(40))
}

/// The version that the library reports; if it reports none, the pinned crate or the package it
/// came from.
pub(crate) fn version(guest: &Guest, subject: &Subject) -> anyhow::Result<String> {
    if let Some(told) = guest.version(subject)? {
        return Ok(told);
    }
    let Library {
        origin,
        source_version,
        ..
    } = &subject.library;
    Ok(match origin.strip_prefix("crate ") {
        // The crate's version is not the allocator's: name the crate.
        Some(pinned) => format!("in {pinned}"),
        None if source_version.is_empty() => "-".into(),
        None => source_version.clone(),
    })
}

/// Why an allocator is not what its name says here, if so: it reports another version than its
/// entry expects.
pub(crate) fn unexpected(guest: &Guest, subject: &Subject) -> anyhow::Result<Option<String>> {
    let Some(expected) = &subject.allocator.expects else {
        return Ok(None);
    };
    let told = guest.version(subject)?.unwrap_or_else(|| "nothing".into());
    Ok((!told.contains(expected))
        .then(|| format!("it works with {told} here, and its row is for {expected}")))
}

/// The tier's name, as the catalogue files spell it.
pub(crate) fn tier(allocator: &Allocator) -> &'static str {
    match allocator.tier {
        Tier::Main => "main",
        Tier::Variant => "variant",
        Tier::Hardened => "hardened",
        Tier::Experimental => "experimental",
        Tier::Floor => "floor",
        Tier::User => "user",
    }
}
