//! Whether an allocator's library is available, without building it: cheap enough to check for all
//! allocators.

use super::inspect::{Reason, Refusal, inspect_any};
use super::library::Work;
use super::toolchain::Toolchain;
use super::{Library, known, system, user};
use crate::catalog::allocator::{Allocator, Source};
use anyhow::{Result, bail};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Whether an allocator (or a program) can be measured now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State<T = Library> {
    /// It can.
    Ready(T),
    /// It is not built yet.
    NotBuilt {
        /// The command that builds it.
        line: String,
    },
    /// It is not installed on this system.
    Absent {
        /// What is missing.
        why: String,
        /// The command that installs it.
        line: String,
    },
    /// It is installed but cannot be used.
    Refused {
        /// What is wrong, where, and how to fix it.
        why: String,
    },
}

/// The entry whose library `allocator` uses: its own entry, or the one that it is the same as.
pub fn original<'a>(allocator: &'a Allocator, all: &'a [Allocator]) -> &'a Allocator {
    match &allocator.source {
        Source::SameAs { name } => all
            .iter()
            .find(|other| other.name == *name)
            .unwrap_or(allocator),
        _ => allocator,
    }
}

/// Finds the state. Builds nothing, and runs no more than the compilers' `--version` and one
/// `dpkg-query`.
pub fn state(allocator: &Allocator, all: &[Allocator]) -> State {
    let original = original(allocator, all);
    match look(original, all) {
        Ok(state) => state,
        Err(error) => State::Refused {
            why: format!("{error:#}"),
        },
    }
}

fn look(allocator: &Allocator, all: &[Allocator]) -> Result<State> {
    Ok(match &allocator.source {
        Source::Crate { name } => {
            if let Err(error) = Toolchain::find() {
                return Ok(State::Absent {
                    why: format!("{error:#}"),
                    line: "apt-get install build-essential".into(),
                });
            }
            let cached = Work::new(allocator, name)?.cached();
            let line = format!("heapmark build {}", allocator.name);
            cached.map_or(State::NotBuilt { line }, State::Ready)
        }
        Source::System { files, package } => {
            let found: Vec<Option<PathBuf>> = files.iter().map(|file| system::find(file)).collect();
            match files.iter().zip(&found).find(|(_, path)| path.is_none()) {
                Some((missing, _)) => State::Absent {
                    why: match missing.starts_with('/') {
                        true => format!("there is no {missing}"),
                        false => format!("{missing} is not in the dynamic linker's folders"),
                    },
                    line: format!("apt-get install {package}"),
                },
                None => {
                    let files: Vec<PathBuf> = found.into_iter().flatten().collect();
                    let mut package = package.clone();
                    if system::package_version(&package).is_empty() {
                        package = files
                            .first()
                            .and_then(|file| system::owner(file))
                            .unwrap_or(package);
                    }
                    State::Ready(Library {
                        exports: exports_of(&files)?,
                        files,
                        source_version: system::package_version(&package),
                        origin: format!("package {package}"),
                        ..Library::default()
                    })
                }
            }
        }
        Source::Path { files } => {
            let files = files
                .iter()
                .map(|file| user::absolute(file))
                .collect::<Result<Vec<_>>>()?;
            let exports = exports_of(&files)?;
            let purged_as = match &allocator.purge {
                None => known::family(&files, all)?,
                Some(_) => None,
            };
            let files = files
                .into_iter()
                .map(|file| file.canonicalize().unwrap_or(file))
                .collect();
            State::Ready(Library {
                files,
                origin: "path".into(),
                exports,
                purged_as,
                ..Library::default()
            })
        }
        Source::Libc => State::Ready(Library {
            files: Vec::new(),
            origin: "libc6".into(),
            source_version: system::libc_version(),
            exports: exports_of(system::find("libc.so.6").iter())?,
            ..Library::default()
        }),
        Source::Null => State::Ready(Library {
            origin: "guest".into(),
            ..Library::default()
        }),
        Source::AsCalled => State::Ready(Library {
            origin: "as called".into(),
            ..Library::default()
        }),
        Source::SameAs { name } => {
            bail!("there is no allocator `{name}`; see heapmark list allocators")
        }
    })
}

/// The exports of all the files together; one of them must define `malloc`.
fn exports_of<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<BTreeSet<String>> {
    let mut exports = BTreeSet::new();
    let mut first = None;
    for file in files {
        exports.extend(inspect_any(file)?.exports);
        first.get_or_insert(file);
    }
    match first {
        Some(path) if !exports.contains("malloc") => Err(Refusal {
            path: path.clone(),
            reason: Reason::NoMalloc,
        }
        .into()),
        _ => Ok(exports),
    }
}
