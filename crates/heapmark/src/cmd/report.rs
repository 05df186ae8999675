//! `heapmark report`: stored runs as one HTML page.

use super::output::{Destination, Force, Output, fresh};
use super::{Exit, find_runs, say, say_damage, usage};
use crate::analyse::compare::{Side, refusal};
use crate::analyse::reads_figure;
use crate::check;
use crate::check::file::{CHECK_FILE, CheckFile};
use crate::check::report::page as check_page;
use crate::claims::command as claims;
use crate::metric::WALL;
use crate::pool::judge::Pooling;
use crate::pool::report::page::{PooledPage, pooled as pool_page};
use crate::report::{PageRun, page, page_beside};
use crate::store::{self, Paths, Run, published};
use anyhow::Result;
use heapmark_stats::LEAST_MACHINES;
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
        return of_check(Path::new(only), args.output, args.force);
    }
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
        .map(|dir| store::read_for_tables(dir, Paths::Published, reads_figure))
        .collect::<Result<_>>()?;
    zip(&dirs, &runs).for_each(|(dir, run)| say_damage(dir, run));
    let file = match output {
        None => beside(&dirs[0], &runs[0])?,
        Some(output) => {
            let all: Vec<PageRun> = zip(&dirs, &runs)
                .map(|(dir, run)| of_run(dir, run))
                .collect();
            let pooled = pooled_beside(&output, &dirs, &runs, force)?;
            output.put(page_beside(pooled.as_ref(), &all, &claims::of_page(&dirs)?))?;
            output.path().to_owned()
        }
    };
    if file.as_os_str() != "-" {
        say(file.display().to_string());
    }
    Ok(Exit::Done)
}

/// Writes the page of what runs say together beside the one that shows them side by side, if they are
/// of enough machines to say anything about the next one.
fn pooled_beside(
    output: &Output,
    dirs: &[PathBuf],
    runs: &[Run],
    force: Force,
) -> Result<Option<PooledPage>> {
    let Some(mut pooling) = Pooling::new(WALL) else {
        return Ok(None);
    };
    for (dir, run) in zip(dirs, runs) {
        let side = Side {
            head: &run.head,
            records: &run.records,
        };
        let name = published(&dir.display().to_string()).into_owned();
        match refusal(&side, WALL) {
            Some(why) => pooling.refuse(&name, side.head, why),
            None => pooling.add(&name, None, &side),
        }
    }
    let (pool, first) = pooling.end();
    let is_enough = pool.machines.len() >= LEAST_MACHINES && !pool.rows.is_empty();
    let Some(first) = first.filter(|_| is_enough && !output.is_stdout()) else {
        return Ok(None);
    };
    let stem = output.path().file_stem().unwrap_or_default();
    let name = format!("{}-pooled.html", stem.display());
    let sources = dirs.iter().map(|dir| store::head_of(dir));
    let beside = Output::new(&output.path().with_file_name(&name), force, sources)?;
    beside.put(pool_page(&pool, WALL, &first))?;
    Ok(Some(PooledPage {
        file: name,
        runs: runs.len() - pool.refused.len(),
    }))
}

/// The page of a result of `heapmark check`.
fn of_check(dir: &Path, output: Option<PathBuf>, force: Force) -> Result<Exit> {
    let file = CheckFile::read(dir).map_err(usage)?;
    let page = match output {
        None => check_beside(dir, &file)?,
        Some(output) => {
            let output = Output::new(&output, force, [dir.join(CHECK_FILE)])?;
            output.put(page_of_check(&file)?)?;
            output.path().to_owned()
        }
    };
    if page.as_os_str() != "-" {
        say(page.display().to_string());
    }
    Ok(Exit::Done)
}

/// The page of a result of `heapmark check` in its directory.
const CHECK_PAGE: &str = "check.html";

fn page_of_check(file: &CheckFile) -> Result<String> {
    let file: &CheckFile = &serde_json::from_str(&published(&serde_json::to_string(file)?))?;
    let (documents, claims) = claims::hardening(file)?;
    let checks = check::definition::all()?;
    Ok(check_page::checked(file, &checks, &documents, &claims))
}

/// Writes the page of a result of `heapmark check` into its directory.
pub fn check_beside(dir: &Path, file: &CheckFile) -> Result<PathBuf> {
    store::keep(dir, CHECK_PAGE, page_of_check(file)?)?;
    Ok(dir.join(CHECK_PAGE))
}

/// Default name of the page.
pub const FILE: &str = "report.html";

/// Writes the page of a run into its directory.
pub fn beside(dir: &Path, run: &Run) -> Result<PathBuf> {
    let claims = claims::of_page(&[dir.to_path_buf()])?;
    store::keep(dir, FILE, page(&[of_run(dir, run)], &claims))?;
    Ok(dir.join(FILE))
}

fn of_run<'a>(dir: &Path, run: &'a Run) -> PageRun<'a> {
    PageRun {
        name: published(&dir.display().to_string()).into(),
        head: &run.head,
        records: &run.records,
        series: store::series(dir, &run.records),
    }
}
