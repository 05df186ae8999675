//! One allocator as data: the keys of `allocators/*.toml`. README.md there explains each key to people;
//! this file only says what may stand in them and refuses what may not.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// An allocator, or a variant of one: same library, other options.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Allocator {
    /// The name on the command line and in every table; must be the file's name.
    pub name: String,
    /// What it belongs to: `jemalloc` for `jemalloc-decay0`.
    pub family: String,
    /// One line for `heapmark list allocators`.
    pub about: String,
    /// Where its authors publish it.
    #[serde(default)]
    pub home: String,
    /// SPDX expression of the allocator itself.
    #[serde(default)]
    pub licence: String,
    /// Which selections take it.
    pub tier: Tier,
    /// Where the library comes from.
    pub source: Source,
    /// How to make a library from a crate's sources.
    #[serde(default)]
    pub build: Option<Recipe>,
    /// When its sources were written: a year, or a year and a month.
    #[serde(default)]
    pub sources: String,
    /// The flags of its authors' own build, by the line that they come from: `FILE:LINE` of the crate, or an address.
    #[serde(default)]
    pub upstream_flags: BTreeMap<String, Vec<String>>,
    /// As `upstream_flags`, of one processor.
    #[serde(default)]
    pub upstream_flags_for: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Flags in which our build differs from theirs, with the reason; `*` stands for any run of characters.
    #[serde(default)]
    pub differences: BTreeMap<String, String>,
    /// Set in the measured process, besides `LD_PRELOAD`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Variables that configure it, for whatever runs in its user's own environment: see [`super::Settings`].
    #[serde(default)]
    pub reads: Vec<String>,
    /// How it is asked to give memory back (MM).
    #[serde(default)]
    pub purge: Option<Purge>,
    /// Functions that only libraries of this family export: one that is brought by its path and has them all is purged so.
    #[serde(default)]
    pub known_by: Vec<String>,
    /// In the user's folder: that it stands in the place of ours of that name.
    #[serde(default)]
    pub replace: bool,
    /// How the library is asked for its version.
    #[serde(default)]
    pub version: Option<VersionProbe>,
    /// What its version must contain where it is measured: whether it works as its name says is known in the process only.
    #[serde(default)]
    pub expects: Option<String>,
    /// Functions of the malloc family or C++ operators that it leaves to libc or libstdc++, with the reason. Files may
    /// say `_Z*` for all operators; once read, each name stands for itself.
    #[serde(default)]
    pub leaves: BTreeMap<String, String>,
    /// Known limits: workload name (or `fork`) and the reason; such cells end `unsupported`.
    #[serde(default)]
    pub except: BTreeMap<String, String>,
    /// Built without locks: it serves programs of one thread only, and never the guest, which has a thread beside its workers.
    #[serde(default)]
    pub single_threaded: bool,
    /// It hands calls on to libc and is measured all the same.
    #[serde(default)]
    pub wrapper: bool,
}

/// Groups of allocators that suites select by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Measured when nothing is said.
    Main,
    /// Main allocators under other options, and other builds of them.
    Variant,
    /// Hardened allocators: they buy safety with time.
    Hardened,
    /// Known to break programs.
    Experimental,
    /// Not an allocator: the harness's own cost.
    Floor,
    /// Named with a path on the command line.
    #[default]
    User,
}

/// Where the library comes from.
///
/// A `same-as` entry takes from the other what it does not state itself: `home`, `licence`, `sources`, `purge`, `version`,
/// `leaves`, `except` and `wrapper`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Source {
    /// Built by us from the sources in a crate that `crates/sources` pins.
    Crate {
        /// The crate's name.
        name: String,
    },
    /// Found on the system, brought by a package.
    System {
        /// Sonames in `LD_PRELOAD` order.
        files: Vec<String>,
        /// The Debian/Ubuntu package.
        package: String,
    },
    /// The library of another entry, under other options.
    SameAs {
        /// That entry's name.
        name: String,
    },
    /// Brought by the user.
    Path {
        /// Absolute paths (or `~/…`) in `LD_PRELOAD` order.
        files: Vec<PathBuf>,
    },
    /// The C library's own: nothing is preloaded.
    #[default]
    Libc,
    /// The null allocator inside the guest.
    Null,
    /// Whatever serves a command of the user's as it is called: of `heapmark try --keep-env`, never of a file.
    AsCalled,
}

