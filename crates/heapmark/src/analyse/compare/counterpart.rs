//! What two runs have in common, and how they differ.

use super::Difference;
use crate::plan::Case;
use crate::store::{AllocatorInfo, RunFile};
use std::collections::BTreeSet;

/// Facts of a machine that change from minute to minute.
const PASSING: [&str; 2] = ["load_average", "memory_available"];

/// The index of the same case in another plan, or the reason why there is none.
pub(super) fn counterpart(case: &Case, others: &[Case]) -> Result<usize, String> {
    let same = |other: &Case| (&other.workload, other.threads) == (&case.workload, case.threads);
    let Some(place) = others.iter().position(same) else {
        return Err("the old run does not have its case".into());
    };
    let other = &others[place];
    let names: BTreeSet<&String> = case
        .parameters
        .keys()
        .chain(other.parameters.keys())
        .collect();
    let differs = names
        .into_iter()
        .find(|name| case.parameters.get(*name) != other.parameters.get(*name));
    match differs {
        None => Ok(place),
        Some(name) => {
            let said = |case: &Case| {
                case.parameters
                    .get(name)
                    .cloned()
                    .unwrap_or_else(|| "not set".into())
            };
            Err(format!(
                "{name} was {} and is {}: other work",
                said(other),
                said(case)
            ))
        }
    }
}

/// The versions and facts of the machine that differ.
pub(super) fn differences(old: &RunFile, new: &RunFile) -> Vec<Difference> {
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
    for key in keys
        .into_iter()
        .filter(|key| !PASSING.contains(&key.as_str()))
    {
        let told = |run: &RunFile| {
            run.machine
                .get(key)
                .cloned()
                .unwrap_or_else(|| "not told".into())
        };
        note(key, &told(old), &told(new));
    }
    for info in &new.allocators {
        if let Some(before) = old.allocators.iter().find(|other| other.name == info.name) {
            note(&info.name, &library(before), &library(info));
        }
    }
    all
}

fn library(info: &AllocatorInfo) -> String {
    match info.sha256.first() {
        Some(sha256) => format!("{} ({})", info.version, sha256.get(..12).unwrap_or(sha256)),
        None => info.version.clone(),
    }
}
