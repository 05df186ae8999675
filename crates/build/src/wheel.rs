//! Allocators in wheels of Python packages, as their authors built them. pip downloads the wheel
//! that a lock file pins, once; the libraries are taken out of it. Installs nothing, and runs none
//! of the package's code.

use super::cache::{CachePlace, short_hash};
use super::downloaded::{self, file_in};
use super::inspect::inspect_any;
use super::state::State;
use super::step::{Slots, Steps};
use super::{Library, entry_faults};
use anyhow::{Context, Result, anyhow, bail};
use heapmark_catalog::allocator::{self, Allocator, Source};
use heapmark_catalog::file::WithPath;
use std::env::consts::ARCH;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

const LOCK: &str = include_str!("../../sources/requirements.txt");
/// Python code that fails if pip is missing; `pip --version` takes ten times as long.
const FIND_PIP: &str = "import importlib.util as u; exit(u.find_spec('pip') is None)";
const NO_PIP: &str = "pip for python3 is not there";
const PIP_LINE: &str = "apt-get install python3-pip";

/// A package as the lock file, or a table of releases, pins it.
struct Pin {
    version: String,
    /// The whole line of the lock file, with the hash that pip compares.
    line: String,
}

impl Pin {
    fn find(name: &str, release: Option<&allocator::ReleasePin>) -> Result<Pin> {
        if let Some(allocator::ReleasePin { version, sha256 }) = release {
            return Ok(Pin {
                version: version.clone(),
                line: format!(
                    "{name}=={version} ; platform_machine == \"x86_64\" --hash=sha256:{sha256}"
                ),
            });
        }
        let line_of = |line: &'static str| {
            let (known, version) = line.split_once("==")?;
            let version = version.split(' ').next()?;
            (known == name).then(|| Pin {
                version: version.to_owned(),
                line: line.to_owned(),
            })
        };
        LOCK.lines().find_map(line_of).with_context(|| {
            format!("wheel `{name}` is not pinned; add it to crates/sources/requirements.txt")
        })
    }
}

/// Returns the pinned version of a package.
pub fn version(name: &str, release: Option<&allocator::ReleasePin>) -> Result<String> {
    Ok(Pin::find(name, release)?.version)
}

/// Returns the libraries of an allocator from its wheel, which is downloaded if the cache lacks them.
pub fn from_wheel(allocator: &Allocator) -> Result<Library> {
    let (library, _) = Wheel::new(allocator)?.fetch(&Slots::new(1))?;
    Ok(library)
}

/// The libraries of an allocator that come out of a wheel.
pub struct Wheel<'a> {
    allocator: &'a Allocator,
    package: &'a str,
    files: &'a [String],
    pin: Pin,
    place: CachePlace,
}

