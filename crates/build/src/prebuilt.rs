//! Libraries of the catalogue's recipes that this machine's compiler did not build: those of the
//! package `heapmark-allocators`, which lie beside the program, and those that another compiler has
//! left in the cache. Both are folders as the cache has them. Builds nothing.

use super::cache::{self, is_as_built, trusted};
use super::inspect::inspect;
use super::recipe::{BUILT, BuiltFrom, of_crate, recipe_hash};
use super::{Library, cargo_sources, carried};
use anyhow::{Result, anyhow, bail};
use heapmark_catalog::file::WithPath;
use heapmark_catalog::folder::listing;
use heapmark_catalog::releases::numbers;
use heapmark_catalog::{Allocator, Source};
use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of prebuilt libraries, beside the program and in the cache.
const FOLDER: &str = "libraries";

/// Returns the library of an allocator's recipe, built by any compiler. Fails if the package has
/// the library but it cannot be used: then it is damaged, or belongs to another version of
/// heapmark.
pub fn find(allocator: &Allocator) -> Result<Option<Library>> {
    let (Source::Crate { name, pin, .. }, Some(recipe)) = (&allocator.source, &allocator.build)
    else {
        return Ok(None);
    };
    let pin = cargo_sources::pin(name, pin.as_ref())?;
    let wanted = recipe_hash(&pin, recipe)?;
    let file = format!("lib{}.so", allocator.name);
    let read = |folder: &Path| library(&pin, &folder.join(&file), &wanted);

    if let Some(package) = carried::installed(FOLDER)
        && let Some(folder) = folders(&package, &allocator.name).next()
    {
        let again = |why: anyhow::Error| {
            anyhow!(
                "{why:#}: install heapmark-allocators {} again, or remove {}",
                env!("CARGO_PKG_VERSION"),
                folder.display()
            )
        };
        let (record, mut library) = read(&folder).map_err(again)?;
        library.built = format!("prebuilt by {}", record.compiler);
        return Ok(Some(library));
    }
    let cache = cache::place()?.join(FOLDER);
    let found = folders(&cache, &allocator.name).find_map(|folder| read(&folder).ok());
    Ok(found.map(|(record, mut library)| {
        library.built = format!("built by {}", record.compiler);
        library
    }))
}

/// Returns the names of the package's allocators; none if it is not installed.
pub fn all() -> Vec<String> {
    let package = carried::installed(FOLDER);
    let folders = package.iter().flat_map(listing);
    folders
        .filter_map(|folder| {
            let name = folder.file_name()?.to_str()?;
            Some(name.rsplit_once('-')?.0.to_owned())
        })
        .collect()
}

/// Returns the folders of an allocator, `NAME-HASH`.
fn folders<'a>(shelf: &Path, name: &'a str) -> impl Iterator<Item = PathBuf> + 'a {
    let is_it = move |folder: &PathBuf| {
        let file = folder.file_name().unwrap_or_default().to_string_lossy();
        let hash = file
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('-'));
        hash.is_some_and(|hash| hash.chars().all(|digit| digit.is_ascii_hexdigit()))
            && folder.is_dir()
    };
    listing(shelf.to_owned()).filter(is_it)
}

/// Returns the library at a path and the record of what it was built from, if it is the wanted
/// library and runs on this machine.
fn library(pin: &cargo_sources::Pin, path: &Path, wanted: &str) -> Result<(BuiltFrom, Library)> {
    trusted(path)?;
    let file = path.with_file_name(BUILT);
    let text = fs::read_to_string(&file).with_path("cannot read", &file)?;
    let record: BuiltFrom = toml::from_str(&text)
        .map_err(|error| anyhow!("{}: {}", file.display(), error.message()))?;
    if record.recipe != wanted {
        bail!("it is of another version of heapmark or of its recipe");
    }
    let inspection = inspect(path)?;
    if !is_as_built(path) {
        bail!("{} is not as it was built", path.display());
    }
    // SAFETY: the function returns a string that is never changed.
    let here = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) }.to_string_lossy();
    if numbers(&inspection.glibc) > numbers(&here) {
        bail!("it needs glibc {}, this is {here}", inspection.glibc);
    }
    Ok((record, of_crate(pin, path.to_owned(), inspection)))
}
