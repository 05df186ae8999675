//! One measured program as data: the keys of `programs/*/program.toml`, and the files beside it.
//! programs/README.md explains each key to users. `build` finds out whether it can be built here.

use super::faults::{self, Fault};
use super::folder;
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

static OURS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../programs");

/// A program that runs a workload in a process of its own, instead of a kernel in the guest.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Program {
    /// The name in workloads and on the command line; must be the folder's name.
    pub name: String,
    /// A description in one line, for `heapmark list languages`.
    pub about: String,
    /// The address at which the authors of the measured code publish it.
    #[serde(default)]
    pub home: String,
    /// SPDX expression of the measured code.
    #[serde(default)]
    pub licence: String,
    /// Whether a preloaded allocator makes a difference to the program.
    pub allocator: Serves,
    /// Requirements for building and running the program.
    #[serde(default)]
    pub needs: Vec<Need>,
    /// Commands that build the program, in order, in a folder that holds the program's files.
    #[serde(default)]
    pub build: Vec<Vec<String>>,
    /// Programs whose files are added to this program's own.
    #[serde(default)]
    pub shares: Vec<String>,
    /// The command that starts the program in that folder; a first word with `./` is one of the
    /// program's files, any other is looked up in `PATH`.
    pub run: Vec<String>,
    /// Set if the program speaks no protocol: the whole process is the workload, and this is the
    /// output that it must print. `{NAME}` in `run` is then replaced by the value of a parameter.
    pub expects_stdout: Option<Prints>,
    /// Words after `run` that make the process record its own pauses and figures; no timed process
    /// gets them.
    #[serde(default)]
    pub probe: Vec<String>,
    /// The whole command in place of `run` and `probe`, if those words do not belong at its end.
    #[serde(default)]
    pub probe_run: Vec<String>,
    /// Environment variables of the measured process.
    #[serde(default)]
    pub environment: BTreeMap<String, String>,
    /// The program's files by name: everything in its folder except `program.toml`.
    #[serde(skip)]
    pub files: BTreeMap<String, String>,
}

impl Program {
    /// Returns the parameters on the command line of a program that only prints.
    pub fn placeholders(&self) -> impl Iterator<Item = &str> {
        let words = [&self.run, &self.probe, &self.probe_run]
            .into_iter()
            .flatten();
        words
            .filter(|_| self.expects_stdout.is_some())
            .flat_map(|word| word.split('{').skip(1))
            .filter_map(|rest| Some(rest.split_once('}')?.0))
    }
}

/// Texts that a program may be expected to print.
#[derive(Clone, Copy, Debug, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Prints {
    /// The output of BT's binary trees.
    BinaryTrees,
}

/// The allocator that serves a program's memory.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Serves {
    /// The library that provides `malloc`: the program runs under every allocator, with the proof.
    Any,
    /// The program itself: it runs once per block, with nothing preloaded.
    None,
}

/// A requirement of a program.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Need {
    /// What is required, in words: `libpmemobj`.
    pub what: String,
    /// A command that succeeds if the requirement is installed. The command's output identifies it:
    /// other output means another build. If it prints nothing, the package's version is used.
    pub probe: Vec<String>,
    /// The Debian/Ubuntu package to install.
    #[serde(default)]
    pub package: String,
    /// How to get the requirement, if no package installs it.
    pub from: Option<String>,
}

/// A folder with a `program.toml`, as read from the binary or the disk.
struct Folder {
    /// The program's name: `zalloc-pmdk`, or `binary-trees-c` for `binary-trees/c`.
    name: String,
    place: String,
    files: BTreeMap<String, String>,
}

impl Need {
    /// Returns how to install the requirement.
    pub fn line(&self) -> String {
        self.from
            .clone()
            .unwrap_or_else(|| format!("apt-get install {}", self.package))
    }
}

/// Reads all programs: ours, and those from the user's folder on top. Sorted by name.
pub fn load(faults: &mut Vec<Fault>) -> Vec<Program> {
    let mut folders = Vec::new();
    OURS.dirs().for_each(|dir| ours(dir, &mut folders));
    if let Some(home) = folder::users("programs") {
        users(&home, "", &mut folders, faults);
    }
    let all: BTreeMap<_, _> = folders
        .into_iter()
        .map(|folder| (folder.name.clone(), parse(folder, faults)))
        .collect();
    let mut programs: Vec<Program> = all.into_values().flatten().collect();
    share(&mut programs, faults);
    programs
}

fn ours(dir: &Dir, folders: &mut Vec<Folder>) {
    let path = dir.path().display().to_string();
    if dir.get_file(dir.path().join("program.toml")).is_none() {
        return dir.dirs().for_each(|inner| ours(inner, folders));
    }
    let files = dir
        .files()
        .filter_map(|file| Some((file_name(file.path()), file.contents_utf8()?.to_string())));
    folders.push(Folder {
        name: path.replace('/', "-"),
        place: format!("programs/{path}/program.toml"),
        files: files.collect(),
    });
}