impl<'a> Wheel<'a> {
    /// Finds the libraries' place in the cache; downloads nothing yet.
    pub fn new(allocator: &'a Allocator) -> Result<Wheel<'a>> {
        let Source::Wheel { name, files, pin } = &allocator.source else {
            bail!("{}: it comes from no wheel", allocator.name);
        };
        let pin = Pin::find(name, pin.as_ref())?;
        let words = [pin.line.as_str()]
            .into_iter()
            .chain(files.iter().map(String::as_str));
        let place = CachePlace::new("libraries", &allocator.name, &short_hash(words))?;
        Ok(Wheel {
            allocator,
            package: name,
            files,
            pin,
            place,
        })
    }

    /// Returns whether the allocator can be measured now.
    pub fn state(&self) -> State {
        if let Some(library) = self.cached() {
            return State::Ready(library);
        }
        static HAS_PIP: LazyLock<bool> = LazyLock::new(|| {
            let mut pip = Command::new("python3");
            pip.args(["-c", FIND_PIP]).current_dir("/");
            let pip = pip.stdout(Stdio::null()).stderr(Stdio::null());
            pip.status().is_ok_and(|status| status.success())
        });
        if !self.pin.line.contains(&format!("\"{ARCH}\"")) {
            let why = format!("there is no wheel of {} for {ARCH}", self.package);
            State::Refused { why }
        } else if *HAS_PIP {
            let line = format!("heapmark build {}", self.allocator.name);
            State::NotBuilt { line }
        } else {
            State::Absent {
                why: NO_PIP.into(),
                line: PIP_LINE.into(),
            }
        }
    }

    /// Returns the libraries, if the cache has them unchanged.
    fn cached(&self) -> Option<Library> {
        self.library(&downloaded::unchanged(&self.place, self.files)?)
            .ok()
    }

    fn library(&self, folder: &Path) -> Result<Library> {
        let mut library = Library {
            origin: format!("wheel {} {}", self.package, self.pin.version),
            source_version: self.pin.version.clone(),
            ..Library::default()
        };
        for file in self.files {
            let path = folder.join(file);
            library.exports.extend(inspect_any(&path)?.exports);
            library.files.push(path.canonicalize().unwrap_or(path));
        }
        Ok(library)
    }

    /// Downloads the wheel and takes the libraries out of it, unless the cache has them; also
    /// returns whether the libraries came from the cache.
    pub fn fetch(&self, slots: &Slots) -> Result<(Library, bool)> {
        let take_out = |workshop: &Path, steps: &Steps| self.take_out(workshop, steps);
        downloaded::fetched(&self.place, self.state(), slots, || self.cached(), take_out)
    }

    fn take_out(&self, workshop: &Path, steps: &Steps) -> Result<Library> {
        let python = |arguments: &[&str]| {
            let mut command = Command::new("python3");
            // Python looks for modules in the start folder first, so that must not be a folder of another user.
            command.args(arguments).current_dir(workshop);
            command
        };
        let pinned = workshop.join("requirements.txt");
        fs::write(&pinned, &self.pin.line).with_path("writing", &pinned)?;
        let mut pip = python(&[
            "-m",
            "pip",
            "download",
            "--quiet",
            "--disable-pip-version-check",
        ]);
        pip.args(["--require-hashes", "--no-deps", "--only-binary", ":all:"])
            .args([
                "--retries",
                "1",
                "--dest",
                "wheel",
                "-r",
                "requirements.txt",
            ])
            // Some users set this variable to require a virtual environment for installations.
            .env("PIP_REQUIRE_VIRTUALENV", "0");
        let what = format!("downloading {} {} with pip", self.package, self.pin.version);
        steps.run(&what, &mut pip).map_err(|error| {
            let error = format!("{error:#}");
            let mut lines = error.lines().rev();
            let last = lines.find_map(|line| line.strip_prefix("ERROR: "));
            let last = last.unwrap_or(&error);
            anyhow!("{what} failed: {last} (is there a network?)")
        })?;
        let wheel = file_in(&workshop.join("wheel"), &|name| name.ends_with(".whl"))
            .with_context(|| format!("{what}: it brought no wheel"))?;
        let mut unzip = python(&["-m", "zipfile", "-e"]);
        steps.run("unpacking the wheel", unzip.arg(&wheel).arg("unpacked"))?;
        let finished = workshop.join("finished");
        fs::create_dir(&finished).with_path("creating", &finished)?;
        for file in self.files {
            let found = file_in(&workshop.join("unpacked"), &|name| name == file)
                .with_context(|| format!("{} has no {file}", wheel.display()))?;
            let kept = finished.join(file);
            fs::rename(&found, &kept).with_path("moving the library to", &kept)?;
        }
        let faults = entry_faults::completeness(self.allocator, &self.library(&finished)?.exports);
        if !faults.is_empty() {
            let faults = faults.join("\n");
            bail!("the library is not what its entry says:\n{faults}");
        }
        downloaded::keep(&self.place, &finished, self.files)?;
        self.library(&self.place.folder())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pin_has_an_exact_version_a_processor_and_a_hash() {
        let pins = LOCK.lines().filter(|line| !line.starts_with('#'));
        for line in pins {
            let name = line.split("==").next().unwrap();
            let pin = Pin::find(name, None).unwrap();
            assert!(
                pin.version.starts_with(|c: char| c.is_ascii_digit()),
                "{line}"
            );
            assert!(line.contains("platform_machine == \""), "{line}");
            let (_, hash) = line.split_once(" --hash=sha256:").unwrap();
            assert_eq!(hash.len(), 64, "{line}");
        }
        let error = Pin::find("no-such-package", None)
            .err()
            .unwrap()
            .to_string();
        assert!(error.contains("crates/sources/requirements.txt"), "{error}");
    }
}
