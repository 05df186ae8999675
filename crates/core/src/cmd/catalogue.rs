//! What can be measured here, and what libraries say of themselves.

use crate::build::libc_version;
use crate::catalog::Catalog;
use crate::execute::{Guest, Subject};
use crate::metric;
use crate::observe::machine;
use anyhow::Result;
use std::collections::BTreeMap;
use std::sync::OnceLock;

/// The catalogue of what can be measured; loaded once, although several parts of a command ask for it.
pub fn catalog() -> Result<&'static Catalog> {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    if let Some(catalog) = CATALOG.get() {
        return Ok(catalog);
    }
    let catalog = Catalog::load()?;
    metric::check(&catalog)?;
    Ok(CATALOG.get_or_init(|| catalog))
}

/// Describes the machine that heapmark runs on, and its C library, which the machine's own files do not reveal.
pub fn described_machine() -> BTreeMap<String, String> {
    let mut machine = machine::describe();
    machine.insert("c_library".into(), libc_version());
    machine
}

/// The version that the library reports; if it reports none, the version of the package that the library came from.
pub fn told_version(guest: &Guest, subject: &Subject) -> Result<Option<String>> {
    let library = &subject.library;
    let is_known = !library.origin.starts_with("crate") && !library.source_version.is_empty();
    let package = is_known.then(|| library.source_version.clone());
    Ok(guest.version(subject)?.or(package))
}

/// Returns why an allocator is not what its name suggests, if that is so: the library reports another version than the catalogue's entry
/// expects.
pub fn unexpected(guest: &Guest, subject: &Subject) -> Result<Option<String>> {
    let Some(expected) = &subject.allocator.expects else {
        return Ok(None);
    };
    let version = guest.version(subject)?.unwrap_or_else(|| "nothing".into());
    Ok((!version.contains(expected))
        .then(|| format!("it works with {version} here, and its row is for {expected}")))
}