/// A purge call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Purge {
    /// Call a function of the library; it must be the library's own, not libc's.
    Call {
        /// Its name.
        symbol: String,
        /// Up to six arguments: integers, or strings passed as `const char *`.
        #[serde(default)]
        args: Vec<Argument>,
        /// Called by every worker before it ends, not once by the main thread.
        #[serde(default)]
        per_thread: bool,
    },
    /// The environment makes it give memory back at once; nothing is called.
    Configured,
}

/// An argument of a purge call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// Passed in an integer register.
    Integer(i64),
    /// Passed as a C string.
    Text(String),
}

/// How a library says its version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VersionProbe {
    /// The function to call.
    pub symbol: String,
    /// What it returns.
    pub returns: VersionKind,
}

/// The forms in which libraries tell their version.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VersionKind {
    /// `const char *f(...)`, called with null arguments.
    Text,
    /// `int f(void)`, decimal digits `Mmmpp` or `Mmp` as mimalloc writes them.
    Decimal,
    /// jemalloc's `mallctl("version", …)`.
    Mallctl,
}

/// How to compile a library from a crate's sources; see `allocators/README.md`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Recipe {
    /// Groups of files that are compiled alike.
    pub compile: Vec<Unit>,
    /// Include folders, in the crate (or in the configured copy).
    pub include: Vec<String>,
    /// Preprocessor definitions of every file; an empty value defines the bare name.
    pub define: BTreeMap<String, String>,
    /// A file of `KEY=value` lines in the crate, each a definition.
    pub define_from: Option<String>,
    /// Compiler flags of every file.
    pub flags: Vec<String>,
    /// Further compiler flags by processor: `x86_64`, `aarch64`.
    pub flags_for: BTreeMap<String, Vec<String>>,
    /// Further linker flags.
    pub link: Vec<String>,
    /// Functions exported besides the malloc family; `*` stands for any run of characters.
    pub exports: Vec<String>,
    /// Copy a tree and run its `configure` there first.
    pub configure: Option<Configure>,
}

impl Recipe {
    /// The compiler flags of every file here.
    pub fn flags_here(&self) -> impl Iterator<Item = &String> {
        self.flags.iter().chain(here(&self.flags_for))
    }
}

impl Unit {
    /// The compiler flags of these files only, here.
    pub fn flags_here(&self) -> impl Iterator<Item = &String> {
        self.flags.iter().chain(here(&self.flags_for))
    }
}

/// What stands under this processor.
fn here(by_processor: &BTreeMap<String, Vec<String>>) -> impl Iterator<Item = &String> {
    by_processor.get(std::env::consts::ARCH).into_iter().flatten()
}

/// Files that are compiled alike.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Unit {
    /// Paths in the crate; `*` stays within a folder, `**` does not.
    pub files: Vec<String>,
    /// Paths that `files` matches and that are left out.
    pub except: Vec<String>,
    /// Small files of our own in `allocators/extra/`.
    pub extra: Vec<String>,
    /// The language, whatever the file's name says.
    pub language: Language,
    /// `-std=`.
    pub std: Option<String>,
    /// Compiler flags of these files only.
    pub flags: Vec<String>,
    /// Further ones by processor.
    pub flags_for: BTreeMap<String, Vec<String>>,
}

/// Which compiler takes a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Language {
    /// The C compiler.
    #[default]
    #[serde(rename = "c")]
    C,
    /// The C++ compiler.
    #[serde(rename = "c++")]
    Cpp,
    /// Assembly with preprocessor lines, through the C compiler.
    #[serde(rename = "assembly")]
    Assembly,
}

/// A `configure` script: it only writes headers, the files are compiled as everywhere else.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Configure {
    /// The script, in the crate.
    pub script: String,
    /// The folder of the crate that is copied, and in which the script runs. Paths of the recipe are then in the copy.
    pub tree: String,
    /// Its arguments; `{build}` is what follows `+` in the crate's version.
    #[serde(default)]
    pub arguments: Vec<String>,
}
