//! `heapmark report`: stored runs as one HTML page.

use super::output::{Force, Output, fresh};
use super::{Exit, claims, say, say_damage, usage};
use crate::analyse::reads_figure;
use crate::report::{PageRun, page};
use crate::store::{self, Run};
use anyhow::Result;
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
    let dirs: Vec<PathBuf> = args
        .runs
        .iter()
        .map(|run| store::find(run))
        .collect::<Result<_>>()
        .map_err(usage)?;
    // The page in a run's own directory is heapmark's, which may replace it.
    let own = (args.output.is_none() && dirs.len() == 1).then(|| &dirs[0]);
    let named = args
        .output
        .clone()
        .unwrap_or_else(|| fresh(FILE, args.force));
    let output = match own {
        Some(_) => None,
        None => Some(Output::new(
            &named,
            args.force,
            dirs.iter().map(|dir| store::head_of(dir)),
        )?),
    };
    let runs: Vec<Run> = dirs
        .iter()
        .map(|dir| store::read_for_tables(dir, reads_figure))
        .collect::<Result<_>>()?;
    dirs.iter()
        .zip(&runs)
        .for_each(|(dir, run)| say_damage(dir, run));
    let all: Vec<PageRun> = dirs
        .iter()
        .zip(&runs)
        .map(|(dir, run)| of_run(dir, run))
        .collect();
    let text = page(&all, &claims::of_page(&dirs)?);
    let file = match (own, output) {
        (Some(dir), _) => {
            store::keep(dir, FILE, &text)?;
            dir.join(FILE)
        }
        (None, output) => {
            output.map_or(Ok(()), |output| output.put(&text))?;
            named
        }
    };
    if file.as_os_str() != "-" {
        say(&file.display().to_string());
    }
    Ok(Exit::Done)
}

/// Default name of the page.
const FILE: &str = "report.html";

/// Writes the page of a run into its directory.
pub(super) fn beside(dir: &Path, run: &Run) -> Result<PathBuf> {
    store::keep(
        dir,
        FILE,
        page(&[of_run(dir, run)], &claims::of_page(&[dir.to_path_buf()])?),
    )?;
    Ok(dir.join(FILE))
}

fn of_run<'a>(dir: &Path, run: &'a Run) -> PageRun<'a> {
    let series = store::series(dir, &run.records);
    PageRun {
        name: dir.display().to_string(),
        head: &run.head,
        records: &run.records,
        series,
    }
}
