//! Makes the library of one allocator of a crate: takes it from the cache, or compiles, links and
//! checks it, and stores it there.

use super::cache::{CachePlace, is_as_built};
use super::compile::{self, Bench};
use super::configure;
use super::inspect::{Inspection, inspect};
use super::link::{self, language};
use super::recipe::{BUILT, BuiltFrom, hashed, of_crate, recipe_hash};
use super::step::{Slots, Steps};
use super::toolchain::{self, Toolchain};
use super::{Library, cargo_sources, entry_faults, git};
use anyhow::{Context, Result, anyhow, bail};
use heapmark_catalog::allocator::{Allocator, Commit, CommitBuild, OwnBuild, Recipe, Source};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};

/// An allocator that is built from sources.
pub struct Work<'a> {
    allocator: &'a Allocator,
    sources: Sources<'a>,
    /// The library's own name: that of the entry, or that of the family if the source is a commit, which is built only once, whatever name
    /// the user gives it.
    name: &'a str,
    toolchain: &'static Toolchain,
    place: CachePlace,
}

/// Where the library's sources come from.
enum Sources<'a> {
    /// A crate, compiled by a recipe.
    Crate(cargo_sources::Pin, &'a Recipe),
    /// A commit that takes the place of a folder of the recipe's crate.
    Commit(&'a Commit, &'a Recipe, &'a String),
    /// A commit, built by its own command.
    Own(&'a Commit, &'a OwnBuild),
}

impl<'a> Work<'a> {
    /// Finds the library's place in the cache; builds nothing yet.
    pub fn new(allocator: &'a Allocator) -> Result<Work<'a>> {
        let recipe = || {
            allocator
                .build
                .as_ref()
                .with_context(|| format!("{}: add `[build]`", allocator.name))
        };
        let mut name = &allocator.family;
        let sources = match &allocator.source {
            Source::Crate {
                name: package, pin, ..
            } => {
                name = &allocator.name;
                Sources::Crate(cargo_sources::pin(package, pin.as_ref())?, recipe()?)
            }
            Source::Git(commit) => match &commit.build {
                CommitBuild::Own(build) => Sources::Own(commit, build),
                CommitBuild::Recipe { folder } => Sources::Commit(commit, recipe()?, folder),
            },
            _ => bail!("{}: it is not built from sources", allocator.name),
        };
        let toolchain =
            Toolchain::find().map_err(|why| anyhow!("{why}; {}", toolchain::PACKAGE))?;
        let place = CachePlace::new("libraries", name, &key(&sources, toolchain)?)?;
        Ok(Work {
            allocator,
            sources,
            name,
            toolchain,
            place,
        })
    }

    /// Returns what the user can do to have the library built, or to see why it was not.
    pub fn line(&self) -> String {
        match self.sources {
            Sources::Crate(..) => format!("heapmark build {}", self.allocator.name),
            _ => format!("the log of its build is {}", self.place.log().display()),
        }
    }

    /// Returns the finished library if the cache has it unchanged.
    pub fn cached(&self) -> Option<Library> {
        let path = self.place.library();
        let inspection = is_as_built(&path).then(|| inspect(&path).ok())??;
        Some(self.describe(path, inspection))
    }

    fn describe(&self, path: PathBuf, inspection: Inspection) -> Library {
        match &self.sources {
            Sources::Crate(pin, _) => of_crate(pin, path, inspection),
            Sources::Commit(commit, ..) | Sources::Own(commit, _) => Library {
                files: vec![path.canonicalize().unwrap_or(path)],
                origin: format!("commit {}", commit.hash),
                source_version: commit.short().to_owned(),
                exports: inspection.exports,
                ..Library::default()
            },
        }
    }

    /// Builds the library unless the cache has it; also returns whether it came from the cache.
    pub fn build(&self, slots: &Slots, jobs: usize, bar: &ProgressBar) -> Result<(Library, bool)> {
        self.place.build(
            || Ok(self.cached()),
            || bar.set_message("another heapmark builds it"),
            |workshop| self.construct(workshop, slots, jobs, bar),
        )
    }

    fn construct(
        &self,
        workshop: &Path,
        slots: &Slots,
        jobs: usize,
        bar: &ProgressBar,
    ) -> Result<Library> {
        let path = self.place.library();
        if path.exists() {
            eprintln!(
                "{} is not as it was built: it is built again",
                path.display()
            );
        }
        let steps = Steps::new(&self.place.log(), slots)?;
        bar.set_message("finding the sources");
        let into = workshop.join("sources");
        let bench = |recipe, sources| Bench {
            recipe,
            sources,
            toolchain: self.toolchain,
            steps: &steps,
            workshop,
            jobs,
        };
        let built = match &self.sources {
            Sources::Crate(pin, recipe) => {
                let sources = cargo_sources::unpack(pin, &into, &steps)?;
                self.by_recipe(&bench(recipe, &sources), &pin.version, bar)?
            }
            Sources::Commit(commit, recipe, folder) => {
                git::unpack(commit, &into.join(folder))?;
                self.by_recipe(&bench(recipe, &into), &git::version(commit), bar)?
            }
            Sources::Own(commit, build) => {
                git::unpack(commit, &into)?;
                bar.set_message("running its command");
                git::run(build, &into, self.toolchain, &steps)?
            }
        };
        let inspection = inspect(&built)?;
        if let Sources::Crate(_, recipe) = &self.sources {
            let mut faults = entry_faults::completeness(self.allocator, &inspection.exports);
            faults.extend(entry_faults::purity(recipe, &inspection));
            if !faults.is_empty() {
                bail!(
                    "the library is not what its entry says:\n{}",
                    faults.join("\n")
                );
            }
        }
        let mut beside = Vec::new();
        if let Sources::Crate(pin, recipe) = &self.sources {
            let record = BuiltFrom {
                recipe: recipe_hash(pin, recipe)?,
                compiler: self.toolchain.compiler(language(recipe)).name().to_owned(),
                glibc: inspection.glibc.clone(),
            };
            beside.push((BUILT, toml::to_string(&record)?));
        }
        let path = self.place.keep(&built, workshop, &beside)?;
        Ok(self.describe(path, inspection))
    }

    fn by_recipe(&self, bench: &Bench, version: &str, bar: &ProgressBar) -> Result<PathBuf> {
        bar.set_message(match bench.recipe.configure {
            Some(_) => "configuring",
            None => "compiling",
        });
        let progress = |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
            bar.set_message("compiling");
        };
        let tree: &Path = match &bench.recipe.configure {
            Some(configure) => &configure::tree(configure, version, bench)?,
            None => bench.sources,
        };
        let objects = compile::objects(bench, tree, progress)?;
        bar.set_message("linking");
        link::library(self.name, &objects, bench)
    }
}

/// Returns a hash of everything that affects the library.
fn key(sources: &Sources, toolchain: &Toolchain) -> Result<String> {
    let (words, recipe) = match sources {
        Sources::Crate(pin, recipe) => {
            (vec![&pin.name, &pin.version, &pin.checksum], Some(*recipe))
        }
        Sources::Commit(commit, recipe, folder) => (vec![&commit.hash, folder], Some(*recipe)),
        Sources::Own(commit, build) => (vec![&commit.hash, &build.command, &build.library], None),
    };
    let identity = toolchain.identity();
    let parts = [&identity].into_iter().chain(words);
    hashed(parts.map(String::as_str), recipe)
}
