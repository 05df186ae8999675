//! `heapmark report`: stored runs as one HTML page.

use super::{Exit, claims, print, say, usage};
use crate::analyse::reads_figure;
use crate::report::{PageRun, page};
use crate::store::{self, Run};
use anyhow::{Context, Result};
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
    for (dir, run) in dirs.iter().zip(&runs).filter(|(_, run)| run.unreadable_lines > 0) {
        say(&format!("{}: {} lines are no records and were left out", dir.display(), run.unreadable_lines));
    }
    let all: Vec<PageRun> = dirs.iter().zip(&runs).map(|(dir, run)| of_run(dir, run)).collect();
    let text = page(&all, &claims::of_page(&dirs)?);
    let output = args.output.unwrap_or_else(|| match dirs.as_slice() {
        [only] => only.join(FILE),
        _ => PathBuf::from(FILE),
    });
    if output.as_os_str() == "-" {
        print(&text)?;
    } else {
        write(&output, &text)?;
        say(&format!("{}", output.display()));
    }
    Ok(Exit::Done)
}

/// What the page is called where nobody says otherwise.
const FILE: &str = "report.html";

/// The page of a run into its directory.
pub(super) fn beside(dir: &Path, run: &Run) -> Result<PathBuf> {
    let file = dir.join(FILE);
    write(&file, &page(&[of_run(dir, run)], &claims::of_page(&[dir.to_path_buf()])?))?;
    Ok(file)
}

fn of_run<'a>(dir: &Path, run: &'a Run) -> PageRun<'a> {
    let series = store::series(dir, &run.records);
    PageRun { name: dir.display().to_string(), head: &run.head, records: &run.records, series }
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}
