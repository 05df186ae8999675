//! The flags that heapmark compiles a library with, compared with those of its authors' own build:
//! where they differ and why. Builds nothing.

use super::toolchain;
use crate::catalog::allocator::{Allocator, Recipe};
use crate::catalog::malloc_api;
use std::collections::BTreeMap;

/// The flags of both builds of one library.
pub struct Flags<'a> {
    /// What its authors' build passes, by the line of their sources that passes it.
    pub upstream: BTreeMap<&'a str, Vec<&'a str>>,
    /// What heapmark passes to all of its files, or to some, beyond [`for_all`].
    pub ours: Vec<&'a str>,
    /// The differences between the two.
    pub differences: Vec<Difference<'a>>,
    /// Keys of `differences` that match no difference, here or on another processor.
    pub needless: Vec<&'a str>,
}

/// A flag that only one of the two builds has.
pub struct Difference<'a> {
    /// The flag.
    pub flag: &'a str,
    /// Whether heapmark passes it; otherwise the authors' build does.
    pub is_ours: bool,
    /// The reason that the catalogue entry gives.
    pub reason: Option<&'a str>,
}

/// What every library gets.
pub fn for_all() -> impl Iterator<Item = &'static str> {
    toolchain::for_all()
}

/// The flags of an entry with a recipe; `None` if nothing is compiled.
pub fn flags(allocator: &Allocator) -> Option<Flags<'_>> {
    let ours: Vec<&str> = ours(allocator.build.as_ref()?);
    let mut upstream: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let here = allocator
        .upstream_flags_for
        .get(std::env::consts::ARCH)
        .into_iter()
        .flatten();
    for (place, flags) in allocator.upstream_flags.iter().chain(here) {
        upstream
            .entry(place)
            .or_default()
            .extend(flags.iter().map(String::as_str));
    }
    // A later flag of the same kind counts.
    let replaced = |flag: &str| {
        ours.iter()
            .any(|later| *later != flag && kind(later) == kind(flag))
    };
    let has = |flag: &str| {
        ours.contains(&flag) || for_all().any(|of_all| of_all == flag && !replaced(flag))
    };
    let theirs = upstream
        .values()
        .flatten()
        .filter(|flag| !has(flag))
        .map(|flag| (*flag, false));
    let wanted = |flag: &&&str| upstream.values().flatten().any(|theirs| theirs == *flag);
    let of_all: Vec<&str> = for_all().collect();
    let only_ours = ours
        .iter()
        .filter(|flag| !wanted(flag) && !of_all.contains(flag))
        .map(|flag| (*flag, true));
    let reason = |flag: &str| {
        let mut known = allocator
            .differences
            .iter()
            .filter(|(pattern, _)| malloc_api::matches(pattern, flag));
        known.next().map(|(_, reason)| reason.as_str())
    };
    let differences: Vec<Difference> = theirs
        .chain(only_ours)
        .map(|(flag, is_ours)| Difference {
            flag,
            is_ours,
            reason: reason(flag),
        })
        .collect();
    let elsewhere = allocator
        .upstream_flags_for
        .iter()
        .filter(|(processor, _)| *processor != std::env::consts::ARCH);
    let elsewhere: Vec<&str> = elsewhere
        .flat_map(|(_, flags)| flags.values().flatten())
        .map(String::as_str)
        .collect();
    let differing = || {
        differences
            .iter()
            .map(|difference| difference.flag)
            .chain(elsewhere.iter().copied())
    };
    let fits = |pattern: &&str| differing().any(|flag| malloc_api::matches(pattern, flag));
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

/// The flags of a recipe that affect code: no warnings, dialects, paths or macro definitions.
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

/// The option that a flag sets: `-O`, `-fvisibility`, `-fomit-frame-pointer` (which
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
