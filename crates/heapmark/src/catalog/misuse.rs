//! The checks of hardening of `heapmark check`: programs that use their allocator wrongly, C files
//! of the folder `checks/hardening`. docs/CHECK.md explains them to users.

use super::check::{OURS, headers, keys_and_source};
use super::joined;
use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One way to use an allocator wrongly, or one property that decides what an attacker can do.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Misuse {
    /// The file's name.
    #[serde(skip)]
    pub name: String,
    /// What the program does, in one line.
    pub about: String,
    /// Checks of a group are similar mistakes.
    pub group: String,
    /// Where it is described.
    pub source: String,
    /// What depends on it.
    pub why: String,
    /// The blocks that it is made with, in bytes.
    #[serde(default = "sizes")]
    pub sizes: Vec<u64>,
    /// What the attacker knows.
    #[serde(default = "naive")]
    pub forms: Vec<Form>,
    /// What it ends in.
    #[serde(default)]
    pub ends: Ends,
    /// What is made of the lines `sample=` of all its processes.
    #[serde(default)]
    pub gather: Option<Gather>,
    /// Processes of a cell, if it needs others than the preset has.
    #[serde(default)]
    pub trials: Option<u32>,
    /// Whether chance decides, so that the preset full makes enough processes for a rate.
    #[serde(default)]
    pub rate: bool,
    /// Whether the preset quick leaves it out.
    #[serde(default)]
    pub full: bool,
    /// How long a process may take, if it needs longer than others.
    #[serde(default)]
    pub seconds: Option<u64>,
    /// The C source, without its keys.
    #[serde(skip)]
    body: String,
}

/// What an attacker knows of the allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// Nothing: the bytes are made up.
    Naive,
    /// What genuine blocks look like: the bytes are copied from them, without understanding.
    Informed,
}

impl Form {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Form::Naive => "naive",
            Form::Informed => "informed",
        }
    }
}

/// What a check ends in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ends {
    /// How the allocator answers a wrong program.
    #[default]
    Outcome,
    /// What a program can see, in values: it does nothing wrong, or reads only.
    Values,
}

/// What an allocator makes of a wrong program. The order is that of how far an attacker gets, and no
/// score: an outcome of one small program says little about a clever one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MisuseOutcome {
    /// It ended the process on purpose, inside the bad call.
    Stopped,
    /// The hardware did, on the bad access itself.
    Trapped,
    /// It ended the process on purpose, some calls later.
    StoppedLate,
    /// Nothing ended, and the heap is whole.
    Absorbed,
    /// Nothing wrong was done: the check ends in values.
    Observed,
    /// It cannot apply to this allocator or here.
    Unsupported,
    /// It did not end within its time.
    Hang,
    /// A fault that is not on purpose.
    Crashed,
    /// Bytes of another live block were changed, and it was not noticed.
    Spilled,
    /// A block got two owners, or bytes that were not written into it.
    Corrupted,
    /// The check itself went wrong, another library served, or the benign twin did not end well:
    /// nothing is known of the allocator.
    Error,
}

impl MisuseOutcome {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            MisuseOutcome::Stopped => "stopped",
            MisuseOutcome::Trapped => "trapped",
            MisuseOutcome::StoppedLate => "stopped-late",
            MisuseOutcome::Absorbed => "absorbed",
            MisuseOutcome::Observed => "observed",
            MisuseOutcome::Unsupported => "unsupported",
            MisuseOutcome::Hang => "hang",
            MisuseOutcome::Crashed => "crashed",
            MisuseOutcome::Spilled => "spilled",
            MisuseOutcome::Corrupted => "corrupted",
            MisuseOutcome::Error => "error",
        }
    }

    /// Whether it says something of the allocator.
    pub fn is_answer(self) -> bool {
        !matches!(self, MisuseOutcome::Unsupported | MisuseOutcome::Error)
    }
}

