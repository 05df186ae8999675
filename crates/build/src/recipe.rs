//! What identifies a library that is built by a recipe: the hash of everything that it depends on except the compilers, and
//! the record that lies beside it.

use super::cache::short_hash;
use super::cargo_sources::Pin;
use super::inspect::Inspection;
use super::{Library, toolchain};
use anyhow::{Context, Result};
use heapmark_catalog::allocator::Recipe;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The file beside a library that records how the library was built.
pub const BUILT: &str = "built.toml";

/// What a library was built from, and by which compiler.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltFrom {
    /// A hash of everything that affects the library except the compilers.
    pub recipe: String,
    /// The compiler that linked the library, with its version.
    pub compiler: String,
    /// The oldest glibc on which the library runs.
    pub glibc: String,
}

/// Describes a library that was built from a crate.
pub fn of_crate(pin: &Pin, path: PathBuf, inspection: Inspection) -> Library {
    Library {
        files: vec![path.canonicalize().unwrap_or(path)],
        origin: format!("crate {} {}", pin.name, pin.version),
        source_version: pin.version.clone(),
        exports: inspection.exports,
        ..Library::default()
    }
}

/// Returns a hash of everything that affects a library of a crate except the compilers.
pub fn recipe_hash(pin: &Pin, recipe: &Recipe) -> Result<String> {
    let parts = [toolchain::SOURCES, std::env::consts::ARCH];
    let words = [&pin.name, &pin.version, &pin.checksum].map(String::as_str);
    hashed(parts.into_iter().chain(words), Some(recipe))
}

/// Returns a hash of words and of a recipe with the files that it names.
pub fn hashed<'w>(words: impl Iterator<Item = &'w str>, recipe: Option<&Recipe>) -> Result<String> {
    let recipe_text = recipe
        .map(serde_json::to_string)
        .transpose()
        .context("writing the recipe down")?;
    let extras = recipe
        .iter()
        .flat_map(|recipe| &recipe.compile)
        .flat_map(|unit| &unit.extra);
    let texts = extras.filter_map(|name| heapmark_catalog::allocators::extra(name));
    let words: Vec<String> = words.map(String::from).collect();
    let words = words.iter().chain(&recipe_text).map(String::as_str);
    Ok(short_hash(words.chain(texts)))
}
