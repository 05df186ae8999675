//! A recipe's files -> object files. The flags that an allocator needs are in its recipe, not here.

use super::files::{Task, tasks};
use super::step::{self, Log, Slots};
use super::toolchain::Toolchain;
use super::{check, configure};
use crate::catalog::allocator::{Language, Recipe};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The tools and the folder of one build.
pub struct Bench<'a> {
    /// The compilers.
    pub toolchain: &'a Toolchain,
    /// Shared by all builds.
    pub slots: &'a Slots,
    /// This build's log.
    pub log: &'a Log,
    /// This build's folder.
    pub workshop: &'a Path,
    /// The most commands that one build may run at once.
    pub jobs: usize,
}

/// Compiles everything that the recipe names in the crate at `directory`; calls `told` after each
/// finished file, with the number of finished files and of all files.
pub fn objects(
    recipe: &Recipe,
    directory: &Path,
    version: &str,
    bench: &Bench,
    told: &(dyn Fn(usize, usize) + Sync),
) -> Result<Vec<PathBuf>> {
    let copy;
    let tree = match &recipe.configure {
        Some(configure) => {
            copy = configure::tree(configure, directory, version, bench)?;
            copy.as_path()
        }
        None => directory,
    };
    let flags = flags(recipe, tree, directory)?;
    let tasks = tasks(recipe, tree, bench.workshop)?;
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let set = |error| {
        if let Ok(mut failed) = failed.lock() {
            failed.get_or_insert(error);
        }
        // Stops the threads: no further file is begun.
        next.store(tasks.len(), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..bench.jobs.clamp(1, tasks.len().max(1)) {
            scope.spawn(|| {
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match compile(task, tree, &flags, bench) {
                        Ok(()) => told(done.fetch_add(1, Ordering::Relaxed) + 1, tasks.len()),
                        Err(error) => set(error),
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        Ok(None) => Ok(tasks.into_iter().map(|task| task.object).collect()),
        Ok(Some(error)) => Err(error),
        Err(_) => bail!("a compiling thread ended early"),
    }
}

fn compile(task: &Task, tree: &Path, flags: &[String], bench: &Bench) -> Result<()> {
    let unit = task.unit;
    let mut command = bench.toolchain.compiler(unit.language).command();
    command.args(flags);
    if let Some(std) = &unit.std {
        command.arg(format!("-std={std}"));
    }
    let language = match unit.language {
        Language::C => "c",
        Language::Cpp => "c++",
        Language::Assembly => "assembler-with-cpp",
    };
    command
        .args(unit.flags_here())
        .args(["-x", language, "-c"])
        .arg(&task.path)
        .arg("-o")
        .arg(&task.object);
    let name = task
        .path
        .strip_prefix(tree)
        .or(task.path.strip_prefix(bench.workshop))
        .unwrap_or(&task.path);
    step::run(
        &format!("compiling {}", name.display()),
        &mut command,
        bench.slots,
        bench.log,
    )?;
    // Assembly code defines itself how it accesses its data; no flag changes that.
    if unit.language != Language::Assembly
        && let Some(fault) = check::tls(&task.object)?
    {
        bail!("compiling {}: {fault}", name.display());
    }
    Ok(())
}

/// The recipe's flags for every file.
fn flags(recipe: &Recipe, tree: &Path, directory: &Path) -> Result<Vec<String>> {
    let mut flags = Vec::new();
    for folder in &recipe.include {
        flags.push(format!("-I{}", tree.join(folder).display()));
    }
    if let Some(file) = &recipe.define_from {
        let path = directory.join(file);
        let text = std::fs::read_to_string(&path)
            .with_context(|| format!("build.define-from: reading {}", path.display()))?;
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        flags.extend(lines.map(|line| format!("-D{line}")));
    }
    for (name, value) in &recipe.define {
        flags.push(if value.is_empty() {
            format!("-D{name}")
        } else {
            format!("-D{name}={value}")
        });
    }
    flags.extend(recipe.flags_here().cloned());
    // `__FILE__` must not put this machine's folder names into the library.
    flags.push(format!("-ffile-prefix-map={}=.", tree.display()));
    Ok(flags)
}
