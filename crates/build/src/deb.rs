//! Whole C libraries from Debian's packages. apt downloads the packages that a table of releases pins, once; the library,
//! its dynamic linker and the other files that the guest needs are extracted from them. Installs nothing.

use super::cache::{CachePlace, short_hash};
use super::carried::GUEST;
use super::downloaded::{self, file_in};
use super::inspect::inspect_any;
use super::state::State;
use super::step::{Slots, Steps};
use super::{Library, in_path};
use anyhow::{Context, Result, anyhow, bail};
use heapmark_catalog::allocator::{Allocator, DebPackage, ReleasePin, Source};
use heapmark_catalog::file::WithPath;
use std::env::consts::ARCH;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Debian's archive, whose pool has the packages of all suites.
const ARCHIVE: &str = "http://deb.debian.org/debian/pool";
/// apt's own downloader, which uses apt's settings and verifies the checksum.
const DOWNLOADER: &str = "/usr/lib/apt/apt-helper";
/// The processor whose packages the tables of releases list, and Debian's name for it.
const PROCESSOR: (&str, &str) = ("x86_64", "amd64");
const LOADER: &str = "ld-linux-x86-64.so.2";
const LIBC: &str = "libc.so.6";
/// The files of a C library that the guest may need; before 2.34 the library was split into several files.
const FILES: [&str; 7] = [
    LOADER,
    LIBC,
    "libm.so.6",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
];

/// Returns the C library of a package, which is downloaded if the cache lacks it.
pub fn from_deb(allocator: &Allocator) -> Result<Library> {
    let (library, _) = Deb::new(allocator)?.fetch(&Slots::new(1))?;
    Ok(library)
}

/// A C library, and the packages that contain it.
pub struct Deb<'a> {
    allocator: &'a Allocator,
    /// The packages to unpack, that of the library itself first.
    packages: Vec<DebPackage>,
    place: CachePlace,
}

