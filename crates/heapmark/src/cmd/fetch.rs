//! `heapmark fetch`: the allocators' sources, before there is no network.

use super::Exit;
use crate::build;
use crate::catalog::{Catalog, Source};
use crate::file::length;
use crate::report::units::bytes;
use anyhow::Result;
use std::collections::BTreeSet;

/// Download and check the sources of all allocators, so that `heapmark build` needs no network
#[derive(clap::Args)]
pub struct FetchArgs {}

/// Runs the command.
pub fn run(_: FetchArgs) -> Result<Exit> {
    let catalog = Catalog::load()?;
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
    Ok(Exit::Done)
}
