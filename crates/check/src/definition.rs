//! The checks of `heapmark check`: C and C++ files in the folder `checks`, each of which begins
//! with a comment that has the check's keys as TOML. docs/CHECK.md explains them to users.

use anyhow::{Context, Result, ensure};
use heapmark_core::store::Standing;
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::time::Duration;

static OURS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../checks");

/// A small program that shows one property of an allocator: it passes or fails, or it is a wrong
/// program, in the folder `checks/hardening`, and ends in outcomes.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The file's name.
    #[serde(skip)]
    pub name: String,
    /// What must hold, or what the wrong program does, in one line.
    pub about: String,
    /// The group of checks that examine similar calls, or make similar mistakes.
    pub group: String,
    /// The reason why a program may rely on the checked property; `None` for a wrong program.
    pub standing: Option<Standing>,
    /// The standard that demands the property, the report of a program that broke without it, or a
    /// description of the mistake.
    pub source: String,
    /// Why the property or the mistake matters to programs.
    pub why: String,
    /// Whether the preset quick leaves the check out.
    #[serde(default)]
    pub full: bool,
    /// The number of processes for the check, or for each of its cells, if not the usual number.
    trials: Option<u32>,
    /// The time limit of a process in seconds, if not the usual one.
    seconds: Option<u64>,
    /// For a wrong program: the sizes of its blocks, in bytes.
    #[serde(default = "sizes")]
    pub sizes: Vec<u64>,
    /// For a wrong program: what the attacker may know.
    #[serde(default = "naive")]
    pub forms: Vec<Form>,
    /// The kind of result that a wrong program has.
    #[serde(default)]
    pub ends: Ends,
    /// How the lines `sample=` of all processes are judged together.
    pub gather: Option<Gather>,
    /// Whether chance decides, so that the preset full makes enough processes for a rate.
    #[serde(default)]
    pub rate: bool,
    /// The program that contains the check.
    #[serde(skip)]
    pub program: CheckProgram,
    /// The source, without its keys and without its planted fault.
    #[serde(skip)]
    pub body: String,
}

/// The programs that contain the checks: C++ needs a library that the other programs must not load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CheckProgram {
    /// Checks in C.
    #[default]
    C,
    /// Checks in C++.
    Cxx,
    /// Checks that replace operators of C++: the program must then contain no other check.
    Replacing,
}

/// What an attacker knows about the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// The attacker knows nothing: the bytes are made up.
    Naive,
    /// The attacker knows what genuine blocks look like: the bytes are copied from them, without
    /// understanding.
    Informed,
}

impl fmt::Display for Form {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// The kind of result that a wrong program has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ends {
    /// How the allocator answers a wrong program.
    #[default]
    Outcome,
    /// Values that the program can see: it does nothing wrong, or only reads.
    Values,
}

/// What an allocator makes of a wrong program. The order follows how far an attacker gets, and is
/// no score: an outcome of one small program says little about a clever one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseOutcome {
    /// The allocator ended the process on purpose, inside the bad call.
    Stopped,
    /// The hardware ended the process, on the bad access itself.
    Trapped,
    /// The allocator ended the process on purpose, some calls later.
    StoppedLate,
    /// The process was not ended, and the heap is intact.
    Absorbed,
    /// Nothing wrong was done: the check ends in values.
    Observed,
    /// The check does not apply to this allocator or this machine.
    Unsupported,
    /// The process did not end within its time.
    Hang,
    /// The process crashed by a fault that was not on purpose.
    Crashed,
    /// Bytes of another live block were changed, and nothing noticed it.
    Spilled,
    /// A block got two owners, or bytes that were not written into it.
    Corrupted,
    /// The check itself went wrong, another library served, or the benign twin did not end well:
    /// nothing is known about the allocator.
    Error,
}

impl MisuseOutcome {
    /// Whether the outcome shows something about the allocator.
    pub fn is_answer(self) -> bool {
        !matches!(self, MisuseOutcome::Unsupported | MisuseOutcome::Error)
    }
}

impl fmt::Display for MisuseOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(formatter)
    }
}

/// How the samples of many processes are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gather {
    /// Which bits vary in the samples, which are addresses.
    Bits,
    /// How many of the samples differ.
    Distinct,
    /// How often the best guess is right, and how many bits of entropy the samples contain.
    Entropy,
}

/// Functions for blocks that neither ISO C nor POSIX has.
const OF_GLIBC: [&str; 4] = ["malloc_usable_size", "memalign", "valloc", "pvalloc"];

fn sizes() -> Vec<u64> {
    vec![24, 4000, 256 << 10, 1 << 20]
}

fn naive() -> Vec<Form> {
    vec![Form::Naive]
}

