//! The allocators' sources, which cargo downloads. The pins are embedded in the binary, so that
//! heapmark finds the same sources with and without a checkout. Compiles nothing.

use super::cache;
use super::launched::ending_with_heapmark;
use super::step::Steps;
use anyhow::{Context, Result, anyhow, bail};
use heapmark_catalog::allocator;
use heapmark_catalog::file::WithPath;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};

const LOCK: &str = include_str!("../../sources/Cargo.lock");

/// A crate as the lock file, or a table of releases, pins it.
#[derive(Clone, Debug, Deserialize)]
pub struct Pin {
    /// The package's name.
    pub name: String,
    /// The package's version, including what follows `+`.
    pub version: String,
    /// SHA-256 of the archive that the registry serves.
    #[serde(default)]
    pub checksum: String,
    /// Whether cargo fetches the crate through a package of its own: one package cannot have two
    /// versions of a crate, and the lock file has one version of each.
    #[serde(skip)]
    is_alone: bool,
}

impl Pin {
    /// Returns the package with which cargo downloads this crate.
    fn package(&self) -> Package {
        if !self.is_alone {
            return Package {
                manifest: include_str!("../../sources/Cargo.toml").to_owned(),
                lock: Some(LOCK),
            };
        }
        // cargo ignores what follows `+` in a requirement, and warns about it.
        let version = self.version.split('+').next().unwrap_or_default();
        let name = &self.name;
        Package {
            manifest: format!(
                "[package]\nname = \"heapmark-release\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n\
                 [workspace]\n\n[target.'cfg(any())'.dependencies]\n{name} = \"={version}\"\n"
            ),
            lock: None,
        }
    }

    /// Returns which of the two is to be mended if an archive has another hash than the pinned one.
    fn mend(&self, found: &str) -> String {
        let Pin {
            name,
            version,
            checksum,
            ..
        } = self;
        match self.is_alone {
            true => format!(
                "has SHA-256 {found}, and the pin of {name} {version} (`pin` of an entry, or `sha256` in a table of releases) says \
                 {checksum}: correct that, or delete the archive, and cargo downloads it again"
            ),
            false => {
                "is not the archive that crates/sources/Cargo.lock pins: delete it, and cargo downloads it again".into()
            }
        }
    }
}

/// Returns the pin of a crate: that of a release, or that of the lock file, which is read once.
pub fn pin(name: &str, release: Option<&allocator::ReleasePin>) -> Result<Pin> {
    if let Some(release) = release {
        return Ok(Pin {
            name: name.to_owned(),
            version: release.version.clone(),
            checksum: release.sha256.clone(),
            is_alone: true,
        });
    }
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Pin>,
    }
    static LOCKED: LazyLock<Result<Lock, String>> = LazyLock::new(|| {
        toml::from_str(LOCK).map_err(|error| format!("crates/sources/Cargo.lock: {error}"))
    });
    let mut pins = LOCKED
        .as_ref()
        .map_err(|why| anyhow!("{why}"))?
        .package
        .iter();
    pins.find(|pin| pin.name == name)
        .cloned()
        .ok_or_else(|| anyhow!("crate `{name}` is not pinned; add it to crates/sources/Cargo.toml"))
}

/// Returns the directory of a crate's unpacked sources; downloads the crates of its package the
/// first time.
pub fn directory(pin: &Pin) -> Result<PathBuf> {
    /// Folders of the lock file's packages, kept so that cargo is asked only once.
    static DIRECTORIES: OnceLock<Result<BTreeMap<String, PathBuf>, String>> = OnceLock::new();
    let found = || {
        pin.package()
            .directories()
            .map_err(|error| format!("{error:#}"))
    };
    let of_pin;
    let directories = match pin.is_alone {
        true => {
            of_pin = found();
            &of_pin
        }
        false => DIRECTORIES.get_or_init(found),
    };
    let directories = directories.as_ref().map_err(|why| anyhow!("{why}"))?;
    directories.get(&pin.name).cloned().with_context(|| {
        format!(
            "cargo does not know crate `{}`; add it to crates/sources/Cargo.toml",
            pin.name
        )
    })
}

/// Returns the archive of a crate, which is downloaded if it is missing; fails if it is not the
/// pinned archive.
pub fn fetch(pin: &Pin) -> Result<PathBuf> {
    let archive = archive_of(pin)?;
    refuse_another(pin, &archive, &archive)?;
    Ok(archive)
}

fn archive_of(pin: &Pin) -> Result<PathBuf> {
    let unpacked = directory(pin)?;
    archive(&unpacked)
        .with_context(|| format!("{} is in no registry of cargo's", unpacked.display()))
}

/// Fails unless an archive's copy has the pinned checksum.
fn refuse_another(pin: &Pin, archive: &Path, copy: &Path) -> Result<()> {
    let found = cache::hash_of_file(copy)?;
    if found != pin.checksum {
        bail!("{} {}", archive.display(), pin.mend(&found));
    }
    Ok(())
}

/// Unpacks the sources of a crate into a folder, and returns their folder. They come from the
/// archive that the registry served, whose checksum is pinned: the copy that cargo has unpacked may
/// have been changed since, and cargo does not check it again.
pub fn unpack(pin: &Pin, into: &Path, steps: &Steps) -> Result<PathBuf> {
    let unpacked = directory(pin)?;
    let archive = archive_of(pin)?;
    fs::create_dir_all(into).with_path("creating", into)?;
    // The private copy is checked and unpacked, so that later changes to the original do not
    // matter.
    let copy = into.join("archive");
    fs::copy(&archive, &copy).with_path("reading", &archive)?;
    refuse_another(pin, &archive, &copy)?;
    steps.unpack(&copy, into)?;
    Ok(into.join(unpacked.file_name().unwrap_or_default()))
}

