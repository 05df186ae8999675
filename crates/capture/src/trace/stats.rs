//! `heapmark trace stats`: statistics of a trace.

use super::{Exit, write_stats};
use crate::report::{stats, stats_json, timeline_csv, trace_page};
use anyhow::Result;
use heapmark_core::cmd::output::Destination;
use heapmark_core::cmd::screen;
use heapmark_core::report::render::terminal;
use std::path::PathBuf;

/// Show statistics of a trace: sizes, lifetimes, live bytes over time, threads, growth
#[derive(clap::Args)]
pub struct StatsArgs {
    /// Trace
    trace: PathBuf,
    /// table: for the terminal; page: HTML with charts; json: everything; csv: live bytes over time
    #[arg(
        long,
        visible_alias = "format",
        default_value = "table",
        value_name = "FORMAT"
    )]
    to: StatsFormat,
    #[command(flatten)]
    destination: Destination,
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
    let text = match args.to {
        StatsFormat::Table => |of: &_| terminal(&stats(of), screen()),
        StatsFormat::Page => trace_page,
        StatsFormat::Json => stats_json,
        StatsFormat::Csv => timeline_csv,
    };
    write_stats("stats", &args.trace, &args.destination, text)
}