fn users(home: &Path, prefix: &str, folders: &mut Vec<Folder>, faults: &mut Vec<Fault>) {
    for path in folder::listing(home) {
        let name = format!("{prefix}{}", file_name(&path));
        let place = path.join("program.toml");
        if !place.exists() {
            users(&path, &format!("{name}-"), folders, faults);
            continue;
        }
        let files = || -> std::io::Result<BTreeMap<String, String>> {
            fs::read_dir(&path)?
                .flatten()
                .map(|entry| entry.path())
                .filter(|path| path.is_file())
                .map(|path| folder::read(&path).map(|text| (file_name(&path), text)))
                .collect()
        };
        match files() {
            Ok(files) => folders.push(Folder {
                name,
                place: place.display().to_string(),
                files,
            }),
            Err(error) => faults.push(Fault::new(
                path.display().to_string(),
                "",
                error.to_string(),
                "its files must be readable text",
            )),
        }
    }
}

/// Adds to each program the files of the programs that it shares.
fn share(programs: &mut [Program], faults: &mut Vec<Fault>) {
    let files_by_name: BTreeMap<_, _> = programs
        .iter()
        .map(|program| (program.name.clone(), program.files.clone()))
        .collect();
    for program in programs {
        for name in &program.shares {
            let mut fault = |what: String, mend: &str| {
                let file = format!("program {}", program.name);
                faults.push(Fault::new(file, "shares", what, mend));
            };
            let Some(files) = files_by_name.get(name) else {
                let what = format!("there is no program `{name}`");
                fault(what, "see `heapmark list languages`");
                continue;
            };
            for (file, text) in files {
                if program.files.insert(file.clone(), text.clone()).is_some() {
                    let what = format!("`{name}` and this program both have a file {file}");
                    fault(what, "rename one of the two");
                }
            }
        }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

/// Reads the program of a folder.
fn parse(mut folder: Folder, faults: &mut Vec<Fault>) -> Option<Program> {
    let place = folder.place.as_str();
    let text = folder.files.remove("program.toml").unwrap_or_default();
    let program = Program {
        files: folder.files,
        ..faults::read(place, &text, faults)?
    };
    super::allocators::check_name(place, &program.name, "folder", &folder.name, faults);
    let mut add =
        |key: &str, what: &str, mend: &str| faults.push(Fault::new(place, key, what, mend));
    let builds = program.build.iter().map(|words| ("build", words));
    let needs = program.needs.iter();
    let probes = needs.map(|need| ("needs.probe", &need.probe));
    for (key, words) in builds.chain(probes).chain([("run", &program.run)]) {
        if words.is_empty() {
            add(key, "no words", "give a command and its arguments");
        }
    }
    if program.expects_stdout.is_none()
        && !(program.probe.is_empty() && program.probe_run.is_empty())
    {
        add(
            "probe",
            "a program that reads a job is told by `check=1`",
            "remove it, or say what the program prints",
        );
    }
    if program.environment.keys().any(|key| key.starts_with("LD_")) {
        add(
            "environment",
            "the dynamic linker's variables are ours",
            "link the program so that it needs none",
        );
    }
    Some(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINE: &str =
        "name = \"mine\"\nabout = \"x\"\nallocator = \"none\"\nrun = [\"sh\", \"mine.sh\"]\n";

    fn faults_of(text: &str) -> String {
        let mut faults = Vec::new();
        let (place, files) = (
            "programs/mine/program.toml".into(),
            [("program.toml".into(), text.into())].into(),
        );
        parse(
            Folder {
                name: "mine".into(),
                place,
                files,
            },
            &mut faults,
        );
        faults::Faults(faults).to_string()
    }

    #[test]
    fn all_of_ours_can_be_read() {
        let mut faults = Vec::new();
        let all = load(&mut faults);
        assert_eq!(faults, []);
        let pmdk = all
            .iter()
            .find(|program| program.name == "zalloc-pmdk")
            .unwrap();
        assert!(
            pmdk.files.contains_key("zalloc-pmdk.c") && !pmdk.files.contains_key("program.toml")
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        assert_eq!(faults_of(MINE), "");
        assert!(
            faults_of(&MINE.replace("\"mine\"", "\"yours\"")).contains("write `name = \"mine\"`")
        );
        assert!(faults_of(&MINE.replace("[\"sh\", \"mine.sh\"]", "[]")).contains("run: no words"));
        assert!(faults_of(&MINE.replace("none", "all")).contains("all: unknown"));
        assert!(faults_of(&format!("{MINE}probe = [\"--probe\"]\n")).contains("check=1"));
        assert!(faults_of(&format!("{MINE}[environment]\nLD_PRELOAD = \"x\"")).contains("ours"));
    }
}
