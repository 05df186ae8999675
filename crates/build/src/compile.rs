//! Compiles a recipe's files to object files. The flags that an allocator needs are in its recipe,
//! not here.

use super::files::{Task, tasks};
use super::inspect::dynamic_tls;
use super::step::Steps;
use anyhow::{Result, bail};
use heapmark_catalog::allocator::{Language, Recipe};
use heapmark_catalog::file::WithPath;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The tools and the folder of one build.
pub struct Bench<'a> {
    /// The recipe to build.
    pub recipe: &'a Recipe,
    /// The folder of the crate's sources.
    pub sources: &'a Path,
    /// The compilers.
    pub toolchain: &'a super::toolchain::Toolchain,
    /// Runs this build's commands, and logs them.
    pub steps: &'a Steps<'a>,
    /// This build's folder.
    pub workshop: &'a Path,
    /// The most commands that one build may run at once.
    pub jobs: usize,
}

/// Compiles everything that the recipe names in the tree; calls `told` after each finished file,
/// with the number of finished files and of all files.
pub fn objects(
    bench: &Bench,
    tree: &Path,
    told: impl Fn(usize, usize) + Sync,
) -> Result<Vec<PathBuf>> {
    let flags = flags(bench, tree)?;
    let tasks = tasks(bench.recipe, tree, bench.workshop)?;
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let work = || -> Result<()> {
        while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
            // After an error, no further file is compiled.
            compile(task, tree, &flags, bench)
                .inspect_err(|_| next.store(tasks.len(), Ordering::Relaxed))?;
            told(done.fetch_add(1, Ordering::Relaxed) + 1, tasks.len());
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let count = bench.jobs.clamp(1, tasks.len().max(1));
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        threads.into_iter().try_for_each(|thread| {
            thread
                .join()
                .unwrap_or_else(|_| bail!("a compiling thread ended early"))
        })
    })?;
    Ok(tasks.into_iter().map(|task| task.object).collect())
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
    let step = format!("compiling {}", name.display());
    bench.steps.run(&step, &mut command)?;
    // The finished library is not checked instead: a static libstdc++ adds such an access of its
    // own, in code that throws an exception. Assembly code itself defines how it accesses its data;
    // no flag changes that.
    if unit.language != Language::Assembly
        && let Some(how) = dynamic_tls(&task.object)?
    {
        bail!("{step}: {how}; compile it with -ftls-model=initial-exec");
    }
    Ok(())
}

/// Returns the recipe's flags for every file.
fn flags(bench: &Bench, tree: &Path) -> Result<Vec<String>> {
    let recipe = bench.recipe;
    let mut flags = Vec::new();
    let include = |folder: &String| format!("-I{}", tree.join(folder).display());
    flags.extend(recipe.include.iter().map(include));
    if let Some(file) = &recipe.define_from {
        let path = bench.sources.join(file);
        let text = std::fs::read_to_string(&path).with_path("build.define-from: reading", &path)?;
        let lines = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'));
        flags.extend(lines.map(|line| format!("-D{line}")));
    }
    let define = |(name, value): (&String, &String)| match value.is_empty() {
        true => format!("-D{name}"),
        false => format!("-D{name}={value}"),
    };
    flags.extend(recipe.define.iter().map(define));
    flags.extend(recipe.flags_here().cloned());
    // `__FILE__` must not put this machine's folder names into the library.
    flags.push(format!("-ffile-prefix-map={}=.", tree.display()));
    Ok(flags)
}
