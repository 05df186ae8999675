//! `heapmark show`: what a stored run printed, once more.

use super::{Exit, print, say_damage, screen, usage};
use crate::analyse::{analyse, reads_figure};
use crate::report;
use crate::store;
use anyhow::Result;

/// Print a stored run again: its tables, what did not end `ok`, and its verdict
#[derive(clap::Args)]
pub struct ShowArgs {
    /// A run directory, or `latest`
    #[arg(default_value = "latest")]
    run: String,
}

/// Runs the command.
pub fn run(args: ShowArgs) -> Result<Exit> {
    let dir = store::find(&args.run).map_err(usage)?;
    let run = store::read_for_tables(&dir, reads_figure)?;
    say_damage(&dir, &run);
    print(report::terminal(
        &analyse(&run.head, &run.records),
        screen(),
    ))?;
    Ok(Exit::Done)
}
