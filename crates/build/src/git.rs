//! `-a mine=git:PATH@REF`: a commit of a repository on this machine becomes an allocator. Only
//! reads the repository: never changes it, fetches nothing, and runs none of its code before its
//! build.

use super::paths::{absolute, in_path, name_of};
use super::repository::{Repository, TreeEntry};
use super::step::Steps;
use super::toolchain::Toolchain;
use anyhow::{Context, Result, anyhow, bail};
use heapmark_catalog::allocator::{Allocator, Commit, CommitBuild, Language, OwnBuild, Tier};
use heapmark_catalog::file::WithPath;
use heapmark_catalog::{Source, Sources};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The prefix of a path that names a commit of a repository.
pub const PREFIX: &str = "git:";
/// The file in a repository that specifies how the allocator is built.
const OWN_BUILD: &str = "heapmark.toml";

/// Splits `PATH@REF` into a repository and a revision. Both may contain `@`: the path is the
/// shortest part that is a folder.
pub fn parts(text: &str) -> (&str, &str) {
    let mut at = text.match_indices('@').map(|(place, _)| place);
    let is_folder =
        |place: &usize| absolute(Path::new(&text[..*place])).is_ok_and(|path| path.is_dir());
    let first = text.find('@');
    match at.find(is_folder).or(first) {
        Some(place) => (&text[..place], &text[place + 1..]),
        None => (text, "HEAD"),
    }
}

/// Returns the allocator that a commit becomes. The commit is built by the command in its own
/// `heapmark.toml`, or else by the recipe of the entry whose files it has.
pub fn allocator(name: String, text: &str, all: &[Allocator]) -> Result<Allocator> {
    let (path, revision) = parts(text);
    let folder = absolute(Path::new(path))?;
    if in_path("git").is_none() {
        bail!("git: is not installed: apt-get install git");
    }
    let repository = Repository::open(&folder)
        .with_context(|| format!("{path} is no git repository that this user may read"))?;
    let hash = repository.commit(revision).with_context(|| {
        format!("no commit `{revision}` in {path}: git -C {path} log tells those that there are")
    })?;
    let files = repository
        .files(&hash)
        .with_context(|| format!("{path}: the files of {hash} cannot be listed"))?;
    if revision == "HEAD" && repository.differs(&hash, &files)? {
        eprintln!(
            "warning: {path} has files that are not as in HEAD, which is measured: not committed, or changed by a filter of git"
        );
    }
    let date = repository.fact(&hash, "%cs").unwrap_or_default();
    let common = Allocator {
        name,
        tier: Tier::User,
        about: format!("{revision} of {path}, from the command line"),
        sources: Sources {
            version: format!("commit {}", &hash[..hash.len().min(10)]),
            date: date.chars().take("2026-11".len()).collect(),
            ..Sources::default()
        },
        ..Allocator::default()
    };
    let commit = |build| {
        Source::Git(Commit {
            repository: folder.clone(),
            hash: hash.clone(),
            build,
        })
    };
    if let Some(build) = own_build(&folder, &repository, &hash, &files)? {
        let name = folder.file_name().unwrap_or_default().to_string_lossy();
        // The family is used as a name in the cache.
        let family = Some(name_of(&name)).filter(|name| !name.is_empty());
        return Ok(Allocator {
            family: family.unwrap_or_else(|| "repository".into()),
            wrapper: build.wrapper,
            source: commit(CommitBuild::Own(build)),
            ..common
        });
    }
    let fitting = |entry| Some((entry, folder_for(entry, &files)?));
    let (entry, place) = all.iter().find_map(fitting).with_context(|| {
        format!(
            "{path} has neither a {OWN_BUILD} nor the files of a known allocator: write {path}/{OWN_BUILD} with `command = \"make\"` \
             and `library = \"libNAME.so\"`"
        )
    })?;
    Ok(Allocator {
        family: entry.family.clone(),
        home: entry.home.clone(),
        licence: entry.licence.clone(),
        build: entry.build.clone(),
        purge: entry.purge.clone(),
        except: entry.except.clone(),
        stops_at: entry.stops_at.clone(),
        source: commit(CommitBuild::Recipe {
            folder: place.to_owned(),
        }),
        ..common
    })
}

