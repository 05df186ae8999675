//! Builds shared libraries and programs from sources, and compiled traces from traces, cached by
//! recipe hash; also inspects libraries that were built elsewhere. Does not decide what is
//! measured.

mod cache;
mod cargo_project;
mod cargo_sources;
mod carried;
pub mod command;
mod compile;
mod compiled_trace;
mod configure;
mod copy;
mod deb;
mod downloaded;
pub mod entry_faults;
mod files;
#[cfg(test)]
mod fingerprint;
pub mod flags;
mod git;
pub mod input;
pub mod inspect;
mod known;
mod launched;
mod library;
mod link;
mod lookup;
mod paths;
mod prebuilt;
pub mod program;
mod recipe;
mod repository;
mod state;
mod step;
mod system;
mod toolchain;
mod trace_pack;
mod user;
mod wheel;

pub use cache::{
    TAG, change as change_in_cache, hash, hash_of_file, hex, hold_alone as hold_cache_alone,
    place as cache_place, preloadable, root as cache_root, shelves, short_hash,
    write as write_to_cache,
};
pub use cargo_project::{CargoBuild, CargoProgram, build_with};
pub use cargo_sources::{directory as sources_of, fetch, pin};
pub use carried::{
    CHECKS, CHECKS_IN_CXX, CHECKS_REPLACING, GUEST, LITTER, REACH, RECORDER, SIZES, TIMER, WITNESS,
};
pub use compiled_trace::{CompiledTrace, Shelf as CompiledTraceShelf, compiled_trace};
pub use copy::copy;
pub use deb::from_deb;
pub use inspect::inspect;
pub use known::purge as purge_of_family;
pub use launched::{ending_with_heapmark, spawn_launcher};
pub use lookup::{original, state};
pub use paths::{in_path, trusted_path};
pub use prebuilt::all as prebuilt_libraries;
pub use program::Executable;
pub use state::State;
pub use system::find as find_library;
pub use system::{libc_version, owner as package_of, package_version};
pub use toolchain::not_taken;
pub use trace_pack::trace_of_pack;
pub use user::{library as library_of_file, rejoined, user};
pub use wheel::{from_wheel, version as wheel_version};

use anyhow::{Context, Result, anyhow};
use heapmark_catalog::{Allocator, Source};
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A library ready to be preloaded.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Library {
    /// The files of `LD_PRELOAD`, in order: absolute paths, links resolved. Empty for libc and for the null allocator.
    pub files: Vec<std::path::PathBuf>,
    /// The libraries that `files` need and load, without those of the system.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<std::path::PathBuf>,
    /// The dynamic linker, if `files` is a whole C library: then it starts the guest, and nothing is preloaded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loader: Option<std::path::PathBuf>,
    /// Where the library comes from: `crate NAME VERSION`, `wheel NAME VERSION`, `deb NAME VERSION`, `package NAME`,
    /// `libc6`, `guest` or `path`.
    pub origin: String,
    /// What built the library, if not this machine's compiler: `prebuilt by gcc 12.2.0`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub built: String,
    /// The version of the pinned crate or the installed package; empty if unknown.
    pub source_version: String,
    /// The names of `catalog::malloc_api` that the library's files define together.
    pub exports: BTreeSet<String>,
    /// The catalogue family whose purge call is used for the library: the library was given by its path, its entry has no
    /// purge, and it exports what identifies that family.
    pub purged_as: Option<String>,
    /// Each of `files`, then of `needs`, as it was when it was first checked, if it existed.
    #[serde(skip)]
    pub first_seen: std::sync::OnceLock<Vec<Option<FileState>>>,
}

impl Library {
    /// Returns the library with what its files need.
    fn with_needs(self) -> Library {
        Library {
            needs: command::parts_beside(&self.files),
            ..self
        }
    }
}

/// The properties of a file that change when it is replaced or written to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FileState {
    /// Device and inode, by which the kernel lists what a process has mapped.
    pub identity: (u64, u64),
    size: u64,
    /// Time of the last modification, in seconds and nanoseconds.
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileState {
    /// Returns the state of a file now; `None` if it is gone.
    pub fn of(file: &Path) -> Option<FileState> {
        let known = std::fs::metadata(file).ok()?;
        Some(FileState {
            identity: (known.dev(), known.ino()),
            size: known.size(),
            modified: (known.mtime(), known.mtime_nsec()),
            changed: (known.ctime(), known.ctime_nsec()),
        })
    }
}

/// The result of building one allocator.
pub struct Built {
    /// The allocator that was asked for.
    pub name: String,
    /// The allocator's library, or the step that failed with the compiler's output.
    pub result: Result<Library>,
    /// Wall time of the build in seconds.
    pub seconds: f64,
    /// Whether the library came from the cache.
    pub cached: bool,
}

/// Builds the selected allocators, several at a time, with at most `jobs` commands running; an allocator that fails does
/// not stop the others. Entries that share a library build it once. The result has one item for each selected allocator, in
/// order.
pub fn build(
    selected: &[&Allocator],
    all: &[Allocator],
    jobs: usize,
    progress: &MultiProgress,
) -> Vec<Built> {
    build_telling(selected, all, jobs, progress, &|_, _| {})
}

