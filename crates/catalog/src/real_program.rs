//! One real program as data: the keys of `real-programs/*/program.toml`, and the generator of its
//! input beside it. programs/README.md explains each key to users.

use super::faults::{self, Fault, did_you_mean};
use super::folder;
use anyhow::{Result, anyhow};
use fast_glob::glob_match;
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

static OURS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../real-programs");

/// The name of the file that holds a program's keys, in the program's folder.
const ENTRY: &str = "program.toml";

/// The seed of all generated inputs.
pub const SEED: u64 = 1;

/// A program of a Linux distribution, with an input that is generated.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RealProgram {
    /// The folder's name; its trace in the pack is `NAME.trace`.
    pub name: String,
    /// What the program does, and with what input, in one line.
    pub about: String,
    /// The family: programs of one family do similar things.
    pub family: String,
    /// The Debian packages to install; the first one is the program's own.
    pub packages: Vec<String>,
    /// Commands that must be in `PATH`.
    pub needs: Vec<String>,
    /// The command that writes the input into its working folder. Seed and size follow as
    /// arguments; the files beside `program.toml` are in that folder, too.
    pub generate: Vec<String>,
    /// The program and its arguments; it runs in that folder. `{port}` is the port of a server.
    pub run: Vec<String>,
    /// For servers: the command of the client that drives the server.
    #[serde(default)]
    pub client: Vec<String>,
    /// Environment variables that the program needs.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Threads that allocate at a time.
    pub threads: u32,
    /// The input size with which the program takes about a second with glibc.
    pub quick: u64,
    /// The input size with which the program takes about ten seconds.
    pub paper: u64,
    /// What the program's times may be used for.
    pub role: Role,
    /// The input size with which the program is recorded for the pack.
    pub pack_size: Option<u64>,
    /// Whether the stdout, or for servers the client's, is the same in every run.
    #[serde(default)]
    pub check_output: bool,
    /// A command that prints a digest of what the program wrote, the same in every run.
    #[serde(default)]
    pub digest: Vec<String>,
    /// Whether the program changes its input, so that each process needs a new one.
    #[serde(default)]
    pub changes_input: bool,
    /// The program's files by name: everything in its folder except `program.toml`.
    #[serde(skip)]
    pub files: Files,
}

/// What the times of a real program may be used for: an answer is judged by programs whose times no
/// choice has depended on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// The pack has a trace of the program.
    Pack,
    /// Suites may be chosen by the program's times.
    Tune,
    /// Answers are judged by the program's times, and nothing is chosen by them.
    Test,
}

/// The files of a program's folder, by name.
type Files = BTreeMap<String, String>;

/// Reads all real programs: ours, and those from the user's folder on top, sorted by name. Reports
/// all faults together.
pub fn load() -> Result<Vec<RealProgram>> {
    load_with(folder::users("real-programs").as_deref())
}

/// Does the same as [`load`], with the user's folder as an argument; a folder that does not exist
/// counts as empty.
fn load_with(user: Option<&Path>) -> Result<Vec<RealProgram>> {
    let mut folders: BTreeMap<String, (String, Files)> = BTreeMap::new();
    let mut faults = Vec::new();
    for dir in OURS.dirs() {
        let name = dir.path().display().to_string();
        let files = dir.files().filter_map(|file| {
            let name = file.path().file_name()?.to_string_lossy().into_owned();
            Some((name, file.contents_utf8()?.to_owned()))
        });
        let place = format!("real-programs/{name}/{ENTRY}");
        folders.insert(name, (place, files.collect()));
    }
    let users = user.into_iter().flat_map(folder::listing);
    for dir in users.filter(|dir| dir.join(ENTRY).is_file()) {
        let name = dir.file_name().unwrap_or_default().to_string_lossy();
        let place = dir.join(ENTRY).display().to_string();
        folders.insert(name.into_owned(), (place, texts(&dir, &mut faults)));
    }
    let programs = folders
        .into_iter()
        .filter_map(|(name, (place, mut files))| {
            let text = files.remove(ENTRY).unwrap_or_default();
            parse(&place, &name, &text, files, &mut faults)
        });
    let programs: Vec<RealProgram> = programs.collect();
    faults::none(faults)?;
    Ok(programs)
}

/// Returns the text files of a folder.
fn texts(dir: &Path, faults: &mut Vec<Fault>) -> Files {
    let text = |path: PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        match folder::read(&path) {
            Ok(text) => return Some((name, text)),
            Err(error) if error.kind() == ErrorKind::InvalidData => {}
            Err(error) => faults.push(Fault::new(
                path.display().to_string(),
                "",
                error.to_string(),
                "make it readable, or remove it",
            )),
        }
        None
    };
    let files = folder::listing(dir).filter(|path| path.is_file());
    files.filter_map(text).collect()
}

/// Returns the programs whose names match a pattern.
pub fn matching<'a>(programs: &'a [RealProgram], pattern: &str) -> Vec<&'a RealProgram> {
    let all = programs.iter();
    all.filter(|program| glob_match(pattern, &program.name))
        .collect()
}

impl RealProgram {
    /// Returns the size of the program's input under a preset.
    pub fn size(&self, preset: &str) -> Option<u64> {
        match preset {
            "quick" => Some(self.quick),
            "paper" => Some(self.paper),
            _ => None,
        }
    }
}

/// Returns the program with this name.
pub fn named<'a>(programs: &'a [RealProgram], name: &str) -> Result<&'a RealProgram> {
    let mut all = programs.iter();
    all.find(|program| program.name == name).ok_or_else(|| {
        let hint = did_you_mean(name, programs.iter().map(|program| program.name.as_str()));
        anyhow!("no real program `{name}`{hint}: see `heapmark list programs`")
    })
}

