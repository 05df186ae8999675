//! Finds, for a library that was given by its path, which family of the catalogue it belongs to, by
//! its exports, and how that family is asked to return memory.

use super::inspect::Inspection;
use heapmark_catalog::allocator::{Allocator, Purge, Source};
use std::collections::BTreeMap;

/// Returns the family whose purge call works for a library: the only family whose `known-by` the
/// library exports, if the library also exports the function that the purge calls. If no other
/// family is recognised, libc counts, since `malloc_trim` is part of the C library's own interface,
/// and a library that defines it means the same.
pub fn family(library: &Inspection, all: &[Allocator]) -> Option<String> {
    let exports = |name: &String| library.exports.contains(name) || library.others.contains(name);
    let is_known = |entry: &&Allocator| entry.known_by.iter().all(exports);
    let families: BTreeMap<&str, &Allocator> = entries(all)
        .filter(is_known)
        .map(|entry| (entry.family.as_str(), entry))
        .collect();
    let (libc, others): (Vec<_>, Vec<_>) = families
        .into_values()
        .partition(|entry| matches!(entry.source, Source::Libc));
    let known = if others.is_empty() { libc } else { others };
    match known.as_slice() {
        [
            Allocator {
                family,
                purge: Some(Purge::Call { symbol, .. }),
                ..
            },
        ] if exports(symbol) => Some(family.clone()),
        _ => None,
    }
}

/// Returns how libraries of a family are asked to return memory.
pub fn purge(family: &str, all: &[Allocator]) -> Option<Purge> {
    entries(all)
        .find(|entry| entry.family == family)?
        .purge
        .clone()
}

/// Returns the entries with a `known-by`, which identifies their family.
fn entries(all: &[Allocator]) -> impl Iterator<Item = &Allocator> {
    all.iter().filter(|entry| !entry.known_by.is_empty())
}
