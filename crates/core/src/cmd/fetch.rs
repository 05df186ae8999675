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

/// Runs `heapmark fetch`.
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
    let mut left_out = 0;
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
                        left_out += 1;
                        continue;
                    }
                    State::Unsupported { why } | State::Refused { why } => {
                        say!("{name}: left out, {why}");
                        left_out += 1;
                        continue;
                    }
                    State::Ready(_) | State::NotBuilt { .. } => {
                        let is_wheel = matches!(original.source, Source::Wheel { .. });
                        let library = match is_wheel {
                            true => build::from_wheel(original),
                            false => build::from_deb(original),
                        };
                        match library {
                            Ok(library) => (name, library.files),
                            // As in `build`: a wheel that was not named may be missing.
                            Err(error) if is_wheel && args.names.is_empty() => {
                                say!("{name}: left out, {error:#}");
                                continue;
                            }
                            Err(error) => return Err(error),
                        }
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
    Ok(Exit::Failed.when(left_out > 0 && !args.names.is_empty()))
}
