//! One real program as data: the keys of `real-programs/*/program.toml`, and the generator of its
//! input beside it. docs/REAL-PROGRAMS.md explains each key to users.

use super::faults::{self, Fault, Faults, did_you_mean};
use anyhow::{Result, anyhow};
use include_dir::{Dir, include_dir};
use serde::Deserialize;
use std::collections::BTreeMap;

static OURS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../real-programs");

/// The seed of all generated inputs.
pub const SEED: u64 = 1;

/// A program of a Linux distribution, with an input that is generated.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RealProgram {
    /// The folder's name; its trace in the pack is `NAME.trace`.
    pub name: String,
    /// What it does, and with what, in one line.
    pub about: String,
    /// Programs of one family do similar things.
    pub family: String,
    /// The Debian packages that install it; the first one is the program's own.
    pub packages: Vec<String>,
    /// Commands that must be in `PATH`.
    pub needs: Vec<String>,
    /// The command that writes the input into the folder that it runs in. Seed and size follow as
    /// arguments; the files beside `program.toml` are there.
    pub generate: Vec<String>,
    /// The program and its arguments, in that folder. `{port}` is the port of a server.
    pub run: Vec<String>,
    /// For servers: the command that drives it.
    #[serde(default)]
    pub client: Vec<String>,
    /// Variables that it needs.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// Threads that allocate at a time.
    pub threads: u32,
    /// The size of the input with which it takes some seconds.
    pub size: u64,
    /// The size with which it is recorded for the pack; without one it is not in the pack.
    pub pack_size: Option<u64>,
    /// Its stdout is the same in every run.
    #[serde(default)]
    pub check_output: bool,
    /// Its files by name: everything in its folder except `program.toml`.
    #[serde(skip)]
    pub files: BTreeMap<String, String>,
}

/// All of them, sorted by name. Reports all faults together.
pub fn load() -> Result<Vec<RealProgram>> {
    let mut faults = Vec::new();
    let programs = OURS.dirs().filter_map(|dir| {
        let folder = dir.path().display().to_string();
        let mut files: BTreeMap<String, String> = dir
            .files()
            .filter_map(|file| {
                let name = file.path().file_name()?.to_string_lossy().into_owned();
                Some((name, file.contents_utf8()?.to_owned()))
            })
            .collect();
        let text = files.remove("program.toml").unwrap_or_default();
        parse(&folder, &text, files, &mut faults)
    });
    let mut programs: Vec<RealProgram> = programs.collect();
    if !faults.is_empty() {
        return Err(Faults(faults).into());
    }
    programs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(programs)
}

/// The program of this name.
pub fn named<'a>(programs: &'a [RealProgram], name: &str) -> Result<&'a RealProgram> {
    let mut all = programs.iter();
    all.find(|program| program.name == name).ok_or_else(|| {
        let hint = did_you_mean(name, programs.iter().map(|program| program.name.as_str()));
        anyhow!("no real program `{name}`{hint}: docs/REAL-PROGRAMS.md lists them")
    })
}

fn parse(
    folder: &str,
    text: &str,
    files: BTreeMap<String, String>,
    faults: &mut Vec<Fault>,
) -> Option<RealProgram> {
    let place = format!("real-programs/{folder}/program.toml");
    let program = RealProgram {
        files,
        ..faults::read(&place, text, faults)?
    };
    super::allocators::check_name(&place, &program.name, "folder", folder, faults);
    let mut add = |key: &str, what: &str, mend: &str| {
        faults.push(Fault::new(place.as_str(), key, what, mend))
    };
    if program.run.is_empty() {
        add("run", "no words", "give a command and its arguments");
    }
    if program.packages.is_empty() {
        add("packages", "none", "name the package that installs it");
    }
    let generator = program.generate.get(1);
    if !generator.is_some_and(|file| program.files.contains_key(file)) {
        add(
            "generate",
            "its second word is no file of this folder",
            "give an interpreter and the generator's file",
        );
    }
    let commands = [&program.generate, &program.run, &program.client];
    for command in commands.into_iter().filter_map(|words| words.first()) {
        // Debian is nothing without a shell.
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
        needs = [\"mine\"]\ngenerate = [\"sh\", \"generate.sh\"]\nrun = [\"mine\"]\nthreads = 1\nsize = 1\n";

    fn faults_of(text: &str) -> String {
        let mut faults = Vec::new();
        let files = BTreeMap::from([("generate.sh".to_owned(), String::new())]);
        parse("mine", text, files, &mut faults);
        Faults(faults).to_string()
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
        ] {
            let said = faults_of(&MINE.replace(from, to));
            assert!(said.contains(fault), "{fault}: {said}");
        }
        assert!(faults_of(&format!("{MINE}client = [\"mine\"]\n")).contains("{port}"));
        assert!(faults_of(&format!("{MINE}[environment]\nLD_PRELOAD = \"x\"")).contains("ours"));
    }

    #[test]
    fn each_family_is_in_the_pack_or_beside_it() {
        let programs = load().unwrap();
        let in_pack = programs.iter().filter(|it| it.pack_size.is_some()).count();
        assert!(programs.len() >= 18 && in_pack <= 12);
        // What is concluded from the pack is checked with programs that are not in it.
        assert!(programs.len() - in_pack >= 8);
        assert!(
            named(&programs, "perl-hsah").is_err_and(|it| it.to_string().contains("`perl-hash`"))
        );
    }

    /// Everything that a generator writes, by path. What git keeps about itself has times in it.
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
        let is_there =
            |name: &String| std::env::split_paths(&folders).any(|it| it.join(name).is_file());
        let mut tried = 0;
        for program in load().unwrap() {
            // These write a repository, in which git keeps times of its own.
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
