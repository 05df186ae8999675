//! `heapmark export`: a stored run in other formats.

use super::{Exit, put, say_damage, usage};
use crate::report::{Format, export};
use crate::store;
use anyhow::Result;
use std::path::PathBuf;

/// Write a stored run as CSV, JSON or Markdown
#[derive(clap::Args)]
pub struct Args {
    /// A run directory, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// csv: one line per measured iteration; csv-rows: one per table row; csv-latency: one per timed function of a row; json: everything; md: the tables
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    to: Format,
    /// File to write; `-` is stdout
    #[arg(short, long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

fn format(name: &str) -> Result<Format, String> {
    let known = || Format::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ");
    Format::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| format!("expected one of {}", known()))
}

/// Runs the command.
pub fn run(args: Args) -> Result<Exit> {
    let dir = store::find(&args.run).map_err(usage)?;
    let run = store::read(&dir)?;
    say_damage(&dir, &run);
    put(&export(args.to, &run.head, &run.records), &args.output)?;
    Ok(Exit::Done)
}
