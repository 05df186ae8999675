//! The page of stored runs.

use crate::report::{PageRun, Section, page};
use crate::store::{self, Run, published};
use anyhow::Result;
use std::iter::zip;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::OnceLock;

/// Default name of the page.
pub const FILE: &str = "report.html";

/// A function that makes sections for the page of the runs in these directories.
type Sections = fn(&[PathBuf]) -> Result<Vec<Section>>;

/// The function that makes the sections of features, on which this module does not depend.
static ADDED: OnceLock<Sections> = OnceLock::new();

/// Sets the function that makes the sections of all features, for every page of runs that this process writes.
pub fn add_to_pages(sections: Sections) {
    let _ = ADDED.set(sections);
}

/// The page of the runs, with this section above the others.
pub fn of_runs(dirs: &[PathBuf], runs: &[Run], above: Option<Section>) -> Result<String> {
    let added = ADDED.get().map(|sections| sections(dirs)).transpose()?;
    let runs: Vec<PageRun> = zip(dirs, runs).map(|(dir, run)| of_run(dir, run)).collect();
    Ok(page(&runs, above, added.unwrap_or_default()))
}

/// Writes the page of a run into its directory.
pub fn beside(dir: &Path, run: &Run) -> Result<PathBuf> {
    let page = of_runs(&[dir.to_path_buf()], from_ref(run), None)?;
    store::keep(dir, FILE, page)?;
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
