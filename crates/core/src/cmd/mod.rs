//! One file per command: each reads flags, calls the stages and prints. Commands neither judge nor measure.

/// Like the function `say`, with the arguments of `format!`.
#[macro_export]
macro_rules! say {
    ($($words:tt)*) => { $crate::cmd::say(format!($($words)*)) };
}

/// Ends a function with a usage error, as `bail!` does with other errors.
#[macro_export]
macro_rules! refuse {
    ($($words:tt)*) => { return Err($crate::cmd::Usage(format!($($words)*)).into()) };
}

#[doc(hidden)]
pub mod build;
mod cargo_flags;
#[doc(hidden)]
pub mod clean;
#[doc(hidden)]
pub mod compare;
#[doc(hidden)]
pub mod doctor;
#[doc(hidden)]
pub mod explain;
#[doc(hidden)]
pub mod export;
#[doc(hidden)]
pub mod fetch;
#[doc(hidden)]
pub mod long;
#[doc(hidden)]
pub mod noise;
#[doc(hidden)]
pub mod open;
#[doc(hidden)]
pub mod output;
mod own_values;
#[doc(hidden)]
pub mod page;
mod piped_input;
#[doc(hidden)]
pub mod replay;
#[doc(hidden)]
pub mod run;
#[doc(hidden)]
pub mod selftest;
#[doc(hidden)]
pub mod show;
pub mod signals;
pub mod surroundings;
#[doc(hidden)]
pub mod try_command;
mod variants;

pub use page::add_to_pages;

use crate::build::libc_version;
use crate::catalog::Catalog;
use crate::execute::{Guest, Subject};
use crate::metric;
use crate::observe::machine;
use crate::report::{Screen, json, plain, plain_lines};
use crate::store::{self, Run};
use anyhow::{Context, Result};
use heapmark_trace::{Fault, FaultKind};
use rustix::process::{Resource, getrlimit};
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;

/// The least limit on open files: with fewer, not even a compiler is found.
const LEAST_FILES: u64 = 16;

/// The catalogue of what can be measured; loaded once, although several parts of a command ask for it.
pub fn catalog() -> Result<&'static Catalog> {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    if let Some(catalog) = CATALOG.get() {
        return Ok(catalog);
    }
    let catalog = Catalog::load()?;
    metric::check(&catalog)?;
    Ok(CATALOG.get_or_init(|| catalog))
}

/// Describes the machine that heapmark runs on, and its C library, which the machine's own files do not reveal.
pub fn described_machine() -> BTreeMap<String, String> {
    let mut machine = machine::describe();
    machine.insert("c_library".into(), libc_version());
    machine
}

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

/// Parses a command line into the flags of a command.
pub fn parsed<A: clap::Args + clap::FromArgMatches>(line: &[String]) -> Result<A> {
    let command = A::augment_args(clap::Command::new("heapmark").no_binary_name(true));
    let matches = command.try_get_matches_from(line).map_err(usage)?;
    Ok(A::from_arg_matches(&matches)?)
}

/// The kind of I/O error, if an error was caused by a full disk or by a limit on files or disk space.
fn is_of_disk(error: &anyhow::Error) -> Option<io::ErrorKind> {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let mut kinds = error
        .chain()
        .filter_map(|cause| Some(cause.downcast_ref::<io::Error>()?.kind()));
    kinds.find(|kind| matches!(kind, FileTooLarge | QuotaExceeded | StorageFull))
}

/// Prints to stdout without sequences that a terminal would interpret, except colours. A reader that stops early, as `| head` does, is not
/// a failure.
pub fn print(text: impl AsRef<str>) -> Result<()> {
    let mut stdout = surroundings::stdout()?.lock();
    match stdout
        .write_all(plain_lines(text.as_ref()).as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.context("cannot write to stdout"),
    }
}

/// Prints a value as JSON to stdout.
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    print(json(value))
}

/// How heapmark prints, whichever command runs.
#[derive(Clone, Copy, clap::Args)]
pub struct Manner {
    /// Print results and errors only: no progress, no remarks
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Whether colours stress words [default: auto, which is on a terminal unless NO_COLOR is set]
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        hide_default_value = true,
        default_value = "auto"
    )]
    color: Color,
}

