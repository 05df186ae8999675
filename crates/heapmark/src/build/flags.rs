//! The flags that a library of ours is compiled with, beside those of its authors' own build. Says where they differ and
//! why; builds nothing.

use super::toolchain;
use crate::catalog::allocator::{Allocator, Recipe};
use crate::catalog::family;
use std::collections::BTreeMap;

/// Both sides of one library.
pub struct Flags<'a> {
    /// What its authors' build passes, by the line that says so.
    pub upstream: BTreeMap<&'a str, Vec<&'a str>>,
    /// What we pass to all of its files, or to some, beyond [`for_all`].
    pub ours: Vec<&'a str>,
    /// Where the two differ.
    pub differences: Vec<Difference<'a>>,
    /// Keys of `differences` that fit no difference, here or on another processor.
    pub needless: Vec<&'a str>,
}

/// A flag that only one of the two has.
pub struct Difference<'a> {
    /// The flag.
    pub flag: &'a str,
    /// It is ours; otherwise it is theirs.
    pub is_ours: bool,
    /// What the entry says of it.
    pub reason: Option<&'a str>,
}

/// What every library gets.
pub fn for_all() -> impl Iterator<Item = &'static str> {
    toolchain::for_all()
}

/// The flags of an entry with a recipe; `None` where nothing is compiled.
pub fn flags(allocator: &Allocator) -> Option<Flags<'_>> {
    let ours: Vec<&str> = ours(allocator.build.as_ref()?);
    let mut upstream: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let here = allocator.upstream_flags_for.get(std::env::consts::ARCH).into_iter().flatten();
    for (place, flags) in allocator.upstream_flags.iter().chain(here) {
        upstream.entry(place).or_default().extend(flags.iter().map(String::as_str));
    }
    // A later flag of its kind counts.
    let replaced = |flag: &str| ours.iter().any(|later| *later != flag && kind(later) == kind(flag));
    let has = |flag: &str| ours.contains(&flag) || for_all().any(|of_all| of_all == flag && !replaced(flag));
    let theirs = upstream.values().flatten().filter(|flag| !has(flag)).map(|flag| (*flag, false));
    let wanted = |flag: &&&str| upstream.values().flatten().any(|theirs| theirs == *flag);
    let of_all: Vec<&str> = for_all().collect();
    let only_ours = ours.iter().filter(|flag| !wanted(flag) && !of_all.contains(flag)).map(|flag| (*flag, true));
    let reason = |flag: &str| {
        let mut known = allocator.differences.iter().filter(|(pattern, _)| family::matches(pattern, flag));
        known.next().map(|(_, reason)| reason.as_str())
    };
    let differences: Vec<Difference> =
        theirs.chain(only_ours).map(|(flag, is_ours)| Difference { flag, is_ours, reason: reason(flag) }).collect();
    let elsewhere = allocator.upstream_flags_for.iter().filter(|(processor, _)| *processor != std::env::consts::ARCH);
    let elsewhere: Vec<&str> = elsewhere.flat_map(|(_, flags)| flags.values().flatten()).map(String::as_str).collect();
    let differing = || differences.iter().map(|difference| difference.flag).chain(elsewhere.iter().copied());
    let fits = |pattern: &&str| differing().any(|flag| family::matches(pattern, flag));
    let needless = allocator.differences.keys().map(String::as_str).filter(|pattern| !fits(pattern)).collect();
    Some(Flags { upstream, ours, differences, needless })
}

/// The flags of a recipe that show in code: no warnings, dialects, paths and definitions of names.
fn ours(recipe: &Recipe) -> Vec<&str> {
    let of_units = recipe.compile.iter().flat_map(|unit| unit.flags_here());
    let mut all: Vec<&str> = Vec::new();
    for flag in recipe.flags_here().chain(of_units).map(String::as_str) {
        let shows = ["-O", "-f", "-m", "-U_", "-D_"].iter().any(|start| flag.starts_with(start));
        if shows && !all.contains(&flag) {
            all.push(flag);
        }
    }
    all
}

/// What a flag is one value of: `-O`, `-fvisibility`, `-fomit-frame-pointer` (which `-fno-omit-frame-pointer` undoes).
pub fn kind(flag: &str) -> String {
    match flag {
        _ if flag.starts_with("-O") => "-O".into(),
        _ if flag.starts_with("-U") || flag.starts_with("-D") => flag.to_owned(),
        _ => flag.split('=').next().unwrap_or(flag).replacen("-fno-", "-f", 1).replacen("-mno-", "-m", 1),
    }
}
