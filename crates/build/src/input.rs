//! The generated input of a real program. In the cache, the input is complete or absent, and never
//! changed; programs run in a copy of it.

use super::cache::{CachePlace, short_hash};
use super::carried::GUEST;
use super::command::find;
use super::launched::{self, Environment};
use super::system::package_version;
use anyhow::{Context, Result, bail};
use heapmark_catalog::RealProgram;
use heapmark_catalog::file::{WithPath, is_there};
use heapmark_catalog::real_program::SEED;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

/// The input of a program, generated in a given size.
pub struct Input<'p> {
    program: &'p RealProgram,
    size: u64,
    /// A hash of everything that the input depends on.
    pub key: String,
    place: CachePlace,
}

impl<'p> Input<'p> {
    /// Finds the input's place in the cache.
    pub fn new(program: &'p RealProgram, size: u64) -> Result<Input<'p>> {
        let (seed, words) = (SEED.to_string(), size.to_string());
        let files = program.files.iter().chain(&program.environment);
        let files = files.flat_map(|(name, text)| [name, text]);
        // Some generators run the program itself.
        let versions: Vec<String> = (program.packages.iter())
            .map(|package| package_version(package))
            .collect();
        let parts = program.generate.iter().chain(files).chain(&versions);
        let key = short_hash(parts.chain([&seed, &words]).map(String::as_str));
        Ok(Input {
            place: CachePlace::new("inputs", &program.name, &key)?,
            program,
            size,
            key,
        })
    }

    /// Returns the input's folder in the cache, whether it exists or not.
    pub fn folder(&self) -> PathBuf {
        self.place.folder()
    }

    /// Generates the input unless the cache has it.
    pub fn make(&self) -> Result<PathBuf> {
        let folder = self.folder();
        let cached = || Ok(folder.is_dir().then(|| folder.clone()));
        let construct = |workshop: &Path| {
            generate(self.program, self.size, workshop)
                .with_context(|| self.program.name.clone())?;
            self.place.keep_folder(workshop)?;
            Ok(folder.clone())
        };
        Ok(self.place.build(cached, || {}, construct)?.0)
    }
}

/// Returns the commands that a real program needs and that are not installed.
pub fn missing(program: &RealProgram) -> Vec<&str> {
    let is_missing = |need: &&String| find(need, Path::new("/")).is_err();
    let missing = program.needs.iter().filter(is_missing);
    missing.map(String::as_str).collect()
}

/// Returns the environment variables of a real program that works in this folder. They do not depend on the user's variables.
pub fn environment(program: &RealProgram, folder: &Path) -> BTreeMap<String, String> {
    let kept = std::env::vars().filter(|(name, _)| name == "PATH" || name.starts_with("HEAPMARK_"));
    let added = [
        ("HOME".to_owned(), folder.display().to_string()),
        ("LC_ALL".to_owned(), "C".to_owned()),
    ];
    let all = kept.chain(added).chain(program.environment.clone());
    all.collect()
}

/// Writes the input of a program into an empty folder.
pub fn generate(program: &RealProgram, size: u64, folder: &Path) -> Result<()> {
    for (name, text) in &program.files {
        let path = folder.join(name);
        fs::write(&path, text).with_path("cannot write", &path)?;
    }
    let (first, words) = program.generate.split_first().context("no generator")?;
    let mut command = Command::new(first);
    command
        .args(words)
        .args([SEED.to_string(), size.to_string()])
        .envs(environment(program, folder))
        .current_dir(folder);
    let (status, output) = launched::run(&GUEST.find()?, &command, Environment::Own, |_| Ok(()))?;
    succeeded("its generator", status, output.as_bytes())
}

/// Fails if a command failed, with the last line that it wrote.
pub fn succeeded(what: &str, status: ExitStatus, said: &[u8]) -> Result<()> {
    if status.success() {
        return Ok(());
    }
    let words = String::from_utf8_lossy(said);
    let mut lines = words.lines().rev().map(str::trim);
    let last = lines.find(|line| !line.is_empty()).unwrap_or_default();
    bail!("{what} failed ({status}): {last}")
}

/// Replaces a folder, if it exists, with a copy of another one.
pub fn renew(from: &Path, folder: &Path) -> Result<()> {
    let renewed = || -> std::io::Result<()> {
        if is_there(folder) {
            fs::remove_dir_all(folder)?;
        }
        copy(from, folder)
    };
    renewed().with_path("cannot copy the input to", folder)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (kind, target) = (entry.file_type()?, to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target)?;
        } else if kind.is_symlink() {
            std::os::unix::fs::symlink(fs::read_link(entry.path())?, target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    fs::set_permissions(to, fs::metadata(from)?.permissions())
}
