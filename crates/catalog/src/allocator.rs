//! One allocator as data: the keys of `allocators/*.toml`. The README.md there explains each key to
//! users; this file only defines the allowed values and refuses all others.

use super::knob::Knob;
use super::linux::NotOnLinux;
use super::release::Sources;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// An allocator, or a variant of one: the same library with other options.
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
    /// A description in one line, for `heapmark list allocators`.
    pub about: String,
    /// The address at which the allocator's authors publish it.
    #[serde(default)]
    pub home: String,
    /// SPDX expression of the allocator itself.
    #[serde(default)]
    pub licence: String,
    /// The tier, by which suites select allocators.
    pub tier: Tier,
    /// Where the library comes from.
    pub source: Source,
    /// How to make a library from a crate's sources.
    pub build: Option<Recipe>,
    /// The name, version and date of the allocator's sources.
    #[serde(default)]
    pub sources: Sources,
    /// The compiler flags of the authors' own build, by the line that they come from: `FILE:LINE`
    /// in the crate, or an address.
    #[serde(default)]
    pub upstream_flags: BTreeMap<String, Vec<String>>,
    /// Like `upstream_flags`, but for one processor.
    #[serde(default)]
    pub upstream_flags_for: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Flags in which our build differs from the authors' build, with the reason; `*` stands for
    /// any run of characters.
    #[serde(default)]
    pub differences: BTreeMap<String, String>,
    /// Environment variables of the measured process, besides `LD_PRELOAD`.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Variables that configure the allocator, for programs that run in the user's own environment:
    /// see [`super::Settings`].
    #[serde(default)]
    pub reads: Vec<String>,
    /// The allocator's settings that are worth a try, for `heapmark tune`.
    #[serde(default, skip_serializing)]
    pub knobs: Vec<Knob>,
    /// How the allocator is made to return memory to the system (MM).
    pub purge: Option<Purge>,
    /// Functions that only libraries of this family export: a library given by its path that
    /// exports them all uses this purge.
    #[serde(default)]
    pub known_by: Vec<String>,
    /// In the user's folder: whether this entry replaces our entry with that name.
    #[serde(default)]
    pub replace: bool,
    /// How the library reports its version.
    pub version: Option<VersionProbe>,
    /// Text that the reported version must contain: only the running process shows whether the
    /// library is configured as its name implies.
    pub expects: Option<String>,
    /// Functions of the malloc family or C++ operators that the library leaves to libc or
    /// libstdc++, with the reason. Files may write `_Z*` for all operators; after reading, each
    /// name has its own entry.
    #[serde(default)]
    pub left_to_libc: BTreeMap<String, String>,
    /// Known limits: a workload's name (or `fork`) and the reason; such cells end `unsupported`.
    #[serde(default)]
    pub except: BTreeMap<String, String>,
    /// Releases of Linux on which the allocator fails: there its cells end `unsupported`.
    #[serde(default)]
    pub not_on_linux: Vec<NotOnLinux>,
    /// Addresses that the allocator accesses on purpose to end a program that misuses it; a fault
    /// there is no accident.
    #[serde(default)]
    pub stops_at: Vec<u64>,
    /// The allocator is built without locks: it serves single-threaded programs only, and never the
    /// guest, which has a thread beside its workers.
    #[serde(default)]
    pub single_threaded: bool,
    /// The allocator passes calls on to libc and is measured anyway.
    #[serde(default)]
    pub wrapper: bool,
}

/// Groups of allocators that suites select by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tier {
    /// Allocators that are measured by default.
    Main,
    /// Main allocators with other options, and other builds of them.
    Variant,
    /// Hardened allocators: they pay for safety with time.
    Hardened,
    /// Allocators that are known to break programs.
    Experimental,
    /// No allocator, but a measurement of the harness's own cost.
    Floor,
    /// An allocator that is given by a path on the command line.
    #[default]
    User,
}