/// When colours are used.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Color {
    Auto,
    Always,
    Never,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

impl Manner {
    /// Takes effect for the rest of the process.
    pub fn take_effect(self) {
        let _ = MANNER.set(self);
    }
}

/// Whether only results and errors are wanted.
fn is_quiet() -> bool {
    MANNER.get().is_some_and(|manner| manner.quiet)
}

/// Prints a remark to stderr, unless `--quiet` is set.
pub fn note(text: impl AsRef<str>) {
    if !is_quiet() {
        say(text);
    }
}

/// Fails if the limit on open files is very low: later errors would not name that as the cause.
pub fn refuse_few_files() -> Result<()> {
    match getrlimit(Resource::Nofile).current {
        Some(most) if most < LEAST_FILES => {
            refuse!("ulimit -n is {most}: heapmark needs {LEAST_FILES} open files at least")
        }
        _ => Ok(()),
    }
}

/// Prints to stderr, line by line: the text may quote a file or a process. Write errors are
/// ignored, so that a run goes on if stderr is closed.
pub fn say(text: impl AsRef<str>) {
    text.as_ref()
        .lines()
        .for_each(|line| drop(writeln!(io::stderr(), "{}", plain(line))));
}

/// The directories of the runs that a command line names.
pub fn find_runs(runs: &[String]) -> Result<Vec<PathBuf>> {
    runs.iter()
        .map(|run| store::find(run))
        .collect::<Result<_>>()
        .map_err(usage)
}

/// Reports which parts of a run are left out because they are damaged or missing.
pub fn say_damage(dir: &Path, run: &Run) {
    if run.unreadable_lines > 0 {
        say!(
            "{}: torn or damaged lines, left out: {}",
            store::samples_of(dir).display(),
            run.unreadable_lines
        );
    }
    if let [first, others @ ..] = run.damaged_tables.as_slice() {
        let more = match others.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        say!(
            "{}{more}: gone or damaged, left out; bring back what was written",
            first.display()
        );
    }
}

/// The screen that stdout goes to.
pub fn screen() -> Screen {
    screen_of(io::stdout())
}

fn screen_of(stream: impl AsFd + IsTerminal) -> Screen {
    let variable = std::env::var_os;
    let colour = match MANNER.get().map_or(Color::Auto, |manner| manner.color) {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            stream.is_terminal()
                && variable("NO_COLOR").is_none_or(|value| value.is_empty())
                && variable("TERM").is_none_or(|term| term != "dumb")
        }
    };
    Screen {
        width: width_of(stream),
        colour,
    }
}

/// The width of a stream in characters; 100 if it is not a terminal.
pub fn width_of(stream: impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(stream) {
        // A terminal whose size was never set reports 0.
        Ok(size) if size.ws_col > 0 => usize::from(size.ws_col).max(40),
        _ => 100,
    }
}

/// The version that the library reports; if it reports none, the version of the package that the library came from.
pub fn told_version(guest: &Guest, subject: &Subject) -> Result<Option<String>> {
    let library = &subject.library;
    let is_known = !library.origin.starts_with("crate") && !library.source_version.is_empty();
    let package = is_known.then(|| library.source_version.clone());
    Ok(guest.version(subject)?.or(package))
}

/// Returns why an allocator is not what its name suggests, if that is so: the library reports another version than the catalogue's entry
/// expects.
pub fn unexpected(guest: &Guest, subject: &Subject) -> Result<Option<String>> {
    let Some(expected) = &subject.allocator.expects else {
        return Ok(None);
    };
    let version = guest.version(subject)?.unwrap_or_else(|| "nothing".into());
    Ok((!version.contains(expected))
        .then(|| format!("it works with {version} here, and its row is for {expected}")))
}

/// Adds the path of a trace file to a fault in the trace.
pub fn in_file<T>(result: Result<T, Fault>, file: &Path) -> Result<T> {
    result.with_context(|| file.display().to_string())
}
