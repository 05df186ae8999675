//! How a command ends: exit codes, and errors that the user made.

use anyhow::{Context, Result};
use heapmark_trace::{Fault, FaultKind};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The exit codes in words, shown below `--help`.
pub const EXIT_CODES: &str = "\
Exit codes: 0 done, 1 heapmark failed, 2 usage, 3 a `--fail-on` condition was met, 4 some processes did \
not end `ok` (what this machine lacks is `absent`, which is not a failure), 5 `--strict` and the machine has warnings, 6 a trace or capture is damaged (events before the \
damage were read), 7 a trace is inconsistent (for example a block freed twice), 130 interrupted (what was measured is stored; `heapmark run --resume DIR` goes on).";

/// Exit codes.
#[derive(Clone, Copy)]
pub enum Exit {
    /// The work is done.
    Done = 0,
    /// heapmark itself failed.
    Failed = 1,
    /// A usage error.
    Usage = 2,
    /// A condition of `--fail-on` was met.
    Condition = 3,
    /// Some processes did not end `ok`.
    NotAllOk = 4,
    /// The machine has warnings, and `--strict` was given.
    Warned = 5,
    /// A trace or a capture is damaged; the events before the damage were read.
    Damaged = 6,
    /// The bytes of a trace are whole, but its events cannot have happened.
    Impossible = 7,
    /// The command was stopped by a signal.
    Interrupted = 130,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit as u8)
    }
}

/// The exit code of a command that met a fault of a trace.
impl From<FaultKind> for Exit {
    fn from(kind: FaultKind) -> Exit {
        match kind {
            FaultKind::Foreign => Exit::Usage,
            FaultKind::Damaged => Exit::Damaged,
            FaultKind::Impossible => Exit::Impossible,
            FaultKind::Unwritten => Exit::Failed,
        }
    }
}

impl Exit {
    /// This exit code if a condition is met, otherwise success.
    pub fn when(self, met: bool) -> Exit {
        if met { self } else { Exit::Done }
    }

    /// Prints an error as one message and returns the exit code.
    pub fn of_error(error: &anyhow::Error) -> Exit {
        let limit = is_of_disk(error).filter(|kind| *kind == io::ErrorKind::FileTooLarge);
        let advice = limit.map_or("", |_| ": `ulimit -f` says how large files may be here");
        say!("heapmark: {error:#}{advice}");
        match error.downcast_ref::<Fault>() {
            Some(fault) => fault.kind().into(),
            None if error.is::<Usage>() => Exit::Usage,
            None => Exit::Failed,
        }
    }
}

/// An error made by the user, not by heapmark.
#[derive(Debug)]
pub struct Usage(pub String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Marks an error as a usage error. A fault of a trace keeps its own exit code, whichever command reads the trace.
pub fn usage(error: impl Into<anyhow::Error>) -> anyhow::Error {
    let error = error.into();
    if error.is::<Fault>() {
        error
    } else {
        Usage(format!("{error:#}")).into()
    }
}

/// Parses a command line into the flags of a command.
pub fn parsed<A: clap::Args + clap::FromArgMatches>(line: &[String]) -> Result<A> {
    let command = A::augment_args(clap::Command::new("heapmark").no_binary_name(true));
    let matches = command.try_get_matches_from(line).map_err(usage)?;
    Ok(A::from_arg_matches(&matches)?)
}

/// The kind of I/O error, if an error was caused by a full disk or by a limit on files or disk space.
pub fn is_of_disk(error: &anyhow::Error) -> Option<io::ErrorKind> {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let mut kinds = error
        .chain()
        .filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    kinds.find(|kind| matches!(kind, FileTooLarge | QuotaExceeded | StorageFull))
}

/// Adds the path of a trace file to a fault in the trace.
pub fn in_file<T>(result: Result<T, Fault>, file: &Path) -> Result<T> {
    result.with_context(|| file.display().to_string())
}
