//! `heapmark clean`: removes what heapmark has kept.

use super::{Exit, say};
use crate::build::{SHELVES, cache_root};
use crate::file::{WithPath, is_there, space_of};
use crate::report::{count, units::bytes};
use crate::store::{self, RESULTS};
use anyhow::{Context, Result};
use std::fs;
use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};

/// Remove the cache or stored runs; says how large they are, and asks
#[derive(clap::Args)]
pub struct CleanArgs {
    /// What to remove
    #[arg(required = true)]
    what: Vec<What>,
    /// Do not ask
    #[arg(short, long)]
    yes: bool,
}

/// What can be removed.
#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum What {
    /// Built allocators and programs, compiled traces, passed checks: all of it is made again when it
    /// is needed; and what `heapmark check` found, for the reports of runs
    Cache,
    /// The runs in ./heapmark-results: nothing makes them again
    Runs,
}

/// Runs the command.
pub fn run(args: CleanArgs) -> Result<Exit> {
    if !args.yes && !stdin().is_terminal() {
        refuse!("clean asks before it removes, and stdin is no terminal: give --yes");
    }
    for what in [What::Cache, What::Runs] {
        if args.what.contains(&what) {
            clean(what, args.yes)?;
        }
    }
    Ok(Exit::Done)
}

fn clean(what: What, yes: bool) -> Result<()> {
    let (folder, name, paths) = match what {
        What::Cache => {
            let root = cache_root()?;
            let paths = SHELVES
                .iter()
                .map(|name| root.join(name))
                .filter(|path| is_there(path))
                .collect();
            (root, "cache".to_owned(), paths)
        }
        What::Runs => {
            let (written, runs): (Vec<PathBuf>, Vec<PathBuf>) = store::runs()
                .into_iter()
                .partition(|dir| store::is_being_written(dir));
            for dir in written {
                say!("{} is being written to: it stays", dir.display());
            }
            let name = count(runs.len(), "run");
            (RESULTS.into(), name, runs)
        }
    };
    let place = folder.display();
    if paths.is_empty() {
        say!("{place}: nothing to remove");
        return Ok(());
    }
    let space: u64 = paths.iter().map(|path| space_of(path)).sum();
    let all = format!("{name}, {} in {place}", bytes(space as f64));
    if !yes && !agrees(&all)? {
        say("nothing is removed");
        return Ok(());
    }
    for path in &paths {
        remove(path).with_path("cannot remove", path)?;
    }
    // Not if it holds something else.
    let _ = fs::remove_dir(&folder);
    say!("removed: {all}");
    Ok(())
}

fn agrees(what: &str) -> Result<bool> {
    eprint!("{what}: remove? [y/N] ");
    let mut answer = String::new();
    stdin()
        .read_line(&mut answer)
        .context("cannot read stdin")?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Of a link only the link.
fn remove(path: &Path) -> std::io::Result<()> {
    if path.symlink_metadata()?.is_dir() {
        fs::remove_dir_all(path)
    } else {
        fs::remove_file(path)
    }
}