/// What is made of the samples of many processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Gather {
    /// Addresses: which of their bits vary.
    Bits,
    /// How many of them differ.
    Distinct,
    /// How well the best guess does, and how many bits they hold.
    Entropy,
}

fn sizes() -> Vec<u64> {
    vec![24, 4000, 256 << 10, 1 << 20]
}

fn naive() -> Vec<Form> {
    vec![Form::Naive]
}

/// Some wrong programs loop for ever in a list that they have made a ring.
const TIME: Duration = Duration::from_secs(3);
/// Processes of a cell in the preset full, and in quick.
const TRIALS: u32 = 8;
const FEW_TRIALS: u32 = 2;
/// Processes of a cell for a rate: what none of so many shows is rare.
pub const TRIALS_OF_A_RATE: u32 = 200;

/// All of them by group and name.
pub fn all() -> Result<Vec<Misuse>> {
    let folder = OURS.get_dir("hardening");
    let files = folder.into_iter().flat_map(|folder| folder.files());
    let mut all: Vec<Misuse> = files
        .filter(|file| file.path().extension().is_some_and(|it| it == "c"))
        .map(|file| {
            let name = file
                .path()
                .file_stem()
                .unwrap_or_default()
                .to_string_lossy();
            let parsed = parse(&name, file.contents_utf8().unwrap_or_default());
            parsed.with_context(|| format!("checks/hardening/{name}.c"))
        })
        .collect::<Result<_>>()?;
    all.sort_by(|a, b| (&a.group, &a.name).cmp(&(&b.group, &b.name)));
    Ok(all)
}

fn parse(name: &str, text: &str) -> Result<Misuse> {
    let (keys, body) = keys_and_source(text)?;
    let misuse = Misuse {
        name: name.into(),
        body: body.replace("#include \"../harness/misuse.h\"\n", ""),
        ..toml::from_str(keys)?
    };
    ensure!(
        !misuse.sizes.is_empty() && !misuse.forms.is_empty(),
        "no sizes, or no forms"
    );
    Ok(misuse)
}

/// What a program needs of the harness, in short: paragraphs, each of which begins with what it
/// defines.
const ALONE: &str = include_str!("../../../../checks/harness/alone.h");

impl Misuse {
    /// Its cells: sizes and forms. The preset quick takes the smallest size and one that large
    /// blocks are served like.
    pub fn cells(&self, is_full: bool) -> Vec<(u64, Form)> {
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
        self.seconds.map_or(TIME, Duration::from_secs)
    }

    /// Processes of a cell.
    pub fn processes(&self, is_full: bool) -> u32 {
        match self.trials {
            Some(trials) => trials,
            None if !is_full => FEW_TRIALS,
            None if self.rate => TRIALS_OF_A_RATE,
            None => TRIALS,
        }
    }

    /// Whether it does something wrong, so that a benign twin can leave it out. What only looks is its
    /// own twin.
    pub fn has_twin(&self) -> bool {
        contains_word(&self.body, "wrong")
    }

    /// Whether it may say a value of this name: some names are put together of words.
    pub fn notes(&self, name: &str) -> bool {
        self.gather.is_some() || name.split(' ').all(|word| self.body.contains(word))
    }

    /// The same as a C program that needs nothing of heapmark: it ends by what stopped it, with 1 if
    /// a block got two owners, or other bytes than its own, and otherwise with 0.
    pub fn program(&self) -> String {
        let lines = self.body.lines().filter(|line| !line.is_empty());
        let (includes, body): (Vec<&str>, Vec<&str>) =
            lines.partition(|line| line.starts_with("#include"));
        // It has no benign twin.
        let body = body.into_iter().filter(|line| !line.contains("!wrong"));
        let body = joined(body, "\n")
            .replace("MISUSE {", "static void body(void) {")
            .replace("if (wrong) ", "")
            .replace("wrong && ", "");
        let (before, main) = self.harness_for(&body);
        let all = format!("{before}{body}\n{main}");
        let headers = headers(&all);
        let prints = all.contains("printf") || all.contains("fopen");
        let headers = headers
            .lines()
            .filter(|it| prints || !it.contains("stdio.h"));
        let headers = joined(headers.chain(includes), "\n");
        let informed = match self.forms.contains(&Form::Informed) {
            true => " [informed]",
            false => "",
        };
        format!(
            "// {}: {}\n// cc -fno-builtin -pthread FILE.c -ldl && LD_PRELOAD=LIBRARY ./a.out {}{informed}; echo $?\n\
             #define _GNU_SOURCE\n{headers}\n{all}",
            self.name, self.about, self.sizes[0],
        )
    }

