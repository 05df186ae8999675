//! A recipe's files -> object files. Which flags an allocator needs stands in its recipe, not here.

use super::check;
use super::step::{self, Log, Slots};
use super::toolchain::Toolchain;
use crate::catalog::allocator::{Configure, Language, Recipe, Unit};
use crate::catalog::allocators;
use anyhow::{Context, Result, anyhow, bail};
use globset::GlobBuilder;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What a build works with.
pub struct Bench<'a> {
    /// The compilers.
    pub toolchain: &'a Toolchain,
    /// Shared by all builds.
    pub slots: &'a Slots,
    /// This build's account.
    pub log: &'a Log,
    /// This build's folder.
    pub workshop: &'a Path,
    /// The most commands that one build may run at once.
    pub jobs: usize,
}

/// A file to compile.
struct Source<'a> {
    path: PathBuf,
    unit: &'a Unit,
    object: PathBuf,
}

/// Compiles everything the recipe names in the crate at `directory`; `told` hears of each finished file and of how many
/// there are.
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
            copy = run_configure(configure, directory, version, bench)?;
            copy.as_path()
        }
        None => directory,
    };
    let flags = flags(recipe, tree, directory)?;
    let sources = sources(recipe, tree, bench.workshop)?;
    let next = AtomicUsize::new(0);
    let done = AtomicUsize::new(0);
    let failed: Mutex<Option<anyhow::Error>> = Mutex::new(None);
    let set = |error| {
        if let Ok(mut failed) = failed.lock() {
            failed.get_or_insert(error);
        }
        // No further file is begun.
        next.store(sources.len(), Ordering::Relaxed);
    };
    std::thread::scope(|scope| {
        for _ in 0..bench.jobs.clamp(1, sources.len().max(1)) {
            scope.spawn(|| {
                while let Some(source) = sources.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match compile(source, tree, &flags, bench) {
                        Ok(()) => told(done.fetch_add(1, Ordering::Relaxed) + 1, sources.len()),
                        Err(error) => set(error),
                    }
                }
            });
        }
    });
    match failed.into_inner() {
        Ok(None) => Ok(sources.into_iter().map(|source| source.object).collect()),
        Ok(Some(error)) => Err(error),
        Err(_) => bail!("a compiling thread ended early"),
    }
}

fn compile(source: &Source, tree: &Path, flags: &[String], bench: &Bench) -> Result<()> {
    let unit = source.unit;
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
        .args(&unit.flags)
        .args(["-x", language, "-c"])
        .arg(&source.path)
        .arg("-o")
        .arg(&source.object);
    let name = source
        .path
        .strip_prefix(tree)
        .or(source.path.strip_prefix(bench.workshop))
        .unwrap_or(&source.path);
    step::run(
        &format!("compiling {}", name.display()),
        &mut command,
        bench.slots,
        bench.log,
    )?;
    // Assembly says itself how it reaches its data; no flag changes that.
    if unit.language != Language::Assembly
        && let Some(fault) = check::tls(&source.object)?
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
    flags.extend(recipe.flags.iter().cloned());
    flags.extend(
        recipe
            .flags_for
            .get(std::env::consts::ARCH)
            .into_iter()
            .flatten()
            .cloned(),
    );
    // `__FILE__` must not carry this machine's folders into the library.
    flags.push(format!("-ffile-prefix-map={}=.", tree.display()));
    Ok(flags)
}

fn sources<'a>(recipe: &'a Recipe, tree: &Path, workshop: &Path) -> Result<Vec<Source<'a>>> {
    let mut all = Vec::new();
    walk(tree, &mut all).with_context(|| format!("reading the sources in {}", tree.display()))?;
    all.sort();
    let mut sources: Vec<Source> = Vec::new();
    let mut add = |path: PathBuf, unit| {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let object = workshop.join(format!("{:03}-{stem}.o", sources.len()));
        sources.push(Source { path, unit, object });
    };
    for unit in &recipe.compile {
        let except = unit
            .except
            .iter()
            .map(|pattern| matcher(pattern))
            .collect::<Result<Vec<_>>>()?;
        for pattern in &unit.files {
            let wanted = matcher(pattern)?;
            let mut found = false;
            for path in &all {
                let name = path.strip_prefix(tree).unwrap_or(path);
                if wanted.is_match(name) && !except.iter().any(|except| except.is_match(name)) {
                    found = true;
                    add(path.clone(), unit);
                }
            }
            if !found {
                bail!(
                    "build.compile.files: `{pattern}` matches no file in {}; did another version rename it?",
                    tree.display()
                );
            }
        }
        for name in &unit.extra {
            let text = allocators::extra(name).ok_or_else(|| {
                anyhow!("build.compile.extra: allocators/extra/{name} is not there")
            })?;
            let path = workshop.join(name);
            std::fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
            add(path, unit);
        }
    }
    Ok(sources)
}

fn matcher(pattern: &str) -> Result<globset::GlobMatcher> {
    let glob = GlobBuilder::new(pattern).literal_separator(true).build();
    Ok(glob
        .with_context(|| format!("build.compile: pattern `{pattern}`"))?
        .compile_matcher())
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), files)?;
        } else {
            files.push(entry.path());
        }
    }
    Ok(())
}

/// Copies the tree, since a `configure` script writes beside itself, and runs the script there.
fn run_configure(
    configure: &Configure,
    directory: &Path,
    version: &str,
    bench: &Bench,
) -> Result<PathBuf> {
    let from = directory.join(&configure.tree);
    let tree = bench.workshop.join("tree");
    let mut files = Vec::new();
    walk(&from, &mut files)
        .with_context(|| format!("build.configure.tree: reading {}", from.display()))?;
    let copy = |from: &Path, to: &Path| -> Result<()> {
        std::fs::create_dir_all(to.parent().unwrap_or(to))
            .and_then(|()| std::fs::copy(from, to))
            .with_context(|| format!("copying {} to {}", from.display(), to.display()))?;
        Ok(())
    };
    for file in &files {
        copy(file, &tree.join(file.strip_prefix(&from).unwrap_or(file)))?;
    }
    copy(&directory.join(&configure.script), &tree.join("configure"))?;
    let build = version.split_once('+').map_or("", |(_, build)| build);
    let mut command = Command::new("sh");
    command
        .arg("configure")
        .args(
            configure
                .arguments
                .iter()
                .map(|argument| argument.replace("{build}", build)),
        )
        .env("CC", bench.toolchain.compiler(Language::C).program())
        .env("CXX", bench.toolchain.compiler(Language::Cpp).program())
        .current_dir(&tree);
    step::run("configure", &mut command, bench.slots, bench.log)?;
    Ok(tree)
}
