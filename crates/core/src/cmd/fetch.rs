//! `heapmark fetch`: downloads the allocators' sources while there is a network.

use super::{Exit, catalog, usage};
use crate::build::{self, State};
use crate::catalog::{Allocator, Source};
use crate::file::length;
use crate::report::units::bytes;
use anyhow::Result;
use std::collections::BTreeSet;

/// Download and check the sources of allocators, so that `heapmark build` needs no network
#[derive(clap::Args)]
pub struct FetchArgs {
    /// Names, or releases: mimalloc@3.4.3, jemalloc@5.1..5.3 [default: all allocators, in the releases
    /// that heapmark pins]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

/// Runs the command.
pub fn run(args: FetchArgs) -> Result<Exit> {
    let catalog = catalog()?;
    let mut selected: Vec<&Allocator> = Vec::new();
    if args.names.is_empty() {
        selected.extend(&catalog.allocators);
    }
    for name in &args.names {
        selected.extend(catalog.meant(name).map_err(usage)?);
    }
    // Several allocators may be built from the same sources.
    let mut archives = BTreeSet::new();
    for allocator in selected {
        let original = build::original(allocator, &catalog.allocators);
        let (name, files) = match &original.source {
            Source::Crate { name, pin, .. } => {
                let archive = build::fetch(&build::pin(name, pin.as_ref())?)?;
                (name, vec![archive])
            }
            Source::Wheel { name, .. } | Source::Deb { name, .. } => {
                match build::state(original, &catalog.allocators) {
                    State::Absent { why, line } => {
                        say!("{name}: left out, {why}; {line}");
                        continue;
                    }
                    State::Unsupported { why } | State::Refused { why } => {
                        say!("{name}: left out, {why}");
                        continue;
                    }
                    State::Ready(_) | State::NotBuilt { .. } => {
                        let from = match &original.source {
                            Source::Deb { .. } => build::from_deb,
                            _ => build::from_wheel,
                        };
                        (name, from(original)?.files)
                    }
                }
            }
            _ if args.names.is_empty() => continue,
            source => {
                say!(
                    "{}: nothing to fetch, it comes from: {}",
                    allocator.name,
                    source.kind()
                );
                continue;
            }
        };
        for file in files {
            if archives.insert(file.clone()) {
                let size = bytes(length(&file) as f64);
                say!("{name}: {size} in {}", file.display());
            }
        }
    }
    Ok(Exit::Done)
}
