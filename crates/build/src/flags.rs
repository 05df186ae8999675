//! The flags that heapmark compiles a library with, compared with those of its authors' own build:
//! where they differ and why. Builds nothing.

pub use super::toolchain::for_all;

use heapmark_catalog::allocator::{Allocator, Recipe};
use heapmark_catalog::malloc_api;
use std::collections::{BTreeMap, BTreeSet};
use std::env::consts::ARCH;

/// The flags of both builds of one library.
pub struct Flags<'a> {
    /// The flags that the authors' build passes, by the line of their sources that passes them.
    pub upstream: BTreeMap<&'a str, Vec<&'a str>>,
    /// The flags that heapmark passes to all files of the library, or to some, beyond [`for_all`].
    pub ours: Vec<&'a str>,
    /// The differences between `upstream` and `ours`.
    pub differences: Vec<Difference<'a>>,
    /// Keys of the catalogue entry's `differences` that match no difference, here or on another processor.
    pub needless: Vec<&'a str>,
}

/// A flag that only one of the two builds has.
pub struct Difference<'a> {
    /// The flag as the compiler gets it.
    pub flag: &'a str,
    /// Whether heapmark passes the flag; otherwise the authors' build does.
    pub is_ours: bool,
    /// The reason that the catalogue entry gives.
    pub reason: Option<&'a str>,
}

/// Returns the flags of an entry with a recipe; `None` if nothing is compiled.
pub fn flags(allocator: &Allocator) -> Option<Flags<'_>> {
    let ours = ours(allocator.build.as_ref()?);
    let by_processor = &allocator.upstream_flags_for;
    let here = by_processor.get(ARCH).into_iter().flatten();
    let mut upstream: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (place, flags) in allocator.upstream_flags.iter().chain(here) {
        upstream
            .entry(place)
            .or_default()
            .extend(flags.iter().map(String::as_str));
    }
    // Of several flags of the same kind, the last one takes effect.
    let replaced = |flag: &str| {
        ours.iter()
            .any(|later| *later != flag && kind(later) == kind(flag))
    };
    let has = |flag: &str| ours.contains(&flag) || is_for_all(flag) && !replaced(flag);
    let theirs = upstream.values().flatten().copied();
    let wanted: BTreeSet<&str> = theirs.clone().collect();
    let only_ours = ours
        .iter()
        .copied()
        .filter(|flag| !wanted.contains(flag) && !is_for_all(flag));
    let only_theirs = theirs.filter(|flag| !has(flag));
    let reason = |flag: &str| {
        let (_, reason) = allocator
            .differences
            .iter()
            .find(|(pattern, _)| malloc_api::matches(pattern, flag))?;
        Some(reason.as_str())
    };
    let differences: Vec<Difference> = only_theirs
        .map(|flag| (flag, false))
        .chain(only_ours.map(|flag| (flag, true)))
        .map(|(flag, is_ours)| Difference {
            flag,
            is_ours,
            reason: reason(flag),
        })
        .collect();
    let elsewhere = by_processor
        .iter()
        .filter(|(processor, _)| *processor != ARCH)
        .flat_map(|(_, flags)| flags.values().flatten())
        .map(String::as_str);
    let differing: Vec<&str> = differences
        .iter()
        .map(|difference| difference.flag)
        .chain(elsewhere)
        .collect();
    let fits = |pattern: &str| {
        differing
            .iter()
            .any(|flag| malloc_api::matches(pattern, flag))
    };
    let needless = allocator
        .differences
        .keys()
        .map(String::as_str)
        .filter(|pattern| !fits(pattern))
        .collect();
    Some(Flags {
        upstream,
        ours,
        differences,
        needless,
    })
}

fn is_for_all(flag: &str) -> bool {
    for_all().any(|of_all| of_all == flag)
}

/// Returns the flags of a recipe that affect code, without those for warnings, dialects, paths or macro definitions.
fn ours(recipe: &Recipe) -> Vec<&str> {
    let of_units = recipe.compile.iter().flat_map(|unit| unit.flags_here());
    let mut all: Vec<&str> = Vec::new();
    for flag in recipe.flags_here().chain(of_units).map(String::as_str) {
        let shows = ["-O", "-f", "-m", "-U_", "-D_"]
            .iter()
            .any(|start| flag.starts_with(start));
        if shows && !all.contains(&flag) {
            all.push(flag);
        }
    }
    all
}

/// Returns the option that a flag sets: `-O`, `-fvisibility`, `-fomit-frame-pointer` (which
/// `-fno-omit-frame-pointer` undoes).
pub fn kind(flag: &str) -> String {
    match flag {
        _ if flag.starts_with("-O") => "-O".into(),
        _ if flag.starts_with("-U") || flag.starts_with("-D") => flag.to_owned(),
        _ => flag
            .split('=')
            .next()
            .unwrap_or(flag)
            .replacen("-fno-", "-f", 1)
            .replacen("-mno-", "-m", 1),
    }
}