fn parse(
    place: &str,
    folder: &str,
    text: &str,
    files: Files,
    faults: &mut Vec<Fault>,
) -> Option<RealProgram> {
    let program = RealProgram {
        files,
        ..faults::read(place, text, faults)?
    };
    super::allocators::check_name(place, &program.name, "folder", folder, faults);
    let mut add =
        |key: &str, what: &str, mend: &str| faults.push(Fault::new(place, key, what, mend));
    if program.run.is_empty() {
        add("run", "no words", "give a command and its arguments");
    }
    if program.packages.is_empty() {
        add("packages", "none", "name the package that installs it");
    }
    if (program.role == Role::Pack) != program.pack_size.is_some() {
        let mend = "give both, or neither";
        add("role", "`pack` is of programs with a `pack-size`", mend);
    }
    let generator = program.generate.get(1);
    if !generator.is_some_and(|file| program.files.contains_key(file)) {
        add(
            "generate",
            "its second word is no file of this folder",
            "give an interpreter and the generator's file",
        );
    }
    let commands = [
        &program.generate,
        &program.run,
        &program.client,
        &program.digest,
    ];
    for command in commands.into_iter().filter_map(|words| words.first()) {
        // Every Debian has a shell.
        if command != "sh" && !program.needs.contains(command) {
            let mend = "add it, so that its absence is noticed before anything runs";
            add("needs", &format!("`{command}` is not among them"), mend);
        }
    }
    if !program.client.is_empty() && !program.run.iter().any(|word| word.contains("{port}")) {
        add(
            "run",
            "a client, but no `{port}`",
            "tell the server its port",
        );
    }
    let is_of_linker = |key: &String| key.starts_with("LD_");
    if program.environment.keys().any(is_of_linker) {
        add(
            "environment",
            "the dynamic linker's variables are ours",
            "remove them",
        );
    }
    Some(program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const MINE: &str = "name = \"mine\"\nabout = \"x\"\nfamily = \"x\"\npackages = [\"mine\"]\n\
        needs = [\"mine\"]\ngenerate = [\"sh\", \"generate.sh\"]\nrun = [\"mine\"]\nrole = \"tune\"\nthreads = 1\nquick = 1\npaper = 1\n";

    fn faults_of(text: &str) -> String {
        let mut faults = Vec::new();
        let files = BTreeMap::from([("generate.sh".to_owned(), String::new())]);
        parse("program.toml", "mine", text, files, &mut faults);
        faults::Faults(faults).to_string()
    }

    #[test]
    fn faults_name_the_key() {
        assert_eq!(faults_of(MINE), "");
        for (from, to, fault) in [
            (
                "\"mine\"\nabout",
                "\"yours\"\nabout",
                "write `name = \"mine\"`",
            ),
            ("generate.sh", "other.sh", "no file of this folder"),
            ("run = [\"mine\"]", "run = []", "run: no words"),
            (
                "run = [\"mine\"]",
                "run = [\"other\"]",
                "`other` is not among",
            ),
            ("packages = [\"mine\"]", "packages = []", "packages: none"),
            ("threads", "thread", "did you mean `threads`?"),
            ("role = \"tune\"\n", "", "role"),
            ("tune", "tests", "did you mean `test`?"),
            ("tune", "pack", "with a `pack-size`"),
            ("quick", "pack-size = 1\nquick", "with a `pack-size`"),
        ] {
            let faults = faults_of(&MINE.replace(from, to));
            assert!(faults.contains(fault), "{fault}: {faults}");
        }
        assert!(faults_of(&format!("{MINE}client = [\"mine\"]\n")).contains("{port}"));
        assert!(faults_of(&format!("{MINE}[environment]\nLD_PRELOAD = \"x\"")).contains("ours"));
    }

    #[test]
    fn each_family_is_in_the_pack_or_beside_it() {
        let programs = load().unwrap();
        let of = |role: Role| {
            programs
                .iter()
                .filter(|program| program.role == role)
                .count()
        };
        assert!(of(Role::Pack) <= 14);
        // Conclusions from the other programs are checked with programs from which nothing was
        // concluded.
        assert!(of(Role::Tune) >= 8 && of(Role::Test) >= 24);
        assert!(
            named(&programs, "perl-hsah")
                .is_err_and(|error| error.to_string().contains("`perl-hash`"))
        );
    }

    /// The files that a generator writes, by name. Subfolders are left out, since git's contains
    /// times.
    fn generated(program: &RealProgram) -> BTreeMap<String, Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in &program.files {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let end = Command::new(&program.generate[0])
            .args(&program.generate[1..])
            .args(["7", "20"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let words = String::from_utf8_lossy(&end.stderr);
        assert!(end.status.success(), "{}: {words}", program.name);
        let files = std::fs::read_dir(folder.path()).unwrap().flatten();
        files
            .filter(|file| file.path().is_file())
            .map(|file| {
                let name = file.file_name().to_string_lossy().into_owned();
                (name, std::fs::read(file.path()).unwrap())
            })
            .collect()
    }

    #[test]
    fn a_seed_makes_the_same_input_twice() {
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let is_there = |name: &String| {
            std::env::split_paths(&folders).any(|folder| folder.join(name).is_file())
        };
        let mut tried = 0;
        for program in load().unwrap() {
            // These programs write a repository, in which git keeps times of its own.
            let installed = program.needs.iter().all(is_there)
                && !program.needs.iter().any(|need| need == "git");
            if installed && is_there(&program.generate[0]) {
                let first = generated(&program);
                assert!(
                    first.len() > program.files.len(),
                    "{}: nothing is written",
                    program.name
                );
                assert_eq!(first, generated(&program), "{}", program.name);
                tried += 1;
            }
        }
        // perl is on every Debian.
        assert!(tried > 0);
    }
}