    /// What a body needs of the harness, before it and after it.
    fn harness_for(&self, body: &str) -> (String, String) {
        let mut main = String::new();
        let mut needed: Vec<&str> = Vec::new();
        let paragraphs: Vec<&str> = ALONE.split("\n\n").collect();
        // From the last one on, since later ones need earlier ones.
        for paragraph in paragraphs.into_iter().rev() {
            let Some((name, text)) = paragraph
                .strip_prefix("// ")
                .and_then(|rest| rest.split_once('\n'))
            else {
                continue;
            };
            let text = text.trim_end();
            if name == "main" {
                main = self.main(text);
            }
            let texts = needed.iter().copied().chain([body, &main]);
            if name != "main" && texts.into_iter().any(|it| contains_word(it, name)) {
                needed.push(text);
            }
        }
        needed.reverse();
        let before = joined(needed.iter().map(|it| format!("{it}\n")), "");
        (before, format!("{main}\n"))
    }

    /// Without an exercise if there is nothing that it could show.
    fn main(&self, text: &str) -> String {
        let is_for_it = |line: &&str| self.ends == Ends::Outcome || !line.contains("take(");
        let main = joined(text.lines().filter(is_for_it), "\n");
        match self.forms.contains(&Form::Informed) {
            true => main.replace("    free(", "    informed = words > 2;\n    free("),
            false => main,
        }
    }
}

/// Whether a name is in a text, as a whole word.
fn contains_word(text: &str, name: &str) -> bool {
    let is_part = |it: char| it.is_alphanumeric() || it == '_';
    text.match_indices(name).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + name.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_a_line_for_each_check() {
        let document = include_str!("../../../../docs/CHECK.md");
        for check in all().unwrap() {
            let full = if check.full { " (full)" } else { "" };
            let line = format!(
                "| {} | {}{full} | {} | {} | {} |",
                check.name, check.group, check.about, check.why, check.source
            );
            assert!(document.contains(&line), "docs/CHECK.md lacks\n{line}");
        }
    }

    #[test]
    fn each_misuse_has_a_benign_twin() {
        for check in all().unwrap() {
            assert!(
                check.ends == Ends::Values || check.has_twin(),
                "{}",
                check.name
            );
        }
    }

    #[test]
    fn names_are_unique_among_all_checks() {
        let others = super::super::check::all().unwrap();
        for check in all().unwrap() {
            assert!(
                others.iter().all(|it| it.name != check.name),
                "{}",
                check.name
            );
        }
    }

    #[test]
    fn quick_takes_two_sizes_and_few_processes() {
        let keys = "/*\nabout = \"a\"\ngroup = \"g\"\nsource = \"s\"\nwhy = \"w\"\nrate = true\n*/\nMISUSE {\n}\n";
        let check = parse("one", keys).unwrap();
        let sizes = |is_full| {
            check
                .cells(is_full)
                .iter()
                .map(|it| it.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(sizes(false), [24, 256 << 10]);
        assert_eq!(sizes(true), [24, 4000, 256 << 10, 1 << 20]);
        assert_eq!((check.processes(false), check.processes(true)), (2, 200));
        assert!(parse("one", &keys.replace("rate = true", "sizes = []")).is_err());
        assert!(parse("one", &keys.replace("why", "because")).is_err());
    }
}
