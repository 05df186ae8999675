//! What must be unchanged for a history to go on: the libraries behind its names, the machine, and the work. Otherwise one
//! series would mix two things.

use crate::folder::{History, SeriesVersion, run_in};
use anyhow::{Context, Result};
use heapmark_core::analyse::compare::counterpart;
use heapmark_core::build::command::{as_a_shell_starts, recognise_command};
use heapmark_core::build::{hash_of_file, user};
use heapmark_core::catalog::Source;
use heapmark_core::cmd::{catalog, described_machine, usage};
use heapmark_core::execute::Subject;
use heapmark_core::plan::{Case, UserCommand};
use heapmark_core::store::{self, AllocatorInfo, HEAPMARK, RunFile};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::iter::zip;
use std::path::{Path, PathBuf};

/// The advice that helps in any case.
const MEND: &str = "begin another history with -o";

/// Refuses versions that are not what was measured by their names: a name stands for one library.
pub fn refuse_changed<'v>(
    history: &History,
    versions: impl IntoIterator<Item = &'v SeriesVersion>,
    dir: &Path,
) -> Result<()> {
    let heads = (0..history.runs.len()).map(|place| store::head(&run_in(dir, place)));
    let heads: Vec<RunFile> = heads.collect::<Result<_>>()?;
    let known = &catalog()?.allocators;
    for SeriesVersion { name, word } in versions {
        let own = user(word, known).map_err(usage)?;
        let now = own.as_ref().map(|allocator| &allocator.source);
        for head in &heads {
            let mut infos = head.allocators.iter();
            // One without a library was not measured.
            let Some(info) = infos.find(|info| info.name == *name && !info.sha256.is_empty())
            else {
                continue;
            };
            let mut subjects = head.subjects.iter().map(|subject| &subject.allocator);
            let then = subjects.find(|allocator| allocator.name == *name);
            if let Some(why) = changed(now, info, then.map(|allocator| &allocator.source))? {
                refuse!("{name}: {why}, or {MEND}");
            }
        }
    }
    Ok(())
}

/// Returns why a version is not what a run measured by its name, if it is not: `now` is what the user's word means, if it is no
/// name of the catalogue, and `then` what was measured.
fn changed(
    now: Option<&Source>,
    info: &AllocatorInfo,
    then: Option<&Source>,
) -> Result<Option<String>> {
    if let Some(Source::Git(commit)) = now {
        let is_same = matches!(then, Some(Source::Git(then)) if then.hash == commit.hash);
        return Ok((!is_same).then(|| {
            format!(
                "commit {} of {} is not what was measured by this name: give it another name",
                commit.short(),
                commit.repository.display()
            )
        }));
    }
    let (files, must_be_there): (Vec<&Path>, bool) = match now {
        Some(Source::Path { files }) => (files.iter().map(PathBuf::as_path).collect(), true),
        // Files that heapmark has built or fetched may be missing, since it can make them again.
        _ => (info.files.iter().map(Path::new).collect(), false),
    };
    for (file, sha256) in zip(files, &info.sha256) {
        let name = file.display();
        if !file.is_file() {
            if !must_be_there {
                continue;
            }
            return Ok(Some(format!(
                "there is no {name} to compare with the library that was measured by this name: bring it back"
            )));
        }
        if hash_of_file(file)? != *sha256 {
            return Ok(Some(format!(
                "{name} is not the library that was measured by this name: give it another name"
            )));
        }
    }
    Ok(None)
}

/// Refuses to go on after a run of another machine, or of another heapmark.
pub fn refuse_elsewhere(before: &RunFile, dir: &Path) -> Result<()> {
    match elsewhere(before, &described_machine()) {
        Some(why) => refuse!("{}: {why}, or {MEND}", dir.display()),
        None => Ok(()),
    }
}

/// Returns how this machine, or this heapmark, differs from that of a run, if it does.
fn elsewhere(before: &RunFile, here: &BTreeMap<String, String>) -> Option<String> {
    Some(match before.other_here(here)? {
        [HEAPMARK, then, now] => {
            format!("heapmark {then} measured its last run, and this is {now}: go on with that one")
        }
        [key, then, now] => {
            format!("its last run is of a machine with {key} {then}, here it is {now}: go on there")
        }
    })
}

/// Refuses cases that do other work than those of a run.
pub fn refuse_other_work(before: &RunFile, cases: &[Case], dir: &Path) -> Result<()> {
    match other_work(&before.plan.cases, cases) {
        Some(why) => refuse!(
            "{}: {why}: bring back what was measured, or {MEND}",
            dir.display()
        ),
        None => Ok(()),
    }
}

