//! `heapmark report`: stored runs as one HTML page.

use super::output::{Destination, Force, fresh};
use super::{Exit, claims, find_runs, say, say_damage};
use crate::analyse::reads_figure;
use crate::report::{PageRun, page};
use crate::store::{self, Run};
use anyhow::Result;
use std::iter::zip;
use std::path::{Path, PathBuf};

/// Write an HTML page of one run, or of several side by side: charts, tables, verdict
#[derive(clap::Args)]
pub struct ReportArgs {
    /// Run directories, or `latest`
    #[arg(default_value = "latest", value_name = "RUN")]
    runs: Vec<String>,
    /// File to write; `-` is stdout [default: for one run report.html in its directory, replaced
    /// each time; for several report.html in the current directory, or report-2.html if that
    /// exists]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    force: Force,
}

/// Runs the command.
pub fn run(args: ReportArgs) -> Result<Exit> {
    let dirs = find_runs(&args.runs)?;
    let force = args.force;
    // The page in a run's own directory is heapmark's, which may replace it.
    let output = if args.output.is_none() && dirs.len() == 1 {
        None
    } else {
        let output = args.output.unwrap_or_else(|| fresh(FILE, force));
        Some(Destination { output, force }.made_of_runs(&dirs)?)
    };
    let runs: Vec<Run> = dirs
        .iter()
        .map(|dir| store::read_for_tables(dir, reads_figure))
        .collect::<Result<_>>()?;
    zip(&dirs, &runs).for_each(|(dir, run)| say_damage(dir, run));
    let file = match output {
        None => beside(&dirs[0], &runs[0])?,
        Some(output) => {
            let all: Vec<PageRun> = zip(&dirs, &runs)
                .map(|(dir, run)| of_run(dir, run))
                .collect();
            output.put(page(&all, &claims::of_page(&dirs)?))?;
            output.path().to_owned()
        }
    };
    if file.as_os_str() != "-" {
        say(file.display().to_string());
    }
    Ok(Exit::Done)
}

/// Default name of the page.
pub(super) const FILE: &str = "report.html";

/// Writes the page of a run into its directory.
pub(super) fn beside(dir: &Path, run: &Run) -> Result<PathBuf> {
    let claims = claims::of_page(&[dir.to_path_buf()])?;
    store::keep(dir, FILE, page(&[of_run(dir, run)], &claims))?;
    Ok(dir.join(FILE))
}

fn of_run<'a>(dir: &Path, run: &'a Run) -> PageRun<'a> {
    PageRun {
        name: dir.display().to_string(),
        head: &run.head,
        records: &run.records,
        series: store::series(dir, &run.records),
    }
}
