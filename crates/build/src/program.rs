//! A measured program: checks whether what it needs is installed, and turns its files into a
//! command that can be started, from the cache or built by its recipe. Does not decide what is
//! measured.

use super::State;
use super::cache::{CachePlace, short_hash};
use super::paths::in_path;
use super::step::{self, Slots, Steps};
use super::{downloaded, files, system, toolchain};
use anyhow::{Context, Result, bail};
use heapmark_catalog::Program;
use heapmark_catalog::file::WithPath;
use heapmark_catalog::program::Need;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program ready to be started.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Executable {
    /// The folder in which the program is started.
    pub folder: PathBuf,
    /// The command: an absolute path, then arguments.
    pub command: Vec<String>,
    /// The command that makes the program report on itself; empty if the program cannot do that.
    #[serde(default)]
    pub probe: Vec<String>,
    /// The tools with which the program was built and on which it runs: the first line of each
    /// one's version output, or its package's version.
    pub versions: BTreeMap<String, String>,
}

/// Finds a program's state. Runs the probes of what the program needs, but builds nothing.
pub fn state(program: &Program) -> State<Executable> {
    State::of(look(program))
}

fn look(program: &Program) -> Result<State<Executable>> {
    Ok(match Work::new(program)? {
        Err(need) => State::Absent {
            why: format!("{} is not there", need.what),
            line: need.line(),
        },
        Ok(work) => {
            let line = format!("heapmark build {}", program.name);
            work.cached()?
                .map_or(State::NotBuilt { line }, State::Ready)
        }
    })
}

/// Builds the program unless the cache has it; also returns whether it came from the cache.
pub fn build(program: &Program) -> Result<(Executable, bool)> {
    match Work::new(program)? {
        Err(need) => bail!("{} is not there: {}", need.what, need.line()),
        Ok(work) => work.build(),
    }
}

/// A program whose needs are installed.
struct Work<'a> {
    program: &'a Program,
    versions: BTreeMap<String, String>,
    place: CachePlace,
}

impl<'a> Work<'a> {
    /// Probes what the program needs; the inner error is the first missing need.
    fn new(program: &'a Program) -> Result<Result<Work<'a>, &'a Need>> {
        let mut words = Vec::new();
        let mut versions = BTreeMap::new();
        for need in &program.needs {
            let Some(mut answer) = probe(need) else {
                return Ok(Err(need));
            };
            if answer.trim().is_empty() {
                answer = system::package_version(&need.package);
            }
            let version = answer.lines().next().unwrap_or_default().trim();
            versions.insert(need.what.clone(), version.to_string());
            words.push(answer);
        }
        words.push(serde_json::to_string(&program.build).context("writing the recipe down")?);
        let files = program.files.iter().flat_map(|(name, text)| [name, text]);
        let parts = words.iter().chain(files).map(String::as_str);
        let key = short_hash(parts.chain([std::env::consts::ARCH]));
        Ok(Ok(Work {
            program,
            versions,
            place: CachePlace::new("programs", &program.name, &key)?,
        }))
    }

    fn cached(&self) -> Result<Option<Executable>> {
        let folder = self.place.folder();
        if !downloaded::is_unchanged(&folder) {
            return Ok(None);
        }
        let Program {
            run,
            probe,
            probe_run,
            ..
        } = self.program;
        let probe = match (probe.as_slice(), probe_run.as_slice()) {
            ([], []) => Vec::new(),
            (words, []) => self.command(&[run, words].concat())?,
            (_, whole) => self.command(whole)?,
        };
        Ok(Some(Executable {
            command: self.command(run)?,
            probe,
            folder,
            versions: self.versions.clone(),
        }))
    }

    /// Returns the command with an absolute path as its first word.
    fn command(&self, words: &[String]) -> Result<Vec<String>> {
        let mut command = words.to_vec();
        let first = command.first_mut().context("`run` has no words")?;
        let path = match first.strip_prefix("./") {
            Some(file) => self.place.folder().join(file),
            None => in_path(first)
                .with_context(|| format!("`run` names {first}, which is not in PATH"))?,
        };
        *first = path
            .to_str()
            .with_context(|| format!("{} is no UTF-8", path.display()))?
            .to_string();
        Ok(command)
    }

    fn build(&self) -> Result<(Executable, bool)> {
        self.place.build(
            || self.cached(),
            || eprintln!("{}: another heapmark builds it", self.program.name),
            |workshop| self.construct(workshop),
        )
    }

    fn construct(&self, workshop: &Path) -> Result<Executable> {
        let folder = self.place.folder();
        if folder.is_dir() {
            eprintln!(
                "{} is not as it was built: it is built again",
                folder.display()
            );
        }
        for (name, text) in &self.program.files {
            let file = workshop.join(name);
            std::fs::write(&file, text).with_path("writing", &file)?;
        }
        let slots = Slots::new(1);
        let steps = Steps::new(&self.place.log(), &slots)?;
        for words in &self.program.build {
            let mut command = command(words).context("`build` holds an empty command")?;
            command.current_dir(workshop);
            steps.run(&words.join(" "), &mut command)?;
        }
        // A name with a parameter in it refers to several files.
        if let Some(first) = self.program.run.first()
            && let Some(file) = first.strip_prefix("./")
            && !file.contains('{')
            && !super::command::is_executable(&workshop.join(file))
        {
            bail!(
                "`run` starts ./{file}, which its build does not make (a script is started with its interpreter)"
            );
        }
        downloaded::keep(&self.place, workshop, &kept(workshop)?)?;
        self.cached()?
            .with_context(|| format!("{} is gone", folder.display()))
    }
}

/// Returns the files of a built program, by their paths in its folder; without those whose name no line of a list can hold.
fn kept(workshop: &Path) -> Result<Vec<String>> {
    let mut all = Vec::new();
    files::walk(workshop, &mut all).with_path("reading", workshop)?;
    // A link may lead to where the folder is now.
    all.retain(|file| file.symlink_metadata().is_ok_and(|found| found.is_file()));
    let names = all.iter().filter_map(|file| {
        let name = file.strip_prefix(workshop).ok()?.to_str()?;
        (!name.contains('\n')).then(|| name.to_owned())
    });
    Ok(names.collect())
}

/// Returns the output of a need's probe; `None` if what is needed is not installed.
fn probe(need: &Need) -> Option<String> {
    step::output(&mut command(&need.probe)?)
}

fn command(words: &[String]) -> Option<Command> {
    let (first, arguments) = words.split_first()?;
    let mut command = Command::new(first);
    command.args(arguments).env("LC_ALL", "C");
    toolchain::remove_flags(&mut command);
    Some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_a_build_is_no_file_that_is_kept_unchanged() {
        let workshop = tempfile::tempdir().unwrap();
        let file = workshop.path().join("go");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&file, workshop.path().join("stop")).unwrap();
        assert_eq!(kept(workshop.path()).unwrap(), ["go"]);
    }
}
