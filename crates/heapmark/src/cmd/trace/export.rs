//! `heapmark trace export`: distributions for workloads and other programs.

use super::{Exit, exit, open};
use crate::cmd::output::{Force, Output};
use crate::cmd::say;
use crate::report::histogram_csv;
use anyhow::Result;
use heapmark_trace::stats::stats;
use std::path::PathBuf;

/// Write the sizes of objects, or their lifetimes, as CSV
#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("which").required(true))]
pub struct TraceExportArgs {
    /// Trace
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// Columns size,count: the input of the workloads' `distribution`
    #[arg(long, group = "which")]
    sizes: bool,
    /// Columns allocated_bytes,count: bytes allocated during the life of the objects
    #[arg(long, group = "which")]
    lifetimes: bool,
    /// File to write; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

/// Runs the command.
pub fn run(args: TraceExportArgs) -> Result<Exit> {
    let output = Output::new(&args.output, args.force, [&args.trace])?;
    let (reader, long) = open("export", &args.trace)?;
    let (stats, fault) = stats(reader);
    drop(long);
    let text = match args.sizes {
        true => histogram_csv(&stats.sizes, "size"),
        false => histogram_csv(&stats.lifetimes_bytes, "allocated_bytes"),
    };
    output.put(text)?;
    let Some(fault) = fault else {
        return Ok(Exit::Done);
    };
    say(&format!(
        "{}: {fault}; the numbers are of what stands before it",
        args.trace.display()
    ));
    Ok(exit(fault.kind()))
}
