//! The stored runs that a command line names.

use super::exit::usage;
use crate::store::{self, Run};
use anyhow::Result;
use std::path::{Path, PathBuf};

/// The directories of the runs that a command line names.
pub fn find_runs(runs: &[String]) -> Result<Vec<PathBuf>> {
    runs.iter()
        .map(|run| store::find(run))
        .collect::<Result<_>>()
        .map_err(usage)
}

/// Reports which parts of a run are left out because they are damaged or missing.
pub fn say_damage(dir: &Path, run: &Run) {
    if run.unreadable_lines > 0 {
        say!(
            "{}: torn or damaged lines, left out: {}",
            store::samples_of(dir).display(),
            run.unreadable_lines
        );
    }
    if let [first, others @ ..] = run.damaged_tables.as_slice() {
        let more = match others.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        say!(
            "{}{more}: gone or damaged, left out; bring back what was written",
            first.display()
        );
    }
}
