//! Releases of an allocator, as data: `releases/FAMILY.toml` lists which package of a registry has
//! which release, and by which entry's recipe it is built. A release is an allocator of the
//! catalogue like any other, named `FAMILY@VERSION`.

use super::allocator::{Allocator, DebPackage, Recipe, ReleasePin, Source, Tier};
use super::allocators::{check, is_sha256};
use super::faults::{Fault, read, suggestion};
use super::folder;
use super::release::Sources;
use super::{did_you_mean, joined};
use anyhow::{Result, bail};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// Kernels whose processes start the guest's own file again.
const STARTED_ANEW: [&str; 2] = ["start", "late-free"];

static RELEASES: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../releases");

/// A release of an allocator.
#[derive(Clone, Debug)]
pub struct Release {
    /// The family, as in the name before `@`.
    pub family: String,
    /// The release's version, as its authors write it.
    pub version: String,
    /// The entry whose recipe, purge and version probe the release uses.
    pub like: String,
    /// When the release was published: a year, or a year and a month.
    pub date: String,
    /// The release's definition, or why the release cannot be obtained.
    pub found: Result<Allocator, String>,
}

impl Release {
    /// Returns the release's name as an allocator.
    pub fn name(&self) -> String {
        format!("{}@{}", self.family, self.version)
    }
}

/// A file of `releases/`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    group: Vec<ReleaseGroup>,
}

/// Releases that are made in the same way.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ReleaseGroup {
    /// The entry that supplies everything that this group does not set.
    like: String,
    /// The crate with the releases' sources, or the Python package with their libraries; neither if
    /// the entry's own package has them, or they cannot be obtained.
    #[serde(rename = "crate")]
    package: Option<String>,
    wheel: Option<String>,
    /// The Debian package with a whole C library, and the package's folder in the pool.
    deb: Option<String>,
    #[serde(default)]
    pool: String,
    /// Another package, with what programs under that C library need.
    beside: Option<DebPackage>,
    /// The libraries in the wheel, in `LD_PRELOAD` order.
    #[serde(default)]
    files: Vec<String>,
    /// The folder of the crate that takes the place of the entry's `repository` in all paths.
    folder: Option<String>,
    /// Keys that replace those of the entry's `[build]`.
    build: Option<toml::Table>,
    /// Replaces the entry's `left-to-libc`.
    left_to_libc: Option<BTreeMap<String, String>>,
    releases: Vec<ReleaseRow>,
}

/// A release, as written in the file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReleaseRow {
    version: String,
    date: String,
    /// The version of the package that has the release.
    at: Option<String>,
    sha256: Option<String>,
    /// Why the release cannot be obtained or built, in place of a package.
    missing: Option<String>,
}

/// Reads all releases of the entries `all`, by family, the oldest first.
pub fn load(all: &[Allocator], faults: &mut Vec<Fault>) -> Vec<Release> {
    load_with(all, folder::users("releases").as_deref(), faults)
}

/// Does the same as [`load`], with the user's folder as an argument.
fn load_with(all: &[Allocator], user: Option<&Path>, faults: &mut Vec<Fault>) -> Vec<Release> {
    let mut releases = Vec::new();
    for (file, text) in folder::texts_with(&RELEASES, "releases", user, faults) {
        let stem = Path::new(&file).file_stem().unwrap_or_default();
        let family = stem.to_string_lossy().into_owned();
        let Some(File { group }) = read::<File>(&file, &text, faults) else {
            continue;
        };
        for group in &group {
            let fault =
                |key: &str, (what, mend): (String, String)| Fault::new(&*file, key, what, mend);
            let Some(entry) = all.iter().find(|one| one.name == group.like) else {
                let names = all.iter().map(|one| one.name.as_str());
                let mend = suggestion(&group.like, names, "name an entry");
                let what = format!("there is no allocator `{}`", group.like);
                faults.push(fault("group.like", (what, mend)));
                continue;
            };
            // Our releases do not belong to an entry that the user has put in place of ours.
            if entry.replace && Path::new(&file).is_relative() {
                continue;
            }
            for row in &group.releases {
                match release(&family, group, row, entry) {
                    Ok(mut release) => {
                        if let Ok(allocator) = &mut release.found {
                            check(&file, allocator, faults);
                        }
                        releases.push(release);
                    }
                    Err(wrong) => {
                        let key = format!("group.releases {}", row.version);
                        faults.push(fault(&key, wrong));
                    }
                }
            }
        }
        let mut of_family: Vec<&Release> = releases
            .iter()
            .filter(|release| release.family == family)
            .collect();
        of_family.sort_by_key(|release| numbers(&release.version));
        for pair in of_family
            .windows(2)
            .filter(|pair| pair[0].version == pair[1].version)
        {
            faults.push(Fault::new(
                &*file,
                format!("group.releases {}", pair[0].version),
                "it is there twice",
                "leave one out",
            ));
        }
    }
    releases.sort_by_key(|release| (release.family.clone(), numbers(&release.version)));
    releases
}