/// Does the same as [`build`], and calls `told` when a library is ready, or has failed, with the time that the other libraries will still
/// take, if that is known.
pub fn build_telling(
    selected: &[&Allocator],
    all: &[Allocator],
    jobs: usize,
    progress: &MultiProgress,
    told: &(dyn Fn(&Built, Option<Duration>) + Sync),
) -> Vec<Built> {
    let slots = &step::Slots::new(jobs);
    let bars = &Bars {
        shown: progress,
        all: Mutex::default(),
        began: Instant::now(),
    };
    std::thread::scope(|scope| {
        let mut threads = BTreeMap::new();
        for allocator in selected {
            let original = original(allocator, all);
            let work = move || {
                let built = build_one(original, slots, jobs, bars);
                told(&built, bars.left());
                built
            };
            threads
                .entry(&original.name)
                .or_insert_with(|| scope.spawn(work));
        }
        let outcomes: BTreeMap<_, _> = threads
            .into_iter()
            .map(|(name, thread)| (name, thread.join()))
            .collect();
        let built = |allocator: &&Allocator| {
            let name = allocator.name.clone();
            match &outcomes[&original(allocator, all).name] {
                Ok(built) => Built {
                    name,
                    // Errors cannot be cloned, but their messages can.
                    result: match &built.result {
                        Ok(library) => Ok(library.clone()),
                        Err(error) => Err(anyhow!("{error:#}")),
                    },
                    ..*built
                },
                Err(_) => Built {
                    name,
                    result: Err(anyhow!("the build ended early")),
                    seconds: 0.0,
                    cached: false,
                },
            }
        };
        selected.iter().map(built).collect()
    })
}

/// The progress bars of builds that run at the same time: each counts the files of one library.
struct Bars<'a> {
    shown: &'a MultiProgress,
    all: Mutex<Vec<ProgressBar>>,
    began: Instant,
}

impl Bars<'_> {
    fn of(&self, name: &str) -> ProgressBar {
        let bar = ProgressBar::new(0).with_prefix(name.to_owned());
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push(bar.clone());
        self.shown.add(bar)
    }

    /// Returns the time that the remaining files will take to compile, if each takes as long as the earlier ones.
    fn left(&self) -> Option<Duration> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        let done: u64 = all.iter().map(ProgressBar::position).sum();
        let files: u64 = all.iter().filter_map(ProgressBar::length).sum();
        left(self.began.elapsed(), done, files)
    }
}

fn left(took: Duration, done: u64, of: u64) -> Option<Duration> {
    let more = of.checked_sub(done).filter(|more| *more > 0)?;
    (done > 0).then(|| took.mul_f64(more as f64 / done as f64))
}

fn build_one(allocator: &Allocator, slots: &step::Slots, jobs: usize, bars: &Bars) -> Built {
    let start = Instant::now();
    let with_bar = |template: &str, work: &dyn Fn(&ProgressBar) -> Result<(Library, bool)>| {
        let bar = bars.of(&allocator.name);
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        let result = work(&bar);
        bar.finish_and_clear();
        result
    };
    let outcome = match &allocator.source {
        Source::Crate { .. } if toolchain::Toolchain::find().is_err() => {
            let why = || format!("no compiler; {}", toolchain::PACKAGE);
            prebuilt::find(allocator).and_then(|found| Ok((found.with_context(why)?, true)))
        }
        Source::Crate { .. } | Source::Git(_) => library::Work::new(allocator).and_then(|work| {
            if let Some(library) = work.cached() {
                return Ok((library, true));
            }
            with_bar(
                "{prefix:18} {wide_bar} {pos:>3}/{len:3} {eta:>4} left, {msg}",
                &|bar| work.build(slots, jobs, bar),
            )
        }),
        Source::Wheel { .. } => wheel::Wheel::new(allocator).and_then(|wheel| {
            with_bar("{prefix:18} {spinner} downloading", &|_| wheel.fetch(slots))
        }),
        Source::Deb { .. } => deb::Deb::new(allocator)
            .and_then(|deb| with_bar("{prefix:18} {spinner} downloading", &|_| deb.fetch(slots))),
        _ => match state(allocator, &[]) {
            State::Ready(library) => Ok((library, true)),
            State::Absent { why, line } => Err(anyhow!("{why}; {line}")),
            State::Unsupported { why } | State::Refused { why } => Err(anyhow!(why)),
            State::NotBuilt { line } => Err(anyhow!("not built; {line}")),
        },
    };
    Built {
        name: allocator.name.clone(),
        seconds: start.elapsed().as_secs_f64(),
        cached: matches!(outcome, Ok((_, true))),
        result: outcome.map(|(library, _)| library.with_needs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_known_once_a_file_is_compiled() {
        let left = |done| left(Duration::from_secs(6), done, 8);
        assert_eq!(left(0), None);
        assert_eq!(left(2), Some(Duration::from_secs(18)));
        assert_eq!(left(8), None);
    }
}
