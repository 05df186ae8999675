//! One allocator as data: the keys of `allocators/*.toml`. The README.md there explains each key to
//! users; this file only defines the allowed values and refuses all others.

use super::knob::Knob;
use super::linux::NotOnLinux;
use super::release::Sources;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An allocator, or a variant of one: same library, other options.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Allocator {
    /// The name on the command line and in every table; must be the file's name.
    pub name: String,
    /// The family: `jemalloc` for `jemalloc-decay0`.
    pub family: String,
    /// Shorter names on the command line, as other suites use them. A name that several entries
    /// have means all of them.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// One line for `heapmark list allocators`.
    pub about: String,
    /// The address at which its authors publish it.
    #[serde(default)]
    pub home: String,
    /// SPDX expression of the allocator itself.
    #[serde(default)]
    pub licence: String,
    /// The selections that include it.
    pub tier: Tier,
    /// Where the library comes from.
    pub source: Source,
    /// How to make a library from a crate's sources.
    pub build: Option<Recipe>,
    /// What its sources are: name, version and date.
    #[serde(default)]
    pub sources: Sources,
    /// The flags of its authors' own build, by the line that they come from: `FILE:LINE` of the
    /// crate, or an address.
    #[serde(default)]
    pub upstream_flags: BTreeMap<String, Vec<String>>,
    /// Like `upstream_flags`, for one processor.
    #[serde(default)]
    pub upstream_flags_for: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Flags in which our build differs from theirs, with the reason; `*` stands for any run of
    /// characters.
    #[serde(default)]
    pub differences: BTreeMap<String, String>,
    /// Environment variables of the measured process, besides `LD_PRELOAD`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Variables that configure it, for programs that run in the user's own environment: see
    /// [`super::Settings`].
    #[serde(default)]
    pub reads: Vec<String>,
    /// The allocator's settings that are worth a try, for `heapmark tune`.
    #[serde(default, skip_serializing)]
    pub knobs: Vec<Knob>,
    /// How it is made to return memory (MM).
    pub purge: Option<Purge>,
    /// Functions that only libraries of this family export: a library given by its path that
    /// exports them all uses this purge.
    #[serde(default)]
    pub known_by: Vec<String>,
    /// In the user's folder: whether it replaces our entry of that name.
    #[serde(default)]
    pub replace: bool,
    /// How the library reports its version.
    pub version: Option<VersionProbe>,
    /// Text that its version must contain: only the running process shows whether the library is
    /// configured as its name implies.
    pub expects: Option<String>,
    /// Functions of the malloc family or C++ operators that it leaves to libc or libstdc++, with
    /// the reason. Files may write `_Z*` for all operators; after reading, each name has its own
    /// entry.
    #[serde(default)]
    pub left_to_libc: BTreeMap<String, String>,
    /// Known limits: workload name (or `fork`) and the reason; such cells end `unsupported`.
    #[serde(default)]
    pub except: BTreeMap<String, String>,
    /// Releases of Linux on which it fails: it ends `unsupported` there.
    #[serde(default)]
    pub not_on_linux: Vec<NotOnLinux>,
    /// Addresses that it accesses on purpose to end a program that misuses it; a fault there is no
    /// accident.
    #[serde(default)]
    pub stops_at: Vec<u64>,
    /// Built without locks: it serves programs of one thread only, and never the guest, which has a
    /// thread beside its workers.
    #[serde(default)]
    pub single_threaded: bool,
    /// Passes calls on to libc and is measured anyway.
    #[serde(default)]
    pub wrapper: bool,
}

/// Groups of allocators that suites select by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Measured by default.
    Main,
    /// Main allocators under other options, and other builds of them.
    Variant,
    /// Hardened allocators: they pay for safety with time.
    Hardened,
    /// Known to break programs.
    Experimental,
    /// Not an allocator: measures the harness's own cost.
    Floor,
    /// Given by a path on the command line.
    #[default]
    User,
}

