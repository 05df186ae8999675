//! `heapmark trace stats`: statistics of a trace.

use super::{Exit, exit, open};
use crate::cmd::output::{Force, Output};
use crate::cmd::say;
use crate::report::{stats as table, stats_json, timeline_csv, trace_page};
use anyhow::Result;
use heapmark_trace::stats::stats;
use std::path::PathBuf;

/// Show statistics of a trace: sizes, lifetimes, live bytes over time, threads, growth
#[derive(clap::Args)]
pub struct StatsArgs {
    /// Trace
    #[arg(value_name = "TRACE")]
    trace: PathBuf,
    /// table: for the terminal; page: HTML with charts; json: everything; csv: live bytes over time
    #[arg(long, value_enum, default_value = "table", value_name = "FORMAT")]
    to: StatsFormat,
    /// File to write; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum StatsFormat {
    Table,
    Page,
    Json,
    Csv,
}

/// Runs the command.
pub fn run(args: StatsArgs) -> Result<Exit> {
    let output = Output::new(&args.output, args.force, [&args.trace])?;
    let (reader, long) = open("stats", &args.trace)?;
    let (stats, fault) = stats(reader);
    drop(long);
    let text = match args.to {
        StatsFormat::Table => table(&stats),
        StatsFormat::Page => trace_page(&stats),
        StatsFormat::Json => stats_json(&stats),
        StatsFormat::Csv => timeline_csv(&stats),
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
