//! Sources -> shared libraries, cached by recipe hash; and the inspection of libraries that others made. Decides nothing
//! about what is measured.

mod cache;
mod cargo_sources;
pub mod check;
mod compile;
pub mod inspect;
mod library;
mod link;
mod step;
mod system;
mod toolchain;
mod user;

pub use inspect::{Inspection, Refusal, inspect};
pub use user::user;

use crate::catalog::allocator::{Allocator, Source};
use anyhow::{Result, anyhow, bail};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Whether an allocator can be measured now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It can.
    Ready(Library),
    /// Its library is not built yet.
    NotBuilt {
        /// The command that builds it.
        line: String,
    },
    /// The system does not have it.
    Absent {
        /// What is missing.
        why: String,
        /// The command that brings it.
        line: String,
    },
    /// What is there cannot be used.
    Refused {
        /// What, where, and how to mend it.
        why: String,
    },
}

/// A library ready to be preloaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Library {
    /// What `LD_PRELOAD` takes, in order; absolute, links resolved. Empty for libc and for the null allocator.
    pub files: Vec<PathBuf>,
    /// Where it comes from: `crate NAME VERSION`, `package NAME`, `libc6`, `guest` or `path`.
    pub origin: String,
    /// The pinned crate's or the installed package's version; empty where nobody knows.
    pub source_version: String,
    /// The names of `catalog::family` that it defines, over all files.
    pub exports: BTreeSet<String>,
}

/// What came of building one allocator.
#[derive(Debug)]
pub struct Built {
    /// The allocator that was asked for.
    pub name: String,
    /// Its library, or which step failed and what the compiler said.
    pub result: Result<Library>,
    /// Wall time.
    pub seconds: f64,
    /// Nothing had to be built.
    pub cached: bool,
}

/// The entry whose library `allocator` uses: itself, or what it is the same as.
pub fn original<'a>(allocator: &'a Allocator, all: &'a [Allocator]) -> &'a Allocator {
    match &allocator.source {
        Source::SameAs { name } => all
            .iter()
            .find(|other| other.name == *name)
            .unwrap_or(allocator),
        _ => allocator,
    }
}

/// Looks; builds nothing, and runs no more than the compilers' `--version` and one `dpkg-query`.
pub fn state(allocator: &Allocator, all: &[Allocator]) -> State {
    let original = original(allocator, all);
    match look(original) {
        Ok(state) => state,
        Err(error) => State::Refused {
            why: format!("{error:#}"),
        },
    }
}

fn look(allocator: &Allocator) -> Result<State> {
    Ok(match &allocator.source {
        Source::Crate { name } => {
            if let Err(error) = toolchain::Toolchain::find() {
                return Ok(State::Absent {
                    why: format!("{error:#}"),
                    line: "apt-get install build-essential".into(),
                });
            }
            let cached = library::Work::new(allocator, name)?.cached();
            let line = format!("heapmark build {}", allocator.name);
            cached.map_or(State::NotBuilt { line }, State::Ready)
        }
        Source::System { files, package } => {
            let found: Vec<Option<PathBuf>> = files.iter().map(|file| system::find(file)).collect();
            match files.iter().zip(&found).find(|(_, path)| path.is_none()) {
                Some((missing, _)) => State::Absent {
                    why: format!("{missing} is not in the dynamic linker's folders"),
                    line: format!("apt-get install {package}"),
                },
                None => State::Ready(Library {
                    exports: exports_of(found.iter().flatten())?,
                    files: found.into_iter().flatten().collect(),
                    origin: format!("package {package}"),
                    source_version: system::package_version(package),
                }),
            }
        }
        Source::Path { files } => {
            let files = files
                .iter()
                .map(|file| user::absolute(file))
                .collect::<Result<Vec<_>>>()?;
            let exports = exports_of(&files)?;
            let files = files
                .into_iter()
                .map(|file| file.canonicalize().unwrap_or(file))
                .collect();
            State::Ready(Library {
                files,
                origin: "path".into(),
                source_version: String::new(),
                exports,
            })
        }
        Source::Libc => State::Ready(Library {
            files: Vec::new(),
            origin: "libc6".into(),
            source_version: system::package_version("libc6"),
            exports: exports_of(system::find("libc.so.6").iter())?,
        }),
        Source::Null => State::Ready(Library {
            origin: "guest".into(),
            ..Library::default()
        }),
        Source::SameAs { name } => {
            bail!("there is no allocator `{name}`; see heapmark list allocators")
        }
    })
}

