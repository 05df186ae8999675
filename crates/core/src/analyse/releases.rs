//! The releases of the allocators of a run.

use crate::store::{AllocatorInfo, RunFile};
use std::collections::BTreeMap;

/// The compared allocators of a run that are whole C libraries, each started by its own dynamic linker.
pub fn c_libraries(run: &RunFile) -> Vec<String> {
    let subjects = run
        .subjects
        .iter()
        .filter(|subject| subject.library.loader.is_some());
    let names = subjects.map(|subject| subject.allocator.name.clone());
    names
        .filter(|name| run.plan.allocators.contains(name))
        .collect()
}

/// The release that the numbers of each allocator of a run are from.
pub fn releases(run: &RunFile) -> BTreeMap<String, String> {
    let of = |info: &AllocatorInfo| (info.name.clone(), info.released());
    run.allocators.iter().map(of).collect()
}

/// A name with its release, such as `mimalloc2 (mimalloc 2.5.2, 2026-09)` or `glibc (2.36, 2022)`:
/// a verdict holds for that release alone.
pub fn with_release(name: &str, releases: &BTreeMap<String, String>) -> String {
    let release = releases.get(name).map_or("", String::as_str);
    let prefix = release.get(..name.len());
    let prefix = prefix.filter(|prefix| prefix.eq_ignore_ascii_case(name));
    let rest = prefix.map_or(release, |prefix| &release[prefix.len()..]);
    let words = match rest.trim_start_matches([',', ' ']) {
        "" => return name.to_owned(),
        // The release has another name, which only begins like this one.
        _ if prefix.is_some() && !rest.starts_with([',', ' ']) => release,
        words => words,
    };
    format!("{name} ({words})")
}