/// Returns the archive of what cargo has unpacked: `registry/src/INDEX/NAME-VERSION` comes from
/// `registry/cache/INDEX/NAME-VERSION.crate`.
fn archive(unpacked: &Path) -> Option<PathBuf> {
    let index = unpacked.parent()?;
    let name = unpacked.file_name()?.to_str()?;
    let sources = index
        .parent()
        .filter(|sources| sources.ends_with("registry/src"))?;
    Some(
        sources
            .with_file_name("cache")
            .join(index.file_name()?)
            .join(format!("{name}.crate")),
    )
}

/// A package whose dependencies cargo downloads without compiling any of them.
struct Package {
    manifest: String,
    /// The lock file; if there is none, cargo writes one beside the manifest in the cache.
    lock: Option<&'static str>,
}

impl Package {
    /// Returns the directories of the package's unpacked dependencies, by the dependencies' names.
    fn directories(&self) -> Result<BTreeMap<String, PathBuf>> {
        let package = self.write()?.join("Cargo.toml");
        let locked: &[&str] = match self.lock {
            Some(_) => &["--locked"],
            None => &[],
        };
        let metadata = || {
            let arguments = ["metadata", "--format-version", "1", "--offline"];
            cargo(&package, &[&arguments, locked].concat())
        };
        let mut output = metadata()?;
        if output.is_err() {
            if let Err(why) = cargo(&package, &[&["fetch"], locked].concat())? {
                bail!(
                    "downloading the allocators' sources: cargo fetch failed: {why} (is there a network?)"
                );
            }
            output = metadata()?;
        }
        let output = output
            .map_err(|why| anyhow!("cargo metadata of {} failed: {why}", package.display()))?;
        #[derive(Deserialize)]
        struct Metadata {
            packages: Vec<Dependency>,
        }
        #[derive(Deserialize)]
        struct Dependency {
            name: String,
            manifest_path: PathBuf,
        }
        let metadata: Metadata =
            serde_json::from_slice(&output).context("reading what cargo metadata wrote")?;
        let directories = metadata.packages.into_iter();
        Ok(directories
            .filter_map(|package| {
                Some((package.name, package.manifest_path.parent()?.to_path_buf()))
            })
            .collect())
    }

    /// Writes the package into the cache, in a folder whose name depends on its content.
    fn write(&self) -> Result<PathBuf> {
        let files = [
            ("Cargo.toml", Some(self.manifest.as_str())),
            ("Cargo.lock", self.lock),
            ("src/lib.rs", Some(include_str!("../../sources/src/lib.rs"))),
        ];
        let files = files
            .into_iter()
            .filter_map(|(name, text)| Some((name, text?)));
        let words = files.clone().flat_map(|(name, text)| [name, text]);
        let folder = cache::root()?
            .join("sources")
            .join(cache::short_hash(words));
        for (name, text) in files {
            let file = folder.join(name);
            if fs::read_to_string(&file).is_ok_and(|there| there == text) {
                continue;
            }
            cache::write(&file, text.as_bytes())?;
        }
        Ok(folder)
    }
}

/// Returns what cargo writes to stdout, or its error message in one line.
fn cargo(package: &Path, arguments: &[&str]) -> Result<Result<Vec<u8>, String>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(&cargo);
    command.args(arguments).arg("--manifest-path").arg(package);
    // Cargo and rustup read configuration files in the start folder and in all folders above it: in
    // a folder that others can write to, those files could make them start any program.
    let output = ending_with_heapmark(command.current_dir("/"))
        .output()
        .with_context(|| {
            format!(
                "starting {}: cargo fetches the sources; install Rust",
                cargo.display()
            )
        })?;
    Ok(if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(in_one_line(&String::from_utf8_lossy(&output.stderr)))
    })
}

/// Returns the error that cargo writes and its deepest cause, which is the last line; between them are only the steps that lead there.
fn in_one_line(words: &str) -> String {
    let mut lines = words.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.clone().find(|line| line.starts_with("error"));
    let last = lines.next_back().unwrap_or("it says nothing");
    match first {
        Some(first) if first != last => format!("{first}: {last}"),
        _ => last.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_has_a_checksum_and_an_exact_version() {
        let pin = pin("tikv-jemalloc-sys", None).unwrap();
        assert_eq!(pin.checksum.len(), 64);
        assert!(pin.version.contains("+5.3.1-0-g"), "{}", pin.version);
    }

    #[test]
    fn the_archive_of_what_cargo_has_unpacked_is_found_by_its_name() {
        let found = archive(Path::new(
            "/home/u/.cargo/registry/src/index.crates.io-1949/a-1.0.0+x",
        ));
        assert_eq!(
            found,
            Some("/home/u/.cargo/registry/cache/index.crates.io-1949/a-1.0.0+x.crate".into())
        );
        assert_eq!(archive(Path::new("/home/u/vendor/a-1.0.0")), None);
    }

    #[test]
    fn an_error_of_cargos_becomes_its_first_line_and_its_deepest_cause() {
        let words = "    Updating crates.io index\nwarning: spurious\nerror: failed to get `a`\n\nCaused by:\n  no \
                     index\n\nCaused by:\n  [6] no such host\n";
        assert_eq!(
            in_one_line(words),
            "error: failed to get `a`: [6] no such host"
        );
        assert_eq!(in_one_line("error: no\n"), "error: no");
        assert_eq!(in_one_line(""), "it says nothing");
    }

    #[test]
    fn an_unknown_crate_says_where_to_add_it() {
        let error = super::pin("no-such-allocator", None)
            .unwrap_err()
            .to_string();
        assert!(error.contains("crates/sources/Cargo.toml"), "{error}");
    }
}