/// How long a check may take; wrong programs may loop for ever in a list that they have turned into
/// a ring.
const TIME: Duration = Duration::from_secs(10);
const TIME_OF_WRONG: Duration = Duration::from_secs(3);
/// `TRIALS` is the number of processes for a check of threads or forks, where chance plays a part,
/// and for each cell of a wrong program in the preset full. `FEW_TRIALS` is the number for such a
/// cell in the preset quick.
const TRIALS: u32 = 8;
const FEW_TRIALS: u32 = 2;
/// The number of processes of a cell for a rate: an event that none of them shows is rare.
pub const TRIALS_OF_A_RATE: u32 = 200;

/// All checks, sorted by group and name.
pub fn all() -> Result<Vec<Check>> {
    let folders = ["replacing", "hardening"].map(|name| OURS.get_dir(name));
    let folders = [Some(&OURS)].into_iter().chain(folders).flatten();
    let mut all: Vec<Check> = folders
        .flat_map(|folder| folder.files())
        .filter_map(|file| {
            let parsed = parse(file.path(), file.contents_utf8()?).transpose()?;
            Some(parsed.with_context(|| format!("checks/{}", file.path().display())))
        })
        .collect::<Result<_>>()?;
    all.sort_by(|a, b| (&a.group, &a.name).cmp(&(&b.group, &b.name)));
    Ok(all)
}

/// Reads a check; `None` for a file of another kind.
fn parse(path: &Path, text: &str) -> Result<Option<Check>> {
    let program = match path.extension().and_then(|extension| extension.to_str()) {
        Some("c") => CheckProgram::C,
        Some("cc") if path.starts_with("replacing") => CheckProgram::Replacing,
        Some("cc") => CheckProgram::Cxx,
        _ => return Ok(None),
    };
    let (keys, source) = text
        .strip_prefix("/*\n")
        .and_then(|rest| rest.split_once("*/\n"))
        .context("it does not begin with a comment that holds its keys")?;
    let planted = source.split_once("#ifdef PLANTED");
    let is_wrong = path.starts_with("hardening");
    ensure!(
        is_wrong || planted.is_some(),
        "it has no planted fault (#ifdef PLANTED)"
    );
    let body = planted.map_or(source, |(body, _)| body);
    let lines = body.split_inclusive('\n');
    let body = lines.map(|line| included(line).unwrap_or(line)).collect();
    let name = path.file_stem().unwrap_or_default();
    let check = Check {
        name: name.to_string_lossy().into(),
        program,
        body,
        ..toml::from_str(keys)?
    };
    ensure!(
        check.standing.is_none() == is_wrong,
        "checks have a standing, and those of hardening have none"
    );
    ensure!(
        !check.sizes.is_empty() && !check.forms.is_empty(),
        "no sizes, or no forms"
    );
    Ok(Some(check))
}

/// The text that replaces a line that includes a file of the folder `harness`; printed programs
/// bring what they need from the headers of all checks.
fn included(line: &str) -> Option<&'static str> {
    let file = line.strip_prefix("#include \"")?.strip_suffix("\"\n")?;
    match file {
        "harness/check.h" | "../harness/misuse.h" => Some(""),
        _ => OURS.get_file(file)?.contents_utf8(),
    }
}

impl Check {
    /// Whether the check is a wrong program, whose outcome is classified: a check of hardening.
    pub fn is_wrong(&self) -> bool {
        self.standing.is_none()
    }

    /// The check's cells: sizes and forms, or one cell without a size if the check passes or fails.
    /// The preset quick takes the smallest size and one that stands for large blocks.
    pub fn cells(&self, is_full: bool) -> Vec<(u64, Form)> {
        if !self.is_wrong() {
            return vec![(0, Form::Naive)];
        }
        let mut sizes = self.sizes.clone();
        if !is_full && sizes.len() > 2 {
            sizes = vec![sizes[0], sizes[sizes.len() / 2]];
        }
        let all = sizes
            .iter()
            .flat_map(|size| self.forms.iter().map(|form| (*size, *form)));
        all.collect()
    }

    /// How long a process may take, unless the user says otherwise.
    pub fn usual_time(&self) -> Duration {
        let usual = if self.is_wrong() { TIME_OF_WRONG } else { TIME };
        self.seconds.map_or(usual, Duration::from_secs)
    }

    /// The number of processes of a cell, unless the check's keys set it: the preset quick runs
    /// few, but several for a check of threads or forks that the user names.
    pub fn processes(&self, is_full: bool, is_named: bool) -> u32 {
        let by_chance = matches!(self.group.as_str(), "threads" | "fork");
        match (self.trials, self.standing) {
            (Some(trials), _) => trials,
            (None, None) if self.rate && is_full => TRIALS_OF_A_RATE,
            (None, None) if is_full => TRIALS,
            (None, None) => FEW_TRIALS,
            (None, Some(Standing::Observe)) => 1,
            (None, Some(_)) if by_chance && (is_full || is_named) => TRIALS,
            (None, Some(_)) => 1,
        }
    }