impl<'a> Deb<'a> {
    /// Finds the library's place in the cache; downloads nothing yet.
    pub fn new(allocator: &'a Allocator) -> Result<Deb<'a>> {
        let Source::Deb {
            name,
            pool,
            pin,
            beside,
        } = &allocator.source
        else {
            bail!("{}: it comes from no package of Debian", allocator.name);
        };
        let library = DebPackage {
            deb: name.clone(),
            pool: pool.clone(),
            pin: pin.clone(),
            files: FILES.map(str::to_owned).into(),
        };
        let packages: Vec<DebPackage> = [library].into_iter().chain(beside.clone()).collect();
        let words = packages
            .iter()
            .flat_map(|one| [one.deb.as_str(), &one.pin.version, &one.pin.sha256]);
        let place = CachePlace::new("libraries", &allocator.name, &short_hash(words))?;
        Ok(Deb {
            allocator,
            packages,
            place,
        })
    }

    /// Returns all files that are extracted from packages.
    fn files(&self) -> Vec<&str> {
        let files = self.packages.iter().flat_map(|one| &one.files);
        files.map(String::as_str).collect()
    }

    /// Returns whether the guest can be started with this C library now.
    pub fn state(&self) -> Result<State> {
        let absent = |why: &str, line: &str| State::Absent {
            why: why.into(),
            line: line.into(),
        };
        if let Some(library) = self.cached() {
            return Ok(match self.unknown_to_guest()? {
                Some(why) => State::Refused { why },
                None => State::Ready(library),
            });
        }
        Ok(if ARCH != PROCESSOR.0 {
            let why = format!(
                "no package of {} is pinned for {ARCH}",
                self.packages[0].deb
            );
            State::Refused { why }
        } else if !Path::new(DOWNLOADER).exists() {
            absent(
                "its download needs apt",
                "take a system with apt: Debian, Ubuntu",
            )
        } else if in_path("dpkg-deb").is_none() {
            absent("dpkg-deb is not there", "apt-get install dpkg")
        } else {
            let line = format!("heapmark build {}", self.allocator.name);
            State::NotBuilt { line }
        })
    }

    /// Returns what the guest needs but this C library lacks, according to the library's dynamic linker.
    fn unknown_to_guest(&self) -> Result<Option<String>> {
        let folder = self.place.folder();
        let mut loader = Command::new(folder.join(LOADER));
        loader.arg("--library-path").arg(&folder).arg("--list");
        let output = loader
            .arg(GUEST.find()?)
            .env_clear()
            .output()
            .with_path("starting", &folder.join(LOADER))?;
        let text = String::from_utf8_lossy(&output.stderr);
        let lacks = text.lines().find(|line| line.contains("not found"));
        Ok(lacks.map(|line| {
            let needed = line.split(['`', '\'']).nth(1).unwrap_or(line);
            format!(
                "it is older than what this heapmark is linked to, {needed}: that of the wheels (make dist) needs less"
            )
        }))
    }

    /// Returns the library, if the cache has it unchanged.
    fn cached(&self) -> Option<Library> {
        self.library(&downloaded::unchanged(&self.place, &self.files())?)
            .ok()
    }

    fn library(&self, folder: &Path) -> Result<Library> {
        let resolved = |file: &str| -> PathBuf {
            let path = folder.join(file);
            path.canonicalize().unwrap_or(path)
        };
        let libc = resolved(LIBC);
        let ReleasePin { version, .. } = &self.packages[0].pin;
        Ok(Library {
            exports: inspect_any(&libc)?.exports,
            files: vec![libc],
            loader: Some(resolved(LOADER)),
            origin: format!("deb {} {version}", self.packages[0].deb),
            source_version: version.clone(),
            ..Library::default()
        })
    }

    /// Downloads the packages and takes the library out of them, unless the cache has it; also returns whether the library came from the
    /// cache.
    pub fn fetch(&self, slots: &Slots) -> Result<(Library, bool)> {
        let take_out = |workshop: &Path, steps: &Steps| self.take_out(workshop, steps);
        downloaded::fetched(
            &self.place,
            self.state()?,
            slots,
            || self.cached(),
            take_out,
        )
    }

    fn take_out(&self, workshop: &Path, steps: &Steps) -> Result<Library> {
        let finished = workshop.join("finished");
        fs::create_dir(&finished).with_path("creating", &finished)?;
        for package in &self.packages {
            take_files(package, &workshop.join(&package.deb), &finished, steps)?;
        }
        downloaded::keep(&self.place, &finished, &self.files())?;
        self.library(&self.place.folder())
    }
}

/// Downloads a package and copies its files into `finished`.
fn take_files(package: &DebPackage, workshop: &Path, finished: &Path, steps: &Steps) -> Result<()> {
    fs::create_dir(workshop).with_path("creating", workshop)?;
    let pin = &package.pin;
    let file = format!("{}_{}_{}.deb", package.deb, pin.version, PROCESSOR.1);
    let address = format!("{ARCHIVE}/{}/{file}", package.pool);
    let deb = workshop.join("package.deb");
    let mut download = Command::new(DOWNLOADER);
    download.args(["download-file", &address]).arg(&deb);
    download.arg(format!("SHA256:{}", pin.sha256));
    let what = format!("downloading {address}");
    steps.run(&what, &mut download).map_err(|error| {
        let error = format!("{error:#}");
        let mut lines = error.lines();
        let why = lines.find_map(|line| line.strip_prefix("E: "));
        let why = why.unwrap_or(&error);
        anyhow!(
            "{what} failed: {why} (is there a network? Debian's archive keeps the newest package of each suite only: {} can pin that one)",
            "~/.config/heapmark/releases/glibc.toml"
        )
    })?;
    let unpacked = workshop.join("unpacked");
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("-x").arg(&deb).arg(&unpacked);
    steps.run("unpacking the package", &mut unpack)?;
    for name in &package.files {
        let found = file_in(&unpacked, &|file| file == name)
            .with_context(|| format!("{address} has no {name}"))?;
        let kept = finished.join(name);
        // Most of these files are links to a file whose name contains the version.
        fs::copy(&found, &kept).with_path("copying the library to", &kept)?;
    }
    Ok(())
}