/// Returns the release that a row describes; or what is wrong with the row, and how to mend it.
fn release(
    family: &str,
    group: &ReleaseGroup,
    row: &ReleaseRow,
    entry: &Allocator,
) -> Result<Release, (String, String)> {
    let is_version =
        |text: &str| !text.is_empty() && text.split('.').all(|part| part.parse::<u32>().is_ok());
    if !is_version(&row.version) {
        let what = format!("`{}` is no version", row.version);
        return Err((what, "write it as 3.4.3".into()));
    }
    let pin = match (&row.at, &row.sha256) {
        (Some(version), Some(sha256)) if is_sha256(sha256) => Some(ReleasePin {
            version: version.clone(),
            sha256: sha256.clone(),
        }),
        (None, None) => None,
        _ => {
            let mend = "write both, `at = \"0.1.25\"` and all 64 digits of `sha256`";
            return Err(("its package is not pinned".into(), mend.into()));
        }
    };
    let mut allocator = Allocator {
        name: format!("{family}@{}", row.version),
        aliases: Vec::new(),
        known_by: Vec::new(),
        reads: Vec::new(),
        upstream_flags: BTreeMap::new(),
        upstream_flags_for: BTreeMap::new(),
        differences: BTreeMap::new(),
        tier: Tier::Variant,
        about: format!("{family} {} of {}", row.version, row.date),
        sources: Sources {
            version: row.version.clone(),
            date: row.date.clone(),
            ..entry.sources.clone()
        },
        // With this text, a wrong row of the table cannot measure another release under this name.
        expects: entry.version.as_ref().map(|_| row.version.clone()),
        ..entry.clone()
    };
    if let Some(left) = &group.left_to_libc {
        allocator.left_to_libc.clone_from(left);
    }
    let package = (&group.package, &group.wheel, &group.deb);
    match (package, pin, &row.missing) {
        ((Some(name), None, None), Some(pin), None) => {
            let Source::Crate { repository, .. } = &entry.source else {
                let what = format!("`{}` is not built by heapmark", entry.name);
                return Err((what, "name an entry with [build]".into()));
            };
            allocator.build = Some(recipe(entry, repository.as_deref(), group)?);
            allocator.source = Source::Crate {
                name: name.clone(),
                repository: None,
                pin: Some(pin),
            };
            allocator.sources.of = String::new();
        }
        ((None, Some(name), None), Some(pin), None) => {
            allocator.build = None;
            allocator.source = Source::Wheel {
                name: name.clone(),
                files: group.files.clone(),
                pin: Some(pin),
            };
            allocator.sources.of = String::new();
        }
        ((None, None, Some(name)), Some(pin), None) => {
            allocator.source = Source::Deb {
                name: name.clone(),
                pool: group.pool.clone(),
                pin,
                beside: group.beside.clone(),
            };
            let why = "it starts itself anew, and would be under the system's own C library then";
            let except = STARTED_ANEW.map(|kernel| (kernel.to_owned(), why.to_owned()));
            allocator.except.extend(except);
        }
        ((None, None, None), None, None) if entry.sources.version == row.version => {}
        ((None, None, None), None, None) => {
            let what = format!("`{}` is now {}", entry.name, entry.sources.version);
            return Err((
                what,
                "pin a package of this release: crate, wheel or deb, at, sha256".into(),
            ));
        }
        (_, None, Some(_)) => {}
        _ => {
            let mend = "one of `crate`, `wheel` and `deb` for a group, and `at` with `sha256`, or `missing`, for each release";
            return Err(("it is not clear where it comes from".into(), mend.into()));
        }
    }
    Ok(Release {
        family: family.to_owned(),
        version: row.version.clone(),
        like: entry.name.clone(),
        date: row.date.clone(),
        found: match &row.missing {
            Some(why) => Err(why.clone()),
            None => Ok(allocator),
        },
    })
}