/// Where the library comes from.
///
/// A `same-as` or `built-as` entry takes these from the other unless it sets them itself: `home`, `licence`,
/// `sources`, `purge`, `version`, `left-to-libc`, `except`, `not-on-linux`, `stops-at` and `wrapper`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum Source {
    /// Built by us from the sources in a crate that `crates/sources` pins.
    Crate {
        /// The crate's name.
        name: String,
        /// The folder of the crate that holds the authors' repository: a commit of it can be built
        /// by the same recipe.
        repository: Option<String>,
        /// Which archive, if it is not the one that `crates/sources` pins.
        #[serde(skip_serializing_if = "Option::is_none")]
        pin: Option<ReleasePin>,
    },
    /// Installed on the system, from a package.
    System {
        /// Sonames in `LD_PRELOAD` order.
        files: Vec<String>,
        /// The Debian/Ubuntu package.
        package: String,
    },
    /// In a Python package that `crates/sources` pins, as its authors built it.
    Wheel {
        /// The package's name.
        name: String,
        /// Names of files in it, in `LD_PRELOAD` order.
        files: Vec<String>,
        /// Which wheel, if it is not the one that `crates/sources` pins.
        #[serde(skip_serializing_if = "Option::is_none")]
        pin: Option<ReleasePin>,
    },
    /// A whole C library in a package of Debian: of tables of releases, never of an entry's own file.
    Deb {
        /// The package's name.
        name: String,
        /// The package's folder in the archive's pool: `main/g/glibc`.
        pool: String,
        /// Which package.
        pin: ReleasePin,
        /// What the guest needs besides, so that nothing newer of this machine is loaded.
        beside: Option<DebPackage>,
    },
    /// The library of another entry, under other options.
    SameAs {
        /// The name of that entry.
        name: String,
    },
    /// The sources of another entry, with further definitions: after reading, that entry's own
    /// source and recipe with these.
    BuiltAs {
        /// The name of that entry.
        name: String,
        /// Like `build.define`.
        define: BTreeMap<String, String>,
    },
    /// Given by the user.
    Path {
        /// Absolute paths (or `~/…`) in `LD_PRELOAD` order.
        files: Vec<std::path::PathBuf>,
    },
    /// The C library's own: nothing is preloaded.
    #[default]
    Libc,
    /// The null allocator inside the guest.
    Null,
    /// A commit of a repository on this machine: from the command line, never from a file.
    Git(Commit),
    /// The allocator that the user's command uses by itself: for `heapmark try --keep-env`, never
    /// from a file.
    AsCalled,
}

/// One version of a crate or a Python package, and the archive of it that may be used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReleasePin {
    /// The exact version, with what follows `+`.
    pub version: String,
    /// SHA-256 of the archive that the registry serves.
    pub sha256: String,
}

/// Files in a package of Debian.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebPackage {
    /// The package's name.
    pub deb: String,
    /// The package's folder in the archive's pool.
    pub pool: String,
    /// Which package.
    pub pin: ReleasePin,
    /// The files that are taken out of it, by their names.
    pub files: Vec<String>,
}

impl Allocator {
    /// `mimalloc 2.5.2, 2026-09`: what its numbers are of, if the library, its package or its commit
    /// tells this version.
    pub fn release(&self, told: Option<&str>) -> String {
        self.sources.release(&self.family, told)
    }
}

impl Source {
    /// Where the library comes from, in a word.
    pub fn kind(&self) -> &'static str {
        match self {
            Source::Crate { .. } => "crate",
            Source::Wheel { .. } => "wheel",
            Source::Deb { .. } => "deb",
            Source::System { .. } => "package",
            Source::SameAs { .. } | Source::BuiltAs { .. } => "another entry",
            Source::Path { .. } => "path",
            Source::Libc => "libc6",
            Source::Null => "guest",
            Source::Git(_) => "commit",
            Source::AsCalled => "as called",
        }
    }

    /// Whether heapmark makes the library's file: from sources, or out of a package.
    pub fn is_built(&self) -> bool {
        matches!(
            self,
            Source::Crate { .. } | Source::Wheel { .. } | Source::Deb { .. } | Source::Git(_)
        )
    }
}

