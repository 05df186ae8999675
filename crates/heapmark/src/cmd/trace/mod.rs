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
use heapmark_trace::{Fault, FaultKind, Reader, Watched};
use rustix::fs::FileType;
use std::fs::File;
use std::path::Path;

/// Work with traces: make them from captures, check, measure, cut and exchange them
#[derive(clap::Args)]
pub struct TraceArgs {
    #[command(subcommand)]
    command: TraceCommand,
}

#[derive(clap::Subcommand)]
enum TraceCommand {
    Finish(finish::FinishArgs),
    Check(check::CheckArgs),
    Stats(stats::StatsArgs),
    Dump(dump::DumpArgs),
    Cut(cut::CutArgs),
    Import(import::ImportArgs),
    Export(export::TraceExportArgs),
}

/// Runs the command.
pub fn run(args: TraceArgs) -> Result<Exit> {
    match args.command {
        TraceCommand::Finish(args) => finish::run(args),
        TraceCommand::Check(args) => check::run(args),
        TraceCommand::Dump(args) => dump::run(args),
        TraceCommand::Cut(args) => cut::run(args),
        TraceCommand::Stats(args) => stats::run(args),
        TraceCommand::Import(args) => import::run(args),
        TraceCommand::Export(args) => export::run(args),
    }
}

/// The exit code of a command that met a fault.
pub(super) fn exit(kind: FaultKind) -> Exit {
    match kind {
        FaultKind::Foreign => Exit::Failed,
        FaultKind::Damaged => Exit::Damaged,
        FaultKind::Impossible => Exit::Impossible,
    }
}

/// Opens a trace that is read to its end (`-` is stdin), and the progress report on that.
fn open(command: &str, file: &Path) -> Result<(Reader<Watched<File>>, Long)> {
    // The length of a pipe is not known.
    let bytes = file.metadata().map_or(0, |known| known.len());
    open_for(
        Long::new(format!("trace {command} {}", file.display()), bytes),
        file,
    )
}

/// As [`open`], if the output streams to stdout while the trace is read: progress only if stdout is
/// a file.
fn open_to_stdout(command: &str, file: &Path) -> Result<(Reader<Watched<File>>, Long)> {
    let stdout = rustix::fs::fstat(std::io::stdout());
    match stdout
        .is_ok_and(|stdout| FileType::from_raw_mode(stdout.st_mode) == FileType::RegularFile)
    {
        true => open(command, file),
        false => open_for(Long::silent(), file),
    }
}

fn open_for(long: Long, file: &Path) -> Result<(Reader<Watched<File>>, Long)> {
    let from = if file.as_os_str() == "-" {
        Path::new("/dev/stdin")
    } else {
        file
    };
    Ok((in_file(Reader::watched(from, long.done()), file)?, long))
}

/// Adds the file's name to a fault.
pub(super) fn in_file<T>(result: Result<T, Fault>, file: &Path) -> Result<T> {
    result.with_context(|| file.display().to_string())
}