/// Returns the entry's recipe with the group's keys, in the group's folder.
fn recipe(
    entry: &Allocator,
    repository: Option<&str>,
    group: &ReleaseGroup,
) -> Result<Recipe, (String, String)> {
    let wrong = |error: &dyn std::fmt::Display| {
        let mend = "see allocators/README.md for the keys of [build]";
        (format!("its recipe: {error}"), mend.to_owned())
    };
    let mut table = toml::Table::try_from(&entry.build).map_err(|error| wrong(&error))?;
    table.extend(group.build.clone().unwrap_or_default());
    let mut recipe: Recipe = table.try_into().map_err(|error| wrong(&error))?;
    if let (Some(from), Some(to)) = (repository, &group.folder) {
        let units = recipe.compile.iter_mut();
        let of_units = units.flat_map(|unit| unit.files.iter_mut().chain(&mut unit.except));
        for path in of_units.chain(&mut recipe.include) {
            if let Some(rest) = path.strip_prefix(from).filter(|rest| rest.starts_with('/')) {
                *path = format!("{to}{rest}");
            }
        }
    }
    Ok(recipe)
}

/// Returns the releases that `FAMILY@VERSIONS` means, the oldest first: `3.4.3`, or `2.0.9..3.6`,
/// where both ends are included and may be left out. FAMILY is a family, or an entry of it:
/// `mimalloc2`.
pub fn named<'a>(all: &'a [Release], family: &str, versions: &str) -> Result<Vec<&'a Release>> {
    let is_of_family = |release: &&Release| release.family == family || release.like == family;
    let known: Vec<&Release> = all.iter().filter(is_of_family).collect();
    let word = format!("{family}@{versions}");
    if known.is_empty() {
        let families = || all.iter().map(|release| release.family.as_str());
        let hint = did_you_mean(family, families());
        let mut families: Vec<&str> = families().collect();
        families.dedup();
        let families = joined(families, ", ");
        bail!("{word}: no releases of `{family}` are known{hint}: there are those of {families}");
    }
    let there = |release: &&&Release| release.found.is_ok();
    let list = || {
        joined(
            known.iter().filter(there).map(|release| &release.version),
            ", ",
        )
    };
    let (from, to) = match versions.split_once("..") {
        Some(ends) => ends,
        None => {
            let found = known.iter().find(|release| release.version == versions);
            return match found {
                Some(Release {
                    found: Err(why), ..
                }) => bail!("{word} cannot be had: {why}"),
                Some(release) => Ok(vec![release]),
                None => bail!("{word}: no such release is known: take one of {}", list()),
            };
        }
    };
    let ends = [from, to].map(bound);
    let [Some(from), Some(to)] = ends else {
        bail!(
            "{word}: write releases as {family}@A..B, with versions like {}",
            known[0].version
        );
    };
    let found = known.iter().copied().filter(|release| {
        let version = numbers(&release.version);
        // The range `..3.6` includes 3.6.2.
        version >= from && (to.is_empty() || version[..to.len().min(version.len())] <= to[..])
    });
    let found: Vec<&Release> = found.filter(|release| release.found.is_ok()).collect();
    if found.is_empty() {
        bail!("{word}: no release lies between: take some of {}", list());
    }
    Ok(found)
}

/// Returns the numbers that a version consists of.
pub fn numbers(version: &str) -> Vec<u32> {
    version
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect()
}