/// A commit of a user's repository, and how it becomes a library.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Commit {
    /// The repository.
    pub repository: std::path::PathBuf,
    /// The commit's full hash.
    pub hash: String,
    /// What builds it.
    pub build: CommitBuild,
}

impl Commit {
    /// The hash as people write it.
    pub fn short(&self) -> &str {
        &self.hash[..self.hash.len().min(10)]
    }
}

/// What makes a library of a commit.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommitBuild {
    /// A command of its own.
    Own(OwnBuild),
    /// The recipe of an entry, in whose crate the commit takes the place of this folder.
    Recipe {
        /// The folder.
        folder: String,
    },
}

/// The content of a repository's `heapmark.toml`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct OwnBuild {
    /// The shell command that builds the library, run in the repository's top folder.
    pub command: String,
    /// The library that the command makes, relative to that folder.
    pub library: String,
}

/// A purge call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(
    tag = "kind",
    rename_all = "kebab-case",
    rename_all_fields = "kebab-case",
    deny_unknown_fields
)]
pub enum Purge {
    /// Call a function of the library; it must be the library's own, not libc's.
    Call {
        /// The function's name.
        symbol: String,
        /// Up to six arguments: integers, or strings passed as `const char *`.
        #[serde(default)]
        args: Vec<Argument>,
        /// Called by every worker before it ends, not once by the main thread.
        #[serde(default)]
        per_thread: bool,
    },
    /// The environment makes it return memory at once; nothing is called.
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

/// How a library reports its version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VersionProbe {
    /// The function to call.
    pub symbol: String,
    /// What the function returns.
    pub returns: VersionKind,
}

/// The forms in which libraries report their version.
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
    /// Groups of files that are compiled with the same flags.
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
    /// The compiler flags of every file, on this processor.
    pub fn flags_here(&self) -> impl Iterator<Item = &String> {
        self.flags.iter().chain(here(&self.flags_for))
    }
}

impl Unit {
    /// The compiler flags of these files only, on this processor.
    pub fn flags_here(&self) -> impl Iterator<Item = &String> {
        self.flags.iter().chain(here(&self.flags_for))
    }
}

/// The entries for this processor.
fn here(by_processor: &BTreeMap<String, Vec<String>>) -> impl Iterator<Item = &String> {
    by_processor
        .get(std::env::consts::ARCH)
        .into_iter()
        .flatten()
}

/// Files that are compiled with the same flags.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Unit {
    /// Paths in the crate; `*` stays within a folder, `**` does not.
    pub files: Vec<String>,
    /// Paths that match `files` but are left out.
    pub except: Vec<String>,
    /// Small files of our own in `allocators/extra/`.
    pub extra: Vec<String>,
    /// The language, overriding the file's name.
    pub language: Language,
    /// `-std=`.
    pub std: Option<String>,
    /// Compiler flags of these files only.
    pub flags: Vec<String>,
    /// Further ones by processor.
    pub flags_for: BTreeMap<String, Vec<String>>,
}

/// The compiler for a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// The C compiler.
    #[default]
    C,
    /// The C++ compiler.
    #[serde(rename = "c++")]
    Cpp,
    /// Assembly with preprocessor lines, through the C compiler.
    Assembly,
}

/// A `configure` script: it only writes headers; the files are compiled as usual.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Configure {
    /// The script, in the crate.
    pub script: String,
    /// The folder of the crate that is copied, and in which the script runs. Paths of the recipe
    /// are then relative to the copy.
    pub tree: String,
    /// The arguments of `configure`; `{build}` is the text after `+` in the crate's version.
    #[serde(default)]
    pub arguments: Vec<String>,
}
