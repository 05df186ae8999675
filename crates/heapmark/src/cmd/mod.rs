//! One file per command: reads flags, calls the stages, prints. Judges and measures nothing itself.

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
use crate::trace::Fault;
use anyhow::Context;
use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;

/// Shown below `--help`.
pub const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 heapmark failed, 2 usage, 3 a `--fail-on` condition was met, 4 some processes did \
not end `ok` (what this machine does not have is `absent`, and no failure), 5 `--strict` and the machine has warnings, 6 a trace or capture is damaged (what stands before the \
damage was read), 7 a trace tells what cannot have happened, 130 interrupted (what was measured is stored; `heapmark run --resume DIR` goes on).";

/// How heapmark ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Done = 0,
    /// heapmark itself failed.
    Failed = 1,
    /// What was asked for makes no sense.
    Usage = 2,
    /// What `--fail-on` names was found.
    Condition = 3,
    /// Some processes did not end `ok`.
    NotAllOk = 4,
    /// `--strict`, and something of the machine makes numbers wander.
    Warned = 5,
    /// A trace or a capture is damaged; what stands before the damage was read.
    Damaged = 6,
    /// A trace is whole and tells what cannot have happened.
    Impossible = 7,
    /// A signal asked it to stop.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// An error of the person who typed, not of heapmark.
#[derive(Debug)]
pub struct Usage(String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Marks an error as one of usage. What is wrong with a trace keeps its own exit code, whichever command reads it.
pub(crate) fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    if error.is::<Fault>() { error } else { Usage(format!("{error:#}")).into() }
}

impl Exit {
    /// Prints an error as one message and says how to end.
    pub fn of_error(error: &anyhow::Error) -> Exit {
        say(&format!("heapmark: {error:#}"));
        match error.downcast_ref::<Fault>() {
            Some(fault) => trace::exit(fault.kind()),
            None if error.is::<Usage>() => Exit::Usage,
            None => Exit::Failed,
        }
    }
}

/// Prints to stdout. Whoever stopped reading, as `| head` does, wanted no more: that is no failure.
pub(crate) fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = std::io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Says something on stderr, line by line: it may quote a file or a process. A run goes on where nobody listens.
pub(crate) fn say(text: &str) {
    text.lines().for_each(|line| drop(writeln!(std::io::stderr(), "{}", plain(line))));
}

/// Says what of a run is left out, as it is not there as it was written.
pub(crate) fn say_damage(dir: &Path, run: &Run) {
    if run.unreadable_lines > 0 {
        let file = store::samples_of(dir);
        say(&format!("{}: torn or damaged lines, left out: {}", file.display(), run.unreadable_lines));
    }
    if let [first, others @ ..] = run.damaged_tables.as_slice() {
        let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        say(&format!("{}{more}: gone or damaged, left out; bring back what was written", first.display()));
    }
}

/// Whether escape sequences are welcome on this stream.
pub(crate) fn wants_colour(stream: &impl IsTerminal) -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    stream.is_terminal() && !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Characters in a line of stdout.
pub(crate) fn width() -> usize {
    width_of(&std::io::stdout())
}

/// Characters in a line of a stream; 100 where it is no terminal.
fn width_of(stream: &impl AsFd) -> usize {
    let size = rustix::termios::tcgetwinsize(stream).ok();
    // A terminal that nobody told its size says 0.
    size.map(|size| usize::from(size.ws_col)).filter(|columns| *columns > 0).map_or(100, |columns| columns.max(40))
}

/// The library's own word on its version; where it has none, the pinned crate or the package it came from.
pub(crate) fn version(guest: &Guest, subject: &Subject) -> anyhow::Result<String> {
    if let Some(told) = guest.version(subject)? {
        return Ok(told);
    }
    let Library { origin, source_version, .. } = &subject.library;
    Ok(match origin.strip_prefix("crate ") {
        // The crate's version is not the allocator's: say whose it is.
        Some(pinned) => format!("in {pinned}"),
        None if source_version.is_empty() => "-".into(),
        None => source_version.clone(),
    })
}

/// Why an allocator is not what its name says here, if it is not: it tells another version than its entry expects.
pub(crate) fn unexpected(guest: &Guest, subject: &Subject) -> anyhow::Result<Option<String>> {
    let Some(expected) = &subject.allocator.expects else { return Ok(None) };
    let told = guest.version(subject)?.unwrap_or_else(|| "nothing".into());
    Ok((!told.contains(expected)).then(|| format!("it works with {told} here, and its row is for {expected}")))
}

/// The tier's word, as it stands in the files.
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
