//! `heapmark trace`: commands on traces, the calls that a program made to its allocator: makes,
//! checks, measures, cuts, exports them.

mod check;
mod cut;
mod dump;
mod export;
pub(super) mod finish;
mod import;
mod stats;

use super::Exit;
use super::long::Long;
use anyhow::{Context, Result};
use heapmark_trace::{Fault, Kind, Reader, Watched};
use rustix::fs::FileType;
use std::fs::File;
use std::path::Path;

/// Work with traces: make them from captures, check, measure, cut and exchange them
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    Finish(finish::Args),
    Check(check::Args),
    Stats(stats::Args),
    Dump(dump::Args),
    Cut(cut::Args),
    Import(import::Args),
    Export(export::Args),
}

/// Runs the command.
pub fn run(args: Args) -> Result<Exit> {
    match args.command {
        Command::Finish(args) => finish::run(args),
        Command::Check(args) => check::run(args),
        Command::Dump(args) => dump::run(args),
        Command::Cut(args) => cut::run(args),
        Command::Stats(args) => stats::run(args),
        Command::Import(args) => import::run(args),
        Command::Export(args) => export::run(args),
    }
}

/// The exit code of a command that met a fault.
pub(super) fn exit(kind: Kind) -> Exit {
    match kind {
        Kind::Foreign => Exit::Failed,
        Kind::Damaged => Exit::Damaged,
        Kind::Impossible => Exit::Impossible,
    }
}

/// Opens a trace that is read to its end (`-` is stdin), and the progress report on that.
fn open(command: &str, file: &Path) -> Result<(Reader<Watched<File>>, Long)> {
    // The length of a pipe is not known.
    let bytes = file.metadata().map_or(0, |known| known.len());
    open_for(Long::new(format!("trace {command} {}", file.display()), bytes), file)
}

/// As [`open`], if the output streams to stdout while the trace is read: progress only if stdout is
/// a file.
fn open_to_stdout(command: &str, file: &Path) -> Result<(Reader<Watched<File>>, Long)> {
    let stdout = rustix::fs::fstat(std::io::stdout());
    match stdout.is_ok_and(|stdout| FileType::from_raw_mode(stdout.st_mode) == FileType::RegularFile) {
        true => open(command, file),
        false => open_for(Long::silent(), file),
    }
}

fn open_for(long: Long, file: &Path) -> Result<(Reader<Watched<File>>, Long)> {
    let from = if file.as_os_str() == "-" { Path::new("/dev/stdin") } else { file };
    Ok((in_file(Reader::watched(from, long.done()), file)?, long))
}

/// Adds the file's name to a fault.
pub(super) fn in_file<T>(result: Result<T, Fault>, file: &Path) -> Result<T> {
    result.with_context(|| file.display().to_string())
}