/// Returns how the work of these cases differs from that of a run, if it does.
fn other_work(before: &[Case], now: &[Case]) -> Option<String> {
    if let Some(file) = before.iter().find_map(Case::changed_file) {
        return Some(format!("{file} is not the file that its last run read"));
    }
    // A case that is timed and one that is measured beside others may have the same name.
    [false, true].into_iter().find_map(|beside| {
        let is_it = |case: &&Case| case.beside == beside;
        let before: Vec<Case> = before.iter().filter(is_it).cloned().collect();
        now.iter().filter(is_it).find_map(|case| {
            let why = counterpart(case, &before).err()?;
            Some(format!("{}: {why}", case.label()))
        })
    })
}

/// Refuses libraries that are not those that a run has measured by the same names.
pub fn refuse_other_libraries(before: &RunFile, subjects: &[Subject], dir: &Path) -> Result<()> {
    match other_library(&before.allocators, subjects)? {
        Some(why) => refuse!("{}: {why}, or {MEND}", dir.display()),
        None => Ok(()),
    }
}

/// Returns how a library differs from the one that a run has measured by the same name, if one does. A name of the catalogue
/// may stand for two libraries, if another compiler builds it now.
fn other_library(before: &[AllocatorInfo], subjects: &[Subject]) -> Result<Option<String>> {
    for subject in subjects {
        let name = &subject.allocator.name;
        let Some(info) = before.iter().find(|info| info.name == *name) else {
            continue;
        };
        let library = &subject.library;
        let preloaded = zip(&library.files, &info.sha256);
        // Of an older run it is not known what its library needed.
        let needed = library.needs.iter().filter_map(|file| {
            let sha256 = info.needs.get(&file.display().to_string())?;
            Some((file, sha256))
        });
        for (file, sha256) in preloaded.chain(needed) {
            if hash_of_file(file)? != *sha256 {
                return Ok(Some(format!(
                    "{} is not the library that its last run measured as {name}: bring that back, or the compiler that built it",
                    file.display()
                )));
            }
        }
    }
    Ok(None)
}

/// Refuses a user's command whose programs differ from those in a run, or that would start in another folder.
pub fn refuse_other_command(before: &RunFile, words: &[String], dir: &Path) -> Result<()> {
    let mut commands = before.plan.cases.iter().filter_map(Case::command);
    let Some(command) = commands.next().filter(|_| !words.is_empty()) else {
        return Ok(());
    };
    let folder = std::env::current_dir().context("cannot tell where this is")?;
    match other_command(command, words, &folder)? {
        Some(why) => refuse!("{}: {why}, or {MEND}", dir.display()),
        None => Ok(()),
    }
}

