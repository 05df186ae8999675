//! `heapmark clean`: removes what heapmark has kept.

use super::{Exit, say};
use crate::build::{TAG, cache_place, hold_cache_alone, shelves};
use crate::catalog::folder::listing;
use crate::catalog::joined;
use crate::file::{RESULTS, WithPath, is_there, space_of};
use crate::report::{count, plain, units::bytes};
use crate::store;
use anyhow::{Context, Result};
use std::fs;
use std::io::{IsTerminal, stdin};
use std::path::{Path, PathBuf};

/// Remove what heapmark made of the cache, or stored runs; names folders and size, and asks
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
    /// Built allocators and programs, compiled traces, passed checks: made again when they are needed; downloaded allocators, which need
    /// the network again; and what `heapmark check` found, for the reports of runs
    Cache,
    /// The runs in ./heapmark-results: nothing makes them again
    Runs,
}

/// Runs `heapmark clean`.
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
    let (folder, paths) = match what {
        What::Cache => {
            let root = cache_place()?;
            let (ours, others) = shelves(&root);
            for path in others {
                say!(
                    "{} has no {TAG} of heapmark, so it may be yours: it stays",
                    path.display()
                );
            }
            (root, ours)
        }
        What::Runs => {
            let mut runs = store::runs();
            runs.retain(|dir| {
                let samples = store::samples_of(dir);
                let why = match dir {
                    dir if dir.is_symlink() => "a link",
                    _ if samples.is_symlink() || !samples.is_file() => "no run of heapmark",
                    dir if store::is_being_written(dir) => "being written to",
                    _ => return true,
                };
                say!("{} is {why}: it stays", dir.display());
                false
            });
            (RESULTS.into(), runs)
        }
    };
    let place = folder.display();
    if paths.is_empty() {
        say!("{place}: nothing to remove");
        return Ok(());
    }
    let with_space = |path: PathBuf| (space_of(&path), path);
    let paths: Vec<(u64, PathBuf)> = paths.into_iter().map(with_space).collect();
    let told = |paths: &[(u64, PathBuf)]| {
        let name = match what {
            What::Cache => "cache".to_owned(),
            What::Runs => count(paths.len(), "run"),
        };
        let space: u64 = paths.iter().map(|(space, _)| space).sum();
        let names = paths.iter().filter_map(|(_, path)| path.file_name());
        format!(
            "{name}, {} in {place} ({})",
            bytes(space as f64),
            joined(names.map(|name| name.display()), ", ")
        )
    };
    let ask = || match what {
        What::Cache => agrees(&format!(
            "{}; what was downloaded needs the network again",
            told(&paths)
        )),
        What::Runs => agrees(&told(&paths)),
    };
    if !yes && !ask()? {
        say("nothing is removed");
        return Ok(());
    }
    let _alone = match what {
        What::Cache => Some(hold_cache_alone(&folder)?),
        What::Runs => None,
    };
    let mut removed = Vec::new();
    for (space, path) in paths {
        let is_removed = match what {
            What::Cache => remove(&path).map(|()| true),
            What::Runs => store::remove(&path),
        };
        if !is_removed.with_path("cannot remove", &path)? {
            // A heapmark process has resumed the run since the question.
            say!("{} is being written to: it stays", path.display());
            continue;
        }
        if is_there(&path) {
            say!("{} holds more than a run: that stays", path.display());
        }
        removed.push((space, path));
    }
    // The folder stays if it still holds something, or if it is a cache folder that was there before heapmark.
    let tag = folder.join(TAG);
    if what == What::Runs || removed.iter().any(|(_, path)| *path == tag) {
        let _ = fs::remove_dir(&folder);
    }
    match removed.is_empty() {
        true => say("nothing is removed"),
        false => say!("removed: {}", told(&removed)),
    }
    Ok(())
}

fn agrees(what: &str) -> Result<bool> {
    // Printed in a single write: a terminal echoes typed characters wherever the cursor is at that moment.
    let question = format!("{}: remove? [y/N] ", plain(what));
    eprint!("{question}");
    let mut answer = String::new();
    stdin()
        .read_line(&mut answer)
        .context("cannot read stdin")?;
    Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

/// Removes a file or a folder. The tag of a folder goes last: if the removal is interrupted, `clean` still recognises the rest next time.
fn remove(path: &Path) -> std::io::Result<()> {
    if path.is_file() {
        return fs::remove_file(path);
    }
    for inside in listing(path).filter(|inside| !inside.ends_with(TAG)) {
        match inside.symlink_metadata()?.is_dir() {
            true => fs::remove_dir_all(inside)?,
            false => fs::remove_file(inside)?,
        }
    }
    fs::remove_dir_all(path)
}
