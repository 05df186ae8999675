//! `heapmark show`: prints the results of a stored run again.

use super::output::{AnswerFormat, Output};
use super::{Exit, print, say_damage, screen, usage};
use super::{export, page};
use crate::analyse::{analyse, reads_figure};
use crate::report::{self, Format, render};
use crate::store::{self, Paths};
use anyhow::Result;
use std::path::Path;

/// Print a stored run again: its answer, its table, and what did not end `ok`
#[derive(clap::Args)]
pub struct ShowArgs {
    /// A run directory, or `latest`
    #[arg(default_value = "latest")]
    run: String,
    /// Print all tables with their notes, not only the first screen
    #[arg(long, overrides_with = "full")]
    full: bool,
    /// What to print; json as of `heapmark export`
    #[arg(
        long,
        value_name = "FORMAT",
        default_value = "text",
        conflicts_with = "full"
    )]
    format: AnswerFormat,
}

/// Runs `heapmark show`.
pub fn run(args: ShowArgs) -> Result<Exit> {
    let dir = store::find(&args.run).map_err(usage)?;
    if args.format == AnswerFormat::Json {
        let run = store::read_for_tables(&dir, Paths::Published, |_| true)?;
        say_damage(&dir, &run);
        export::write(&Output::stdout(), Format::Json, &run)?;
        return Ok(Exit::Done);
    }
    let run = store::read_for_tables(&dir, Paths::Published, reads_figure)?;
    say_damage(&dir, &run);
    let analysis = analyse(&run.head, &run.records);
    let text = match args.full {
        true => report::terminal(&analysis, screen()),
        false => {
            let blocks = report::first_screen(&run.head, &analysis);
            render::terminal(&blocks, screen()) + &what_next(&dir)
        }
    };
    print(text)?;
    Ok(Exit::Done)
}

/// Where the page of a run is, and what to type for more.
pub fn what_next(dir: &Path) -> String {
    let is_latest = store::find("latest").is_ok_and(|latest| latest == dir);
    let argument = match is_latest {
        true => String::new(),
        false => format!(" {}", dir.display()),
    };
    let page = dir.join(page::FILE);
    let page = match page.is_file() {
        true => page.display().to_string(),
        false => format!("heapmark report{argument}"),
    };
    format!("Report: {page}   All numbers: heapmark show --full{argument}\n")
}