/// Returns how a command differs from that of a run, if it does.
fn other_command(before: &UserCommand, words: &[String], folder: &Path) -> Result<Option<String>> {
    if before.folder != folder {
        return Ok(Some(format!(
            "its command starts in {}: go on there",
            before.folder.display()
        )));
    }
    let words = words.iter().map(OsString::from).collect();
    let words = as_a_shell_starts(words, folder).map_err(usage)?;
    let files = recognise_command(&words, folder).chain;
    let now = files.iter().map(|file| hash_of_file(file));
    let now: Vec<String> = now.collect::<Result<_>>()?;
    if before.sha256.is_empty() || before.sha256 == now {
        return Ok(None);
    }
    let mut all = zip(&files, &now);
    let other = all.find(|(_, hash)| !before.sha256.contains(hash));
    let file = other.map_or(&files[0], |(file, _)| file);
    Ok(Some(format!(
        "{} is not what its last run executed: bring that back",
        file.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake_run::{FakeRun, case};
    use heapmark_core::build::Library;
    use heapmark_core::catalog::allocator::{Commit, CommitBuild};
    use heapmark_core::file::Draft;
    use heapmark_core::plan::Target;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    /// A folder that is removed at the end of its test.
    fn folder() -> Draft {
        Draft::folder(&std::env::temp_dir()).unwrap()
    }

    #[test]
    fn a_name_stands_for_one_library_wherever_its_file_lies() {
        let folder = folder();
        let file = |name: &str, content: &str| {
            let path = folder.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let measured = file("1.so", "one");
        let mut run = FakeRun::new(&["base"], &["larson"], 1);
        let info = run.allocator("base");
        info.files = vec![measured.display().to_string()];
        info.sha256 = vec![hash_of_file(&measured).unwrap()];
        let info = &*info;
        let of_path = |path: PathBuf| Source::Path { files: vec![path] };
        let then = of_path(measured.clone());
        let why = |now: Option<&Source>| changed(now, info, Some(&then)).unwrap();
        assert_eq!(why(Some(&of_path(file("moved.so", "one")))), None);
        let other = why(Some(&of_path(file("3.so", "three")))).unwrap();
        assert!(other.contains("3.so is not the library that was measured by this name"));
        let gone = of_path(folder.path().join("gone.so"));
        assert!(why(Some(&gone)).unwrap().contains("there is no "));
        // Of a name of the catalogue, what was measured is in heapmark's own cache, or no longer.
        assert_eq!(why(None), None);
        file("1.so", "changed");
        assert!(why(None).unwrap().contains("1.so is not the library"));
        fs::remove_file(&measured).unwrap();
        assert_eq!(why(None), None);
    }

    #[test]
    fn a_name_of_the_catalogue_stands_for_what_one_compiler_built() {
        let folder = folder();
        let file = folder.path().join("built.so");
        fs::write(&file, "by gcc 12").unwrap();
        let mut run = FakeRun::new(&["base"], &["larson"], 1);
        run.allocator("base").sha256 = vec![hash_of_file(&file).unwrap()];
        let before = &run.run.allocators;
        let why = |name: &str| {
            let mut allocator = catalog().unwrap().allocators[0].clone();
            allocator.name = name.into();
            let library = Library {
                files: vec![file.clone()],
                ..Library::default()
            };
            other_library(before, &[Subject::new(allocator, library)]).unwrap()
        };
        assert_eq!(why("base"), None);
        fs::write(&file, "by gcc 13").unwrap();
        let other = why("base").unwrap();
        assert!(other.contains("built.so is not the library that its last run measured as base"));
        // A release that is new to the history has no earlier library.
        assert_eq!(why("new"), None);
    }

    #[test]
    fn a_name_stands_for_one_commit() {
        let mut run = FakeRun::new(&["head"], &["larson"], 1);
        let info = &*run.allocator("head");
        let of = |hash: &str| {
            Source::Git(Commit {
                repository: "/libfoo".into(),
                hash: hash.into(),
                build: CommitBuild::Recipe {
                    folder: String::new(),
                },
            })
        };
        let why = |then: &Source| changed(Some(&of("abc")), info, Some(then)).unwrap();
        assert_eq!(why(&of("abc")), None);
        let other = why(&of("def")).unwrap();
        assert!(other.starts_with("commit abc of /libfoo is not what was measured"));
        assert!(why(&Source::Path { files: Vec::new() }).is_some());
    }

    #[test]
    fn a_history_goes_on_where_it_was_measured_and_by_the_same_heapmark() {
        let mut run = FakeRun::new(&["base"], &["larson"], 1).run;
        run.heapmark = env!("CARGO_PKG_VERSION").into();
        let fact = |value: &str| BTreeMap::from([("cpu_model".to_owned(), value.to_owned())]);
        run.machine = fact("Abacus 2");
        assert_eq!(elsewhere(&run, &fact("Abacus 2")), None);
        // A fact that nobody told then is no difference.
        assert_eq!(elsewhere(&run, &BTreeMap::new()), None);
        let why = elsewhere(&run, &fact("Abacus 3")).unwrap();
        assert!(why.contains("cpu_model Abacus 2, here it is Abacus 3"));
        run.heapmark = "0.0.1".into();
        let why = elsewhere(&run, &fact("Abacus 2")).unwrap();
        assert!(why.contains("heapmark 0.0.1 measured its last run"));
    }

    #[test]
    fn cases_with_other_parameters_are_other_work_and_a_trace_may_lie_elsewhere() {
        let with = |name: &str, parameters: &[(&str, &str)]| {
            let mut case = case(name);
            let pairs = parameters.iter();
            case.parameters = pairs
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect();
            case
        };
        let slots = |value: &str| with("larson", &[("slots", value)]);
        assert_eq!(other_work(&[slots("1")], &[slots("1")]), None);
        let why = other_work(&[slots("1")], &[slots("2")]).unwrap();
        assert_eq!(why, "larson@2: slots was 1 and is 2: other work");
        // Beside the times of others, the same name is another case.
        let mut beside = slots("7");
        beside.beside = true;
        let both = [slots("1"), beside];
        assert_eq!(other_work(&both, &both), None);
        let trace = |place: &str, sha256: &str| {
            let mut case = with("trace:app", &[("trace", place), ("sha256", sha256)]);
            case.target = Target::Kernel("replay".into());
            case
        };
        assert_eq!(other_work(&[trace("/a", "1")], &[trace("/b", "1")]), None);
        assert!(other_work(&[trace("/a", "1")], &[trace("/a", "2")]).is_some());
    }

    #[test]
    fn another_program_of_the_same_name_is_another_command() {
        let folder = folder();
        let script = folder.path().join("work");
        let write = |text: &str| {
            fs::write(&script, text).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        };
        write("#!/bin/sh\nexit 0\n");
        let words = ["./work".to_owned()];
        let before = UserCommand {
            folder: folder.path().into(),
            sha256: recognise_command(&[&script], folder.path())
                .chain
                .iter()
                .map(|file| hash_of_file(file).unwrap())
                .collect(),
            ..UserCommand::default()
        };
        let why = |here: &Path| other_command(&before, &words, here).unwrap();
        assert_eq!(why(folder.path()), None);
        assert!(why(Path::new("/")).unwrap().contains("starts in"));
        write("#!/bin/sh\nexit 1\n");
        let other = why(folder.path()).unwrap();
        assert!(other.contains("work is not what its last run executed"));
    }
}