/// Where the library comes from.
///
/// A `same-as` or `built-as` entry takes these keys from the other entry unless it sets them
/// itself: `home`, `licence`, `sources`, `purge`, `version`, `left-to-libc`, `except`,
/// `not-on-linux`, `stops-at` and `wrapper`.
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
        /// The archive, if it is not the one that `crates/sources` pins.
        #[serde(skip_serializing_if = "Option::is_none")]
        pin: Option<ReleasePin>,
    },
    /// Installed on the system, from a package.
    System {
        /// Sonames in `LD_PRELOAD` order.
        files: Vec<String>,
        /// Name of the Debian/Ubuntu package.
        package: String,
    },
    /// In a Python package that `crates/sources` pins, as its authors built it.
    Wheel {
        /// The package's name.
        name: String,
        /// Names of the library's files in the package, in `LD_PRELOAD` order.
        files: Vec<String>,
        /// The wheel, if it is not the one that `crates/sources` pins.
        #[serde(skip_serializing_if = "Option::is_none")]
        pin: Option<ReleasePin>,
    },
    /// A whole C library in a Debian package: only in tables of releases, never in an entry's own
    /// file.
    Deb {
        /// The package's name.
        name: String,
        /// The package's folder in the archive's pool: `main/g/glibc`.
        pool: String,
        /// The package's version and its archive's checksum.
        pin: ReleasePin,
        /// A package with files that the guest also needs, so that no newer ones are loaded from
        /// this machine.
        beside: Option<DebPackage>,
    },
    /// The library of another entry, with other options.
    SameAs {
        /// The name of the entry whose library is used.
        name: String,
    },
    /// The sources of another entry, with further definitions: after reading, that entry's own
    /// source and recipe with these.
    BuiltAs {
        /// The name of the entry whose sources are used.
        name: String,
        /// Preprocessor definitions, like those in `build.define`.
        define: BTreeMap<String, String>,
    },
    /// A library that the user gives by its path.
    Path {
        /// Absolute paths (or `~/…`) in `LD_PRELOAD` order.
        files: Vec<std::path::PathBuf>,
    },
    /// The system's C library: nothing is preloaded.
    #[default]
    Libc,
    /// The null allocator inside the guest.
    Null,
    /// A commit of a repository on this machine: given on the command line, never in a file.
    Git(Commit),
    /// The allocator that the user's command uses by itself: for `heapmark try --keep-env`, never
    /// in a file.
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

/// Files from a Debian package.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DebPackage {
    /// The package's name.
    pub deb: String,
    /// The package's folder in the archive's pool.
    pub pool: String,
    /// The package's version and its archive's checksum.
    pub pin: ReleasePin,
    /// The names of the files that are taken out of the package.
    pub files: Vec<String>,
}

impl Allocator {
    /// Returns the release that the allocator's numbers belong to (`mimalloc 2.5.2, 2026-09`).
    /// `told` is the version that the library, its package or its commit reports.
    pub fn release(&self, told: Option<&str>) -> String {
        self.sources.release(&self.family, told)
    }
}

impl Source {
    /// Returns the kind of the source, in a word.
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

    /// Returns whether heapmark makes the library's file: from sources, or out of a package.
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
    /// Path of the repository.
    pub repository: std::path::PathBuf,
    /// The commit's full hash.
    pub hash: String,
    /// How the commit is built.
    pub build: CommitBuild,
}

impl Commit {
    /// Returns the hash's short form, as people write it.
    pub fn short(&self) -> &str {
        &self.hash[..self.hash.len().min(10)]
    }
}

/// How a commit is built into a library.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommitBuild {
    /// The build command that the repository itself gives.
    Own(OwnBuild),
    /// The recipe of an entry: the commit takes the place of this folder in the entry's crate.
    Recipe {
        /// Folder of the entry's crate that the commit replaces.
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
    /// Whether the library may pass its calls on to libc.
    #[serde(default)]
    pub wrapper: bool,
}

/// How an allocator is made to return memory.
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
        /// Whether every worker calls the function before it ends, and not the main thread once.
        #[serde(default)]
        per_thread: bool,
    },
    /// The allocator's environment makes it return memory at once; nothing is called.
    Configured,
}

/// An argument of a purge call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// An integer, passed in an integer register.
    Integer(i64),
    /// A text, passed as a C string.
    Text(String),
}

/// How a library reports its version.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct VersionProbe {
    /// The function to call.
    pub symbol: String,
    /// The form of what the function returns.
    pub returns: VersionKind,
}

/// The forms in which libraries report their version.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum VersionKind {
    /// `const char *f(...)`, called with null arguments.
    Text,
    /// `int f(void)`, decimal digits `Mmmpp` or `Mmp`, as in mimalloc.
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
    /// A tree that is copied first, with a `configure` script that is run in the copy.
    pub configure: Option<Configure>,
}

impl Recipe {
    /// Returns the compiler flags of every file, on this processor.
    pub fn flags_here(&self) -> impl Iterator<Item = &String> {
        self.flags.iter().chain(here(&self.flags_for))
    }
}

impl Unit {
    /// Returns the compiler flags of these files only, on this processor.
    pub fn flags_here(&self) -> impl Iterator<Item = &String> {
        self.flags.iter().chain(here(&self.flags_for))
    }
}

/// Returns the values for this processor.
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
    /// Paths in the crate; `*` matches within a folder, `**` also across folders.
    pub files: Vec<String>,
    /// Paths that match `files` but are left out.
    pub except: Vec<String>,
    /// Small files of our own in `allocators/extra/`.
    pub extra: Vec<String>,
    /// The language, overriding the file's name.
    pub language: Language,
    /// The language standard, as in `-std=`.
    pub std: Option<String>,
    /// Compiler flags of these files only.
    pub flags: Vec<String>,
    /// Further compiler flags by processor.
    pub flags_for: BTreeMap<String, Vec<String>>,
}

/// The compiler for a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// C, with the C compiler.
    #[default]
    C,
    /// C++, with the C++ compiler.
    #[serde(rename = "c++")]
    Cpp,
    /// Assembly with preprocessor lines, with the C compiler.
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