fn bound(text: &str) -> Option<Vec<u32>> {
    if text.is_empty() {
        return Some(Vec::new());
    }
    text.split('.').map(|part| part.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalog;

    /// Our releases with a user's file beside them, and the file's faults as text.
    fn with_file(text: &str) -> (Vec<Release>, String) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("scudo.toml"), text).unwrap();
        let all = crate::allocators::load().unwrap();
        let mut faults = Vec::new();
        let releases = load_with(&all, Some(folder.path()), &mut faults);
        (releases, joined(&faults, "\n"))
    }

    #[test]
    fn ours_have_a_pin_each_or_are_what_their_entry_is_now() {
        let catalog = Catalog::load().unwrap();
        for release in &catalog.releases {
            let name = release.name();
            let Ok(allocator) = &release.found else {
                continue;
            };
            assert_eq!(allocator.name, name);
            if let Source::Deb { beside, .. } = &allocator.source {
                // Another machine's libgcc may need a newer C library than the release's own.
                let beside = beside.as_ref().unwrap();
                assert!(is_sha256(&beside.pin.sha256), "{name}");
                assert_eq!(beside.files, ["libgcc_s.so.1"]);
            }
            assert!(release.date.starts_with("20"), "{name}");
            match &allocator.source {
                Source::Crate { pin: Some(pin), .. }
                | Source::Wheel { pin: Some(pin), .. }
                | Source::Deb { pin, .. } => {
                    assert!(is_sha256(&pin.sha256), "{name}");
                }
                _ => {
                    let entry = catalog.allocator(&release.like).unwrap();
                    assert_eq!(entry.sources.version, release.version, "{name}");
                }
            }
        }
    }

    #[test]
    fn a_word_means_one_release_or_a_range_with_both_ends() {
        let catalog = Catalog::load().unwrap();
        let meant = |word: &str| match catalog.meant(word) {
            Ok(found) => joined(found.iter().map(|one| &one.name), " "),
            Err(why) => why.to_string(),
        };
        assert_eq!(meant("mimalloc@3.4.3"), "mimalloc@3.4.3");
        assert_eq!(
            meant("mimalloc@2.0.7..2.1"),
            "mimalloc@2.0.7 mimalloc@2.0.9 mimalloc@2.1.2 mimalloc@2.1.4 mimalloc@2.1.6 mimalloc@2.1.7 mimalloc@2.1.9"
        );
        // 3.0.10 is older than 3.1.5; 3.2.7 has no package.
        assert_eq!(
            meant("mimalloc3@..3.2"),
            "mimalloc@3.0.10 mimalloc@3.1.5 mimalloc@3.2.8"
        );
        assert_eq!(meant("jemalloc@5.3.."), "jemalloc@5.3.0 jemalloc@5.3.1");
        for (word, expected) in [
            ("mimaloc@1", "did you mean `mimalloc`?"),
            ("mimalloc@9", "no such release is known: take one of 1.7.0"),
            (
                "mimalloc@3.4.5",
                "cannot be had: no registry has its sources",
            ),
            ("mimalloc@3.7..4", "no release lies between"),
            ("mimalloc@x..", "write releases as mimalloc@A..B"),
        ] {
            let answer = meant(word);
            assert!(answer.contains(expected), "{word}: {answer}");
        }
        // No release is selected unless it is named.
        assert!(catalog.allocators.iter().all(|one| !one.name.contains('@')));
    }

    #[test]
    fn a_release_is_its_entry_with_other_sources() {
        let catalog = Catalog::load().unwrap();
        let release = catalog.allocator("mimalloc@2.2.4").unwrap();
        let recipe = release.build.as_ref().unwrap();
        assert_eq!(recipe.include, ["c_src/mimalloc/v2/include"]);
        assert_eq!(recipe.compile[0].files, ["c_src/mimalloc/v2/src/static.c"]);
        assert_eq!(release.expects.as_deref(), Some("2.2.4"));
        assert_eq!(release.release(None), "mimalloc 2.2.4, 2025-06");
        assert!(release.purge.is_some());
    }

    #[test]
    fn faults_are_told_with_their_place() {
        let row = |keys: &str| {
            format!("[[group]]\nlike = \"scudo\"\nreleases = [{{ date = \"2020\", {keys} }}]")
        };
        let hash = "0".repeat(64);
        for (text, expected) in [
            (row("version = \"x\""), "releases x: `x` is no version"),
            (row("version = \"1.0\""), "pin a package of this release"),
            (
                row("version = \"1.0\", at = \"0.1.0\""),
                "its package is not pinned",
            ),
            (
                row(&format!(
                    "version = \"1.0\", at = \"0.1.0\", sha256 = \"{hash}\""
                )),
                "it is not clear where it comes from",
            ),
            (
                row("version = \"1.0\"").replace("scudo", "scud"),
                "no allocator `scud`; did you mean `scudo`?",
            ),
            (row("version = \"1.0\", sha = \"\""), "sha: unknown"),
            (
                row(
                    "version = \"1.0\", missing = \"x\" }, { date = \"2020\", version = \"1.0\", missing = \"x\"",
                ),
                "releases 1.0: it is there twice",
            ),
        ] {
            let (_, faults) = with_file(&text);
            assert!(faults.contains(expected), "{expected}: {faults}");
        }
    }
}
