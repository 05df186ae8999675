//! `heapmark show`: what a stored run printed, once more.

use super::{Exit, print, say_damage, screen, usage};
use crate::analyse::{analyse, reads_figure};
use crate::report::{self, render};
use crate::store::{self, Paths};
use anyhow::Result;

/// Print a stored run again: its tables, what did not end `ok`, and its verdict
#[derive(clap::Args)]
pub struct ShowArgs {
    /// A run directory, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// Print the matrix of all cases instead of all tables, as `heapmark run` does
    #[arg(long, overrides_with = "matrix")]
    matrix: bool,
}

/// Runs the command.
pub fn run(args: ShowArgs) -> Result<Exit> {
    let dir = store::find(&args.run).map_err(usage)?;
    let run = store::read_for_tables(&dir, Paths::Published, reads_figure)?;
    say_damage(&dir, &run);
    let analysis = analyse(&run.head, &run.records);
    let text = match args.matrix {
        false => report::terminal(&analysis, screen()),
        true => match report::matrix(&run.head, &analysis, &dir) {
            Some(blocks) => render::terminal(&blocks, screen()),
            None => {
                refuse!("--matrix: this run has no cases that fit into one: leave it out");
            }
        },
    };
    print(text)?;
    Ok(Exit::Done)
}
