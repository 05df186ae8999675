//! `heapmark report`: stored runs as one HTML page.

use super::{Exit, claims, put, say, say_damage, usage};
use crate::analyse::reads_figure;
use crate::report::{PageRun, page};
use crate::store::{self, Run};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Write a page of one run, or of several side by side: charts, tables, verdict
#[derive(clap::Args)]
pub struct Args {
    /// Run directories, or `latest`
    #[arg(default_value = "latest", value_name = "RUN")]
    runs: Vec<String>,
    /// File to write; `-` is stdout [default: report.html in the directory of a run, in this one for several]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: Args) -> Result<Exit> {
    let dirs: Vec<PathBuf> = args.runs.iter().map(|run| store::find(run)).collect::<Result<_>>().map_err(usage)?;
    let runs: Vec<Run> = dirs.iter().map(|dir| store::read_for_tables(dir, reads_figure)).collect::<Result<_>>()?;
    dirs.iter().zip(&runs).for_each(|(dir, run)| say_damage(dir, run));
    let all: Vec<PageRun> = dirs.iter().zip(&runs).map(|(dir, run)| of_run(dir, run)).collect();
    let text = page(&all, &claims::of_page(&dirs)?);
    let file = match (&args.output, dirs.as_slice()) {
        (Some(output), _) => output.clone(),
        (None, [only]) => only.join(FILE),
        (None, _) => PathBuf::from(FILE),
    };
    // What `-o` names may be a device or a pipe, which no file may take the place of.
    match args.output {
        Some(output) => put(&text, &output)?,
        None => store::replace(&file, &text)?,
    }
    if file.as_os_str() != "-" {
        say(&file.display().to_string());
    }
    Ok(Exit::Done)
}

/// What the page is called where nobody says otherwise.
const FILE: &str = "report.html";

/// The page of a run into its directory.
pub(super) fn beside(dir: &Path, run: &Run) -> Result<PathBuf> {
    let file = dir.join(FILE);
    store::replace(&file, page(&[of_run(dir, run)], &claims::of_page(&[dir.to_path_buf()])?))?;
    Ok(file)
}

fn of_run<'a>(dir: &Path, run: &'a Run) -> PageRun<'a> {
    let series = store::series(dir, &run.records);
    PageRun { name: dir.display().to_string(), head: &run.head, records: &run.records, series }
}
