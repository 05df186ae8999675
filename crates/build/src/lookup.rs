//! Finds whether an allocator's library is available, without building it, which is cheap enough to do for all allocators.

use super::inspect::{Inspection, inspect_any, no_malloc};
use super::paths::absolute;
use super::state::State;
use super::toolchain::{self, Toolchain};
use super::{Library, known, prebuilt, system};
use anyhow::{Result, bail};
use heapmark_catalog::allocator::{Allocator, Source};
use std::path::PathBuf;

/// Returns the entry whose library `allocator` uses: its own entry, or the one that it is the same as.
pub fn original<'a>(allocator: &'a Allocator, all: &'a [Allocator]) -> &'a Allocator {
    match &allocator.source {
        Source::SameAs { name } => all
            .iter()
            .find(|other| other.name == *name)
            .unwrap_or(allocator),
        _ => allocator,
    }
}

/// Finds an allocator's state. Builds nothing, and runs no more than the compilers' `--version` and one `dpkg-query`.
pub fn state(allocator: &Allocator, all: &[Allocator]) -> State {
    let kernel = rustix::system::uname();
    let kernel = kernel.release().to_string_lossy();
    let mut ranges = allocator.not_on_linux.iter();
    match ranges.find_map(|range| range.why_not_on(&kernel)) {
        Some(why) => State::Unsupported { why },
        None => match State::of(look(original(allocator, all), all)) {
            State::Ready(library) => State::Ready(library.with_needs()),
            missing => missing,
        },
    }
}

fn look(allocator: &Allocator, all: &[Allocator]) -> Result<State> {
    Ok(match &allocator.source {
        Source::Crate { .. } | Source::Git(_) => match built_here(allocator)? {
            State::Ready(mut library) => {
                if matches!(allocator.source, Source::Git(_)) {
                    library.purged_as = purged_as(allocator, &inspected(&library.files)?, all);
                }
                State::Ready(library)
            }
            missing => match prebuilt::find(allocator)? {
                Some(library) => State::Ready(library),
                None => missing,
            },
        },
        Source::Wheel { .. } => super::wheel::Wheel::new(allocator)?.state(),
        Source::Deb { .. } => super::deb::Deb::new(allocator)?.state()?,
        Source::System { files, package } => {
            let found = files.iter().map(|file| system::find(file).ok_or(file));
            match found.collect::<Result<Vec<PathBuf>, _>>() {
                Err(missing) => State::Absent {
                    why: if missing.starts_with('/') {
                        format!("there is no {missing}")
                    } else {
                        format!("{missing} is not in the dynamic linker's folders")
                    },
                    line: format!("apt-get install {package}"),
                },
                Ok(files) => {
                    let mut package = package.clone();
                    if system::package_version(&package).is_empty() {
                        let owner = files.first().and_then(|file| system::owner(file));
                        package = owner.unwrap_or(package);
                    }
                    State::Ready(Library {
                        exports: inspected(&files)?.exports,
                        files,
                        source_version: system::package_version(&package),
                        ..library_from(&format!("package {package}"))
                    })
                }
            }
        }
        Source::Path { files } => {
            let files = files
                .iter()
                .map(|file| absolute(file))
                .collect::<Result<Vec<PathBuf>>>()?;
            let found = inspected(&files)?;
            State::Ready(Library {
                purged_as: purged_as(allocator, &found, all),
                exports: found.exports,
                files: files
                    .into_iter()
                    .map(|file| file.canonicalize().unwrap_or(file))
                    .collect(),
                ..library_from("path")
            })
        }
        Source::Libc => State::Ready(Library {
            source_version: system::libc_version(),
            exports: inspected(system::find("libc.so.6").as_slice())?.exports,
            ..library_from("libc6")
        }),
        Source::Null => State::Ready(library_from("guest")),
        Source::AsCalled => State::Ready(library_from("as called")),
        Source::SameAs { name } | Source::BuiltAs { name, .. } => {
            bail!("there is no allocator `{name}`; see heapmark list allocators")
        }
    })
}

/// Returns the state of a library that this machine's compilers build.
fn built_here(allocator: &Allocator) -> Result<State> {
    if let Err(error) = Toolchain::find() {
        return Ok(State::Absent {
            why: format!("{error:#}"),
            line: toolchain::PACKAGE.into(),
        });
    }
    let work = super::library::Work::new(allocator)?;
    Ok(match work.cached() {
        Some(library) => State::Ready(library),
        None => State::NotBuilt { line: work.line() },
    })
}

/// Returns the family whose purge call a user's library gets, if its entry has none.
fn purged_as(allocator: &Allocator, found: &Inspection, all: &[Allocator]) -> Option<String> {
    match &allocator.purge {
        None => known::family(found, all),
        Some(_) => None,
    }
}

fn library_from(origin: &str) -> Library {
    Library {
        origin: origin.into(),
        ..Library::default()
    }
}

/// Returns what all the files export together; one of them must define `malloc`.
fn inspected(files: &[PathBuf]) -> Result<Inspection> {
    let mut all = Inspection::default();
    for file in files {
        let one = inspect_any(file)?;
        all.exports.extend(one.exports);
        all.others.extend(one.others);
    }
    match files.first() {
        Some(path) if !all.exports.contains("malloc") => Err(no_malloc(path)),
        _ => Ok(all),
    }
}