/// Returns how a commit is built: by its own file, or, since older commits have none, by the file in the repository's folder.
fn own_build(
    folder: &Path,
    repository: &Repository,
    hash: &str,
    files: &[TreeEntry],
) -> Result<Option<OwnBuild>> {
    let beside = folder.join(OWN_BUILD);
    let entry = files.iter().find(|file| file.path == Path::new(OWN_BUILD));
    let (text, place) = if let Some(entry) = entry {
        (repository.text(entry)?, format!("{hash}:{OWN_BUILD}"))
    } else if beside.is_file() {
        let text = fs::read_to_string(&beside).with_path("reading", &beside)?;
        (text, beside.display().to_string())
    } else {
        return Ok(None);
    };
    let build = toml::from_str(&text).map_err(|why| {
        let what = why.message().lines().next().unwrap_or_default().to_owned();
        anyhow!("{place}: {what}: it has `command` and `library`, both text, and may have `wrapper = true`")
    })?;
    Ok(Some(build))
}

/// Returns the folder of an entry's crate that these files can replace, if they include everything that the entry's recipe compiles.
fn folder_for<'a>(entry: &'a Allocator, files: &[TreeEntry]) -> Option<&'a str> {
    let Source::Crate {
        repository: Some(folder),
        ..
    } = &entry.source
    else {
        return None;
    };
    let recipe = entry.build.as_ref()?;
    // Paths of a configured recipe are relative to the copy of that folder.
    let start = recipe.configure.as_ref().map_or(folder.as_str(), |_| "");
    let paths: Vec<PathBuf> = files
        .iter()
        .map(|file| Path::new(start).join(&file.path))
        .collect();
    let is_there = |pattern: &String| {
        let mut paths = paths.iter();
        paths.any(|path| super::files::is_file(pattern, path))
    };
    recipe
        .compile
        .iter()
        .flat_map(|unit| &unit.files)
        .all(is_there)
        .then_some(folder)
}

/// Returns the version of a commit in the form that recipes expect of a crate: the text after `+`
/// is that of `git describe --long`.
pub fn version(commit: &Commit) -> String {
    let described = Repository::open(&commit.repository)
        .and_then(|repository| repository.description(&commit.hash))
        .unwrap_or_else(|| format!("0.0.0-0-g{}", commit.hash));
    format!("git+{described}")
}

/// Writes the files of a commit into a folder.
pub fn unpack(commit: &Commit, into: &Path) -> Result<()> {
    fs::create_dir_all(into).with_path("creating", into)?;
    Repository::open(&commit.repository)
        .with_context(|| format!("{} is no git repository", commit.repository.display()))?
        .write(&commit.hash, into)
}

/// What a repository's own command has of the caller's environment. Any other variable could change the library, which is kept by
/// the hash of its commit.
const KEPT: [&str; 14] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// Runs a repository's own command, and returns the library that it made.
pub fn run(own: &OwnBuild, folder: &Path, toolchain: &Toolchain, steps: &Steps) -> Result<PathBuf> {
    let mut command = Command::new("sh");
    command.args(["-c", &own.command]).current_dir(folder);
    for (name, _) in std::env::vars_os().filter(|(name, _)| !KEPT.iter().any(|kept| name == kept)) {
        command.env_remove(name);
    }
    // Words after a compiler's name are flags, too.
    for (variable, language) in [("CC", Language::C), ("CXX", Language::Cpp)] {
        if std::env::var_os(variable).is_some() {
            command.env(variable, &toolchain.compiler(language).program);
        }
    }
    steps.run(&format!("`{}`", own.command), &mut command)?;
    let library = folder.join(&own.library);
    let found = library.canonicalize().map_err(|_| {
        anyhow!(
            "`{}` has made no {}, the `library` of {OWN_BUILD}",
            own.command,
            own.library
        )
    })?;
    let within = folder.canonicalize().with_path("finding", folder)?;
    if !found.starts_with(within) {
        bail!(
            "{}, the `library` of {OWN_BUILD}, is not in the repository's folder",
            own.library
        );
    }
    Ok(found)
}
