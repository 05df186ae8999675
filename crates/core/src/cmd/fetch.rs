//! `heapmark fetch`: the allocators' sources, before there is no network.

use super::{Exit, catalog};
use crate::build::{self, State};
use crate::catalog::Source;
use crate::file::length;
use crate::report::units::bytes;
use anyhow::Result;
use std::collections::BTreeSet;

/// Download and check the sources of all allocators, so that `heapmark build` needs no network
#[derive(clap::Args)]
pub struct FetchArgs {}

/// Runs the command.
pub fn run(_: FetchArgs) -> Result<Exit> {
    let catalog = catalog()?;
    let crates = catalog.allocators.iter().filter_map(|it| match &it.source {
        Source::Crate { name, .. } => Some(name.as_str()),
        _ => None,
    });
    // Some are of the same sources.
    let crates: BTreeSet<&str> = crates.collect();
    for name in crates {
        let archive = build::fetch(name)?;
        let size = bytes(length(&archive) as f64);
        say!("{name}: {size} in {}", archive.display());
    }
    for allocator in &catalog.allocators {
        let Source::Wheel { name, .. } = &allocator.source else {
            continue;
        };
        match build::state(allocator, &catalog.allocators) {
            State::Absent { why, line } => say!("{name}: left out, {why}; {line}"),
            State::Unsupported { why } | State::Refused { why } => say!("{name}: left out, {why}"),
            State::Ready(_) | State::NotBuilt { .. } => {
                for file in build::from_wheel(allocator)?.files {
                    let size = bytes(length(&file) as f64);
                    say!("{name}: {size} in {}", file.display());
                }
            }
        }
    }
    Ok(Exit::Done)
}
