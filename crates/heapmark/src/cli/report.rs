//! `heapmark report`: stored runs, or a result of `heapmark check`, as one HTML page.

use crate::analyse::reads_figure;
use crate::check::{self, CHECK_FILE};
use crate::cmd::output::{Destination, Force, fresh};
use crate::cmd::page::{self, FILE};
use crate::cmd::{Exit, find_runs, say, say_damage};
use crate::store::{self, Paths, Run};
use crate::{claims, pool};
use anyhow::Result;
use std::iter::zip;
use std::path::{Path, PathBuf};

/// Write an HTML page of one run, or of several side by side: charts, tables, verdict; or of a result
/// of heapmark check
#[derive(clap::Args)]
pub struct ReportArgs {
    /// Run directories, or `latest`; or the directory of one result of heapmark check
    #[arg(default_value = "latest", value_name = "RUN")]
    runs: Vec<String>,
    /// File to write; `-` is stdout [default: for one run report.html in its directory, check.html for
    /// a result of heapmark check, replaced each time; for several report.html in the current
    /// directory, or report-2.html if that exists]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

/// Runs the command.
pub fn run(args: ReportArgs) -> Result<Exit> {
    if let [only] = args.runs.as_slice()
        && Path::new(only).join(CHECK_FILE).is_file()
    {
        let sections = claims::sections_of_check;
        let file = check::write_page(Path::new(only), args.output, args.force, sections)?;
        return Ok(written(&file));
    }
    let dirs = find_runs(&args.runs)?;
    let force = args.force;
    // The page in a run's own directory is heapmark's, which may replace it.
    let output = if args.output.is_none() && dirs.len() == 1 {
        None
    } else {
        let output = args.output.unwrap_or_else(|| fresh(FILE, force));
        Some(Destination { output, force }.made_of(&dirs, &[])?)
    };
    let runs: Vec<Run> = dirs
        .iter()
        .map(|dir| store::read_for_tables(dir, Paths::Published, reads_figure))
        .collect::<Result<_>>()?;
    zip(&dirs, &runs).for_each(|(dir, run)| say_damage(dir, run));
    let file = match output {
        None => page::beside(&dirs[0], &runs[0])?,
        Some(output) => {
            let link = pool::page_beside(&output, &dirs, &runs, force)?;
            output.put(page::of_runs(&dirs, &runs, link)?)?;
            output.path().to_owned()
        }
    };
    Ok(written(&file))
}

/// Prints where a page is.
fn written(file: &Path) -> Exit {
    if file.as_os_str() != "-" {
        say(file.display().to_string());
    }
    Exit::Done
}
