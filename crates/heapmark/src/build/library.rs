//! One allocator of a crate -> its library: from the cache, or compiled, linked, checked and stored
//! there.

use super::cache::{CachePlace, short_hash};
use super::compile::{self, Bench};
use super::configure;
use super::inspect::{Inspection, inspect};
use super::step::{Slots, Steps};
use super::toolchain::Toolchain;
use super::{Library, cargo_sources, check, link};
use crate::catalog::allocator::{Allocator, Recipe};
use anyhow::{Context, Result, bail};
use indicatif::ProgressBar;
use std::path::{Path, PathBuf};

/// An allocator with a recipe.
pub struct Work<'a> {
    allocator: &'a Allocator,
    recipe: &'a Recipe,
    pin: &'static cargo_sources::Pin,
    toolchain: &'static Toolchain,
    place: CachePlace,
}

impl<'a> Work<'a> {
    /// Finds the library's place in the cache; builds nothing yet.
    pub fn new(allocator: &'a Allocator, crate_name: &str) -> Result<Work<'a>> {
        let recipe = allocator
            .build
            .as_ref()
            .with_context(|| format!("{}: add `[build]`", allocator.name))?;
        let pin = cargo_sources::pin(crate_name)?;
        let toolchain = Toolchain::find()?;
        let place = CachePlace::new("libraries", &allocator.name, &key(recipe, pin, toolchain)?)?;
        Ok(Work {
            allocator,
            recipe,
            pin,
            toolchain,
            place,
        })
    }

    /// The finished library, if the cache has it unchanged.
    pub fn cached(&self) -> Option<Library> {
        let path = self.place.library();
        let inspection = self.place.is_whole().then(|| inspect(&path).ok())??;
        Some(self.describe(path, inspection))
    }

    fn describe(&self, path: PathBuf, inspection: Inspection) -> Library {
        Library {
            files: vec![path.canonicalize().unwrap_or(path)],
            origin: format!("crate {} {}", self.pin.name, self.pin.version),
            source_version: self.pin.version.clone(),
            exports: inspection.exports,
            ..Library::default()
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
        let sources = cargo_sources::unpack(self.pin, &workshop.join("sources"), &steps)?;
        bar.set_message(match self.recipe.configure {
            Some(_) => "configuring",
            None => "compiling",
        });
        let bench = Bench {
            recipe: self.recipe,
            sources: &sources,
            toolchain: self.toolchain,
            steps: &steps,
            workshop,
            jobs,
        };
        let told = |done, all| {
            bar.set_length(all as u64);
            bar.set_position(done as u64);
            bar.set_message("compiling");
        };
        let tree: &Path = match &self.recipe.configure {
            Some(configure) => &configure::tree(configure, &self.pin.version, &bench)?,
            None => &sources,
        };
        let objects = compile::objects(&bench, tree, told)?;
        bar.set_message("linking");
        let built = link::library(&self.allocator.name, &objects, &bench)?;
        let inspection = inspect(&built)?;
        let mut faults = check::completeness(self.allocator, &inspection.exports);
        faults.extend(check::purity(self.recipe, &inspection));
        if !faults.is_empty() {
            bail!(
                "the library is not what its entry says:\n{}",
                faults.join("\n")
            );
        }
        let path = self.place.keep(&built, workshop)?;
        Ok(self.describe(path, inspection))
    }
}

/// A hash of everything that affects the library.
fn key(recipe: &Recipe, pin: &cargo_sources::Pin, toolchain: &Toolchain) -> Result<String> {
    let recipe_text = serde_json::to_string(recipe).context("writing the recipe down")?;
    let extras = recipe.compile.iter().flat_map(|unit| &unit.extra);
    let parts = [
        &toolchain.identity(),
        &pin.name,
        &pin.version,
        &pin.checksum,
        &recipe_text,
    ];
    Ok(short_hash(parts.into_iter().map(String::as_str).chain(
        extras.filter_map(|name| crate::catalog::allocators::extra(name)),
    )))
}
