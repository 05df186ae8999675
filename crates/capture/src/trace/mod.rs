//! `heapmark trace`: commands on traces, the calls that a program made to its allocator: makes,
//! checks, measures, cuts, exports them.

mod check;
mod cut;
mod dump;
mod export;
pub mod finish;
mod import;
mod stats;

use anyhow::Result;
use heapmark_core::cmd::Exit;
use heapmark_core::cmd::long::Long;
use heapmark_core::cmd::output::{Destination, Output};
use heapmark_core::cmd::{in_file, print};
use heapmark_trace::stats::Stats;
use heapmark_trace::{Fault, Reader, Totals};
use rustix::fs::FileType;
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

/// Opens a trace that is read to its end (`-` is stdin), and the progress report on that. If the
/// output streams to stdout while the trace is read, there is progress only if stdout is a file.
fn open(command: &str, file: &Path, to_stdout: bool) -> Result<(Reader<'static>, Long)> {
    let is_file = || {
        rustix::fs::fstat(std::io::stdout())
            .is_ok_and(|stdout| FileType::from_raw_mode(stdout.st_mode) == FileType::RegularFile)
    };
    let long = if to_stdout && !is_file() {
        Long::silent()
    } else {
        Long::on(file, format!("trace {command} {}", file.display()))
    };
    let from = if file.as_os_str() == "-" {
        Path::new("/dev/stdin")
    } else {
        file
    };
    Ok((in_file(Reader::watched(from, long.done()), file)?, long))
}

/// Writes the text that `text` makes from the statistics of a trace.
fn write_stats(
    command: &str,
    trace: &Path,
    destination: &Destination,
    text: impl FnOnce(&Stats) -> String,
) -> Result<Exit> {
    write_counted(
        command,
        trace,
        destination,
        heapmark_trace::stats::stats,
        text,
    )
}

/// Writes the text that `text` makes from what `count` has counted in a trace.
fn write_counted<T>(
    command: &str,
    trace: &Path,
    destination: &Destination,
    count: impl FnOnce(Reader) -> (T, Option<Fault>),
    text: impl FnOnce(&T) -> String,
) -> Result<Exit> {
    let output = Output::new(&destination.output, destination.force, [trace])?;
    let (reader, long) = open(command, trace, false)?;
    let (counted, fault) = count(reader);
    drop(long);
    output.put(text(&counted))?;
    let rest = "the numbers are of what stands before it";
    Ok(exit_after(fault, trace, rest))
}

/// Prints where a trace was damaged, and what became of the `rest`; returns the exit code.
fn exit_after(fault: Option<Fault>, trace: &Path, rest: &str) -> Exit {
    let Some(fault) = fault else {
        return Exit::Done;
    };
    say!("{}: {fault}; {rest}", trace.display());
    fault.kind().into()
}

/// Prints the size of a new trace, unless it went to stdout.
fn print_written(output: &Output, totals: &Totals) -> Result<()> {
    if output.is_stdout() {
        return Ok(());
    }
    print(format!(
        "{}: {} events, {} allocations\n",
        output.path().display(),
        totals.events,
        totals.allocations
    ))
}
