//! The allocators' sources, which cargo downloads. The pins are embedded in the binary, so that
//! heapmark finds the same sources with and without a checkout. Compiles nothing.

use super::cache;
use super::launched::ending_with_heapmark;
use super::step::{Steps, last_lines};
use crate::file::WithPath;
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

const FILES: [(&str, &str); 3] = [
    ("Cargo.toml", include_str!("../../../sources/Cargo.toml")),
    ("Cargo.lock", LOCK),
    ("src/lib.rs", include_str!("../../../sources/src/lib.rs")),
];
const LOCK: &str = include_str!("../../../sources/Cargo.lock");

/// A crate as the lock file pins it.
#[derive(Debug, Deserialize)]
pub struct Pin {
    /// Its name.
    pub name: String,
    /// Its version, with what follows `+`.
    pub version: String,
    /// SHA-256 of the archive that the registry serves.
    #[serde(default)]
    pub checksum: String,
}

/// The pin of a crate; the embedded lock file is read once.
pub fn pin(name: &str) -> Result<&'static Pin> {
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
        .ok_or_else(|| anyhow!("crate `{name}` is not pinned; add it to crates/sources/Cargo.toml"))
}

/// The directory of a crate's unpacked sources; downloads all pinned crates the first time.
pub fn directory(name: &str) -> Result<PathBuf> {
    static DIRECTORIES: LazyLock<Result<BTreeMap<String, PathBuf>, String>> =
        LazyLock::new(|| directories().map_err(|error| format!("{error:#}")));
    let directories = DIRECTORIES.as_ref().map_err(|why| anyhow!("{why}"))?;
    directories.get(name).cloned().with_context(|| {
        format!("cargo does not know crate `{name}`; add it to crates/sources/Cargo.toml")
    })
}

/// The archive of a crate, downloaded if it is not there yet; it is the one that the lock file pins.
pub fn fetch(name: &str) -> Result<PathBuf> {
    let pin = pin(name)?;
    let archive = archive_of(pin)?;
    refuse_another(pin, &archive, &archive)?;
    Ok(archive)
}

fn archive_of(pin: &Pin) -> Result<PathBuf> {
    let unpacked = directory(&pin.name)?;
    archive(&unpacked)
        .with_context(|| format!("{} is in no registry of cargo's", unpacked.display()))
}

/// Refuses an archive, or a copy of it, that is not the pinned one.
fn refuse_another(pin: &Pin, archive: &Path, copy: &Path) -> Result<()> {
    if cache::hash_of_file(copy)? != pin.checksum {
        bail!(
            "{} is not the archive that crates/sources/Cargo.lock pins: delete it, and cargo downloads it again",
            archive.display()
        );
    }
    Ok(())
}

/// Unpacks the sources of a crate into a folder, and returns their folder. They come from the
/// archive that the registry served, whose checksum is pinned: the copy that cargo has unpacked may
/// have been changed since, and cargo does not check it again.
pub fn unpack(pin: &Pin, into: &Path, steps: &Steps) -> Result<PathBuf> {
    let unpacked = directory(&pin.name)?;
    let archive = archive_of(pin)?;
    fs::create_dir_all(into).with_path("creating", into)?;
    // The private copy is checked and unpacked, so that later changes to the original do not
    // matter.
    let own = into.join("archive");
    fs::copy(&archive, &own).with_path("reading", &archive)?;
    refuse_another(pin, &archive, &own)?;
    steps.unpack(&own, into)?;
    Ok(into.join(unpacked.file_name().unwrap_or_default()))
}

/// The archive of what cargo has unpacked: `registry/src/INDEX/NAME-VERSION` comes from
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

fn directories() -> Result<BTreeMap<String, PathBuf>> {
    let package = write_package()?.join("Cargo.toml");
    let metadata = || {
        let arguments = ["metadata", "--format-version", "1", "--locked", "--offline"];
        cargo(&package, &arguments)
    };
    let mut said = metadata()?;
    if said.is_err() {
        if let Err(why) = cargo(&package, &["fetch", "--locked"])? {
            bail!("downloading the allocators' sources: cargo fetch failed: {why}");
        }
        said = metadata()?;
    }
    let said =
        said.map_err(|why| anyhow!("cargo metadata of {} failed: {why}", package.display()))?;
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
        manifest_path: PathBuf,
    }
    let metadata: Metadata =
        serde_json::from_slice(&said).context("reading what cargo metadata wrote")?;
    let directories = metadata.packages.into_iter();
    Ok(directories
        .filter_map(|package| Some((package.name, package.manifest_path.parent()?.to_path_buf())))
        .collect())
}

/// What cargo writes, or the last words of its complaint.
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
        let text = String::from_utf8_lossy(&output.stderr);
        Err(last_lines(
            text.lines().filter(|line| !line.trim().is_empty()),
        ))
    })
}

/// Writes the package that holds the pins into the cache, under a name that changes with them.
fn write_package() -> Result<PathBuf> {
    let folder = cache::root()?.join("sources").join(cache::short_hash(
        FILES.iter().flat_map(|(name, text)| [*name, *text]),
    ));
    for (name, text) in FILES {
        let file = folder.join(name);
        if fs::read_to_string(&file).is_ok_and(|there| there == text) {
            continue;
        }
        cache::write(&file, text.as_bytes())?;
    }
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_has_a_checksum_and_an_exact_version() {
        let pin = pin("tikv-jemalloc-sys").unwrap();
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
    fn an_unknown_crate_says_where_to_add_it() {
        let error = super::pin("no-such-allocator").unwrap_err().to_string();
        assert!(error.contains("crates/sources/Cargo.toml"), "{error}");
    }
}
