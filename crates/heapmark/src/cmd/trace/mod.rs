//! `heapmark trace`: what a program asked of its allocator, made of recordings, looked at, cut and exchanged.

mod check;
mod cut;
mod dump;
mod export;
pub(super) mod finish;
mod import;
mod stats;

use super::Exit;
use crate::trace::{Fault, Kind, Reader};
use anyhow::{Context, Result};
use std::fs::File;
use std::path::Path;

/// Look at traces: make them of captures, check, measure, cut and exchange them
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

/// How a command ends that met a fault.
pub(super) fn exit(kind: Kind) -> Exit {
    match kind {
        Kind::Foreign => Exit::Failed,
        Kind::Damaged => Exit::Damaged,
        Kind::Impossible => Exit::Impossible,
    }
}

/// Opens a trace; `-` is stdin.
pub(super) fn open(file: &Path) -> Result<Reader<File>> {
    let from = if file.as_os_str() == "-" { Path::new("/dev/stdin") } else { file };
    in_file(Reader::open(from), file)
}

/// Names the file in whatever is wrong with it.
pub(super) fn in_file<T>(result: Result<T, Fault>, file: &Path) -> Result<T> {
    result.with_context(|| file.display().to_string())
}