/// What the files define together; one of them must define `malloc`.
fn exports_of<'a>(files: impl IntoIterator<Item = &'a PathBuf>) -> Result<BTreeSet<String>> {
    let mut exports = BTreeSet::new();
    let mut first = None;
    for file in files {
        exports.extend(inspect::inspect_any(file)?.exports);
        first.get_or_insert(file);
    }
    match first {
        Some(path) if !exports.contains("malloc") => Err(Refusal {
            path: path.clone(),
            reason: inspect::Reason::NoMalloc,
        }
        .into()),
        _ => Ok(exports),
    }
}

/// Builds what is selected, several at a time, with at most `jobs` commands running; one that fails stops no other.
/// Entries that share a library build it once. The result has one item for each selected allocator, in order.
pub fn build(
    selected: &[&Allocator],
    all: &[Allocator],
    jobs: usize,
    progress: &MultiProgress,
) -> Vec<Built> {
    let slots = step::Slots::new(jobs);
    let originals: BTreeMap<&str, &Allocator> = selected
        .iter()
        .map(|allocator| original(allocator, all))
        .map(|original| (original.name.as_str(), original))
        .collect();
    let outcomes: BTreeMap<&str, Built> = std::thread::scope(|scope| {
        let threads: Vec<_> = originals
            .iter()
            .map(|(name, allocator)| {
                (
                    *name,
                    scope.spawn(|| build_one(allocator, &slots, jobs, progress)),
                )
            })
            .collect();
        threads
            .into_iter()
            .map(|(name, thread)| {
                (
                    name,
                    thread
                        .join()
                        .unwrap_or_else(|_| failed(name, anyhow!("the build ended early"))),
                )
            })
            .collect()
    });
    selected
        .iter()
        .map(|allocator| {
            let name = original(allocator, all).name.as_str();
            let Some(outcome) = outcomes.get(name) else {
                return failed(&allocator.name, anyhow!("nothing was built"));
            };
            // Errors cannot be copied, their words can.
            let result = outcome
                .result
                .as_ref()
                .map(Library::clone)
                .map_err(|error| anyhow!("{error:#}"));
            Built {
                name: allocator.name.clone(),
                result,
                seconds: outcome.seconds,
                cached: outcome.cached,
            }
        })
        .collect()
}

fn failed(name: &str, error: anyhow::Error) -> Built {
    Built {
        name: name.into(),
        result: Err(error),
        seconds: 0.0,
        cached: false,
    }
}

fn build_one(
    allocator: &Allocator,
    slots: &step::Slots,
    jobs: usize,
    progress: &MultiProgress,
) -> Built {
    let start = Instant::now();
    let outcome = match &allocator.source {
        Source::Crate { name } => library::Work::new(allocator, name).and_then(|work| {
            if let Some(library) = work.cached() {
                return Ok((library, true));
            }
            let bar = progress.add(ProgressBar::new(0).with_prefix(allocator.name.clone()));
            if let Ok(style) =
                ProgressStyle::with_template("{prefix:18} {wide_bar} {pos:>3}/{len:3} {msg}")
            {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            let result = work.build(slots, jobs, &bar);
            bar.finish_and_clear();
            result
        }),
        _ => match state(allocator, &[]) {
            State::Ready(library) => Ok((library, true)),
            State::Absent { why, line } => Err(anyhow!("{why}; {line}")),
            State::Refused { why } => Err(anyhow!(why)),
            State::NotBuilt { line } => Err(anyhow!("not built; {line}")),
        },
    };
    let seconds = start.elapsed().as_secs_f64();
    let (result, cached) = match outcome {
        Ok((library, cached)) => (Ok(library), cached),
        Err(error) => (Err(error), false),
    };
    Built {
        name: allocator.name.clone(),
        result,
        seconds,
        cached,
    }
}