    /// Whether the check does something wrong, which a benign twin can leave out. A check that only
    /// looks is its own twin.
    pub fn has_twin(&self) -> bool {
        self.is_wrong() && contains_word(&self.body, "wrong")
    }

    /// Why the check says nothing of a library that leaves these functions to the C library: it
    /// calls one of them that no standard has, and the C library's own does not know the library's
    /// blocks. Checks of the standing gnu are about such functions.
    pub fn why_not_of(&self, left_to_libc: &[String]) -> Option<String> {
        let is_called = |name: &&&str| {
            left_to_libc.iter().any(|left| left == **name) && contains_word(&self.body, name)
        };
        let name = OF_GLIBC
            .iter()
            .find(is_called)
            .filter(|_| self.standing != Some(Standing::Gnu))?;
        Some(format!("{name} is the C library's"))
    }

    /// Whether the check may report a value with this name: some names are composed of words.
    pub fn notes(&self, name: &str) -> bool {
        self.gather.is_some() || name.split(' ').all(|word| self.body.contains(word))
    }
}

/// Whether a name is in a text, as a whole word.
pub fn contains_word(text: &str, name: &str) -> bool {
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_keys_or_without_a_planted_fault_is_refused() {
        let keys = "/*\nabout = \"a\"\ngroup = \"g\"\nstanding = \"std\"\nsource = \"s\"\nwhy = \"w\"\n*/\n";
        let whole = format!("{keys}CHECK {{\n}}\n#ifdef PLANTED\n#endif\n");
        let parse = |text: &str| parse(Path::new("one.c"), text);
        parse(&whole).unwrap().unwrap();
        for (text, why) in [
            (whole.replace("/*", "//"), "does not begin with a comment"),
            (format!("{keys}CHECK {{\n}}\n"), "no planted fault"),
            (whole.replace("why", "because"), "unknown field"),
            (whole.replace("standing = \"std\"\n", ""), "have a standing"),
        ] {
            let error = format!("{:#}", parse(&text).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }

    #[test]
    fn each_wrong_program_has_a_benign_twin_and_no_other_check_has_one() {
        for check in all().unwrap() {
            let is_wrong = check.is_wrong() && check.ends == Ends::Outcome;
            assert!(check.has_twin() || !is_wrong, "{}", check.name);
            assert!(check.is_wrong() || !check.has_twin(), "{}", check.name);
        }
    }

    #[test]
    fn what_a_standard_demands_is_checked_by_its_own_functions() {
        let mut checks = all().unwrap();
        checks.retain(|check| check.standing == Some(Standing::Std));
        for check in checks {
            let others = OF_GLIBC
                .iter()
                .filter(|name| contains_word(&check.body, name));
            let is_about_them = check.name == "realloc-usable";
            assert_eq!(others.count(), usize::from(is_about_them), "{}", check.name);
        }
    }

    #[test]
    fn names_are_unique() {
        let mut names: Vec<String> = all().unwrap().into_iter().map(|check| check.name).collect();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn quick_takes_two_sizes_and_few_processes() {
        let keys = "/*\nabout = \"a\"\ngroup = \"g\"\nsource = \"s\"\nwhy = \"w\"\nrate = true\n*/\nMISUSE {\n}\n";
        let parse = |text: &str| parse(Path::new("hardening/one.c"), text);
        let check = parse(keys).unwrap().unwrap();
        let sizes = |is_full| {
            check
                .cells(is_full)
                .iter()
                .map(|cell| cell.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(false), [24, 256 << 10]);
        assert_eq!(sizes(true), [24, 4000, 256 << 10, 1 << 20]);
        let processes = |is_full| check.processes(is_full, true);
        assert_eq!((processes(false), processes(true)), (2, 200));
        assert!(parse(&keys.replace("rate = true", "sizes = []")).is_err());
        assert!(parse(&keys.replace("why", "because")).is_err());
        let standing = "standing = \"std\"\nrate = true";
        assert!(parse(&keys.replace("rate = true", standing)).is_err());
    }

    #[test]
    fn checks_of_threads_and_forks_have_several_processes_unless_quick_runs_all() {
        let all = all().unwrap();
        let of = |name: &str, is_full: bool, is_named: bool| {
            let check = all.iter().find(|check| check.name == name).unwrap();
            check.processes(is_full, is_named)
        };
        assert_eq!(of("fork-ways", false, false), 1);
        assert_eq!(of("fork-ways", false, true), 8);
        assert_eq!(of("fork-ways", true, false), 8);
        assert_eq!(of("free-errno", true, true), 1);
    }
}
