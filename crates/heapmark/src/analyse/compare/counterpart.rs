//! What two runs have in common, and how they differ.

use super::Difference;
use crate::plan::Case;
use crate::store::{AllocatorInfo, RunFile};
use std::collections::BTreeSet;

/// Facts of a machine that change from minute to minute.
const PASSING: [&str; 2] = ["load_average", "memory_available"];

/// The index of the same case in another plan, or the reason why there is none.
pub fn counterpart(case: &Case, others: &[Case]) -> Result<usize, String> {
    let place = others
        .iter()
        .position(|other| (&other.workload, other.threads) == (&case.workload, case.threads))
        .ok_or("the old run does not have its case")?;
    let ours = &case.parameters;
    let theirs = &others[place].parameters;
    for name in ours.keys().chain(theirs.keys()).collect::<BTreeSet<_>>() {
        let old = theirs.get(name);
        let new = ours.get(name);
        if old != new {
            let [old, new] = [old, new].map(|value| value.map_or("not set", String::as_str));
            return Err(format!("{name} was {old} and is {new}: other work"));
        }
    }
    Ok(place)
}

/// The versions and facts of the machine that differ.
pub fn differences<'a>(old: &'a RunFile, new: &'a RunFile) -> Vec<Difference> {
    let mut all = Vec::new();
    let mut note = |what: &str, old: &str, new: &str| {
        if old != new {
            all.push(Difference {
                what: what.to_owned(),
                old: old.to_owned(),
                new: new.to_owned(),
            });
        }
    };
    note("heapmark", &old.heapmark, &new.heapmark);
    let keys: BTreeSet<&String> = old.machine.keys().chain(new.machine.keys()).collect();
    for key in keys {
        let told = |run: &'a RunFile| run.machine.get(key).map_or("not told", String::as_str);
        if !PASSING.contains(&key.as_str()) {
            note(key, told(old), told(new));
        }
    }
    for info in &new.allocators {
        if let Some(before) = old.allocators.iter().find(|other| other.name == info.name) {
            note(&info.name, &library(before), &library(info));
        }
    }
    all
}

/// A library by its version and its content.
pub fn library(info: &AllocatorInfo) -> String {
    match info.sha256.first() {
        Some(sha256) => format!("{} ({})", info.version, sha256.get(..12).unwrap_or(sha256)),
        None => info.version.clone(),
    }
}
