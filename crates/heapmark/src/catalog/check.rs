//! The checks of `heapmark check`: C and C++ files of the folder `checks`, each with its keys as TOML in the
//! comment that it begins with. docs/CHECK.md explains them to users.

use super::joined;
use anyhow::{Context, Result};
use clap::ValueEnum;
use include_dir::{Dir, include_dir};
use serde::{Deserialize, Serialize};
use std::time::Duration;

pub(super) static OURS: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../checks");

/// One thing that a program may rely on, or one that standards leave open.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Check {
    /// The file's name.
    #[serde(skip)]
    pub name: String,
    /// What must hold, in one line.
    pub about: String,
    /// Checks of a group look at similar calls.
    pub group: String,
    /// Who says so.
    pub standing: Standing,
    /// The standard that demands it, or the report of a program that it broke.
    pub source: String,
    /// Why it matters to programs.
    pub why: String,
    /// Whether it takes so long that the preset quick leaves it out.
    #[serde(default)]
    pub full: bool,
    /// Processes that make it, if not as many as usual.
    trials: Option<u32>,
    /// After which it counts as hung.
    #[serde(default = "ten")]
    pub seconds: u32,
    /// As the file's ending says.
    #[serde(skip)]
    pub language: Language,
    /// Whether it replaces operators of C++: then no other check is to be in its program.
    #[serde(skip)]
    pub replacing: bool,
    /// The source, without its keys and without its planted fault.
    #[serde(skip)]
    body: String,
}

/// What a check is written in. C++ has a program of its own: its library is not to be in the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// `.c`
    #[default]
    C,
    /// `.cc`
    Cxx,
}

/// Who says that a program may rely on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// ISO C or POSIX.
    Std,
    /// No standard, but programs for Linux rely on it.
    Gnu,
    /// Nothing but quality: limits, forks, odd environments.
    Robust,
    /// Left open: it ends in values, not in a verdict.
    #[value(skip)]
    Observe,
}

/// Processes of a check of threads or forks: what they meet is a matter of chance.
const TRIALS_OF_CHANCE: u32 = 8;

fn ten() -> u32 {
    10
}

/// All of them by group and name.
pub fn all() -> Result<Vec<Check>> {
    let replacing = OURS.get_dir("replacing");
    let files = OURS.files().map(|file| (file, false));
    let replacing = replacing.iter().flat_map(|it| it.files());
    let mut all: Vec<Check> = files
        .chain(replacing.map(|file| (file, true)))
        .filter_map(|(file, replacing)| {
            let path = file.path();
            let language = match path.extension()?.to_str()? {
                "c" => Language::C,
                "cc" => Language::Cxx,
                _ => return None,
            };
            let name = path.file_stem()?.to_str()?;
            let parsed = parse(name, language, file.contents_utf8()?);
            let parsed = parsed.map(|check| Check { replacing, ..check });
            Some(parsed.with_context(|| format!("checks/{}", path.display())))
        })
        .collect::<Result<_>>()?;
    all.sort_by(|a, b| (&a.group, &a.name).cmp(&(&b.group, &b.name)));
    Ok(all)
}

/// The keys of a check's file, and its source.
pub(super) fn keys_and_source(text: &str) -> Result<(&str, &str)> {
    text.strip_prefix("/*\n")
        .and_then(|rest| rest.split_once("*/\n"))
        .context("it does not begin with a comment that holds its keys")
}

fn parse(name: &str, language: Language, text: &str) -> Result<Check> {
    let (keys, source) = keys_and_source(text)?;
    let (body, _) = source
        .split_once("#ifdef PLANTED")
        .context("it has no planted fault (#ifdef PLANTED)")?;
    let mut body = body.replace("#include \"harness/check.h\"\n", "");
    for shared in OURS.get_dir("harness").iter().flat_map(|it| it.files()) {
        let line = format!("#include \"{}\"\n", shared.path().display());
        body = body.replace(&line, shared.contents_utf8().unwrap_or_default());
    }
    Ok(Check {
        name: name.into(),
        language,
        body,
        ..toml::from_str(keys)?
    })
}

/// What `harness/check.h` includes, and words of programs that need it.
const HEADERS: [(&str, &[&str]); 8] = [
    ("errno.h", &["errno", "ENOMEM", "EINVAL", "EPERM", "ENOENT"]),
    (
        "malloc.h",
        &["memalign(", "malloc_usable_size", "mallinfo", "malloc_info"],
    ),
    ("stdbool.h", &["bool", "true", "false"]),
    (
        "stdint.h",
        &["intptr_t", "SIZE_MAX", "PTRDIFF_MAX", "uint64_t"],
    ),
    ("stdio.h", &[]),
    ("stdlib.h", &[]),
    ("string.h", &["mem", "str"]),
    (
        "unistd.h",
        &[
            "_exit",
            "pid_t",
            "AGAIN",
            "sleep(",
            "close(",
            "read(",
            "write(",
            "lseek(",
            "dup2(",
            "access(",
            "pipe(",
            "getcwd",
            "getpid",
            "gettid",
            "getpagesize",
            "sbrk(",
            "sysconf",
            "syscall(",
            "exec",
        ],
    ),
];

/// Lines that include what a program needs.
pub(super) fn headers(body: &str) -> String {
    let needs = |words: &[&str]| words.is_empty() || words.iter().any(|word| body.contains(word));
    let headers = HEADERS.iter().filter(|(_, words)| needs(words));
    joined(headers.map(|(file, _)| format!("#include <{file}>")), "\n")
}

impl Check {
    /// How long a process may take, unless the user says otherwise.
    pub fn usual_time(&self) -> Duration {
        Duration::from_secs(self.seconds.into())
    }

    /// How many processes run it, if its keys do not say so: one, or several for a check of threads or
    /// forks, unless the quick preset runs all checks.
    pub fn processes(&self, is_thorough: bool) -> u32 {
        let by_chance = matches!(self.group.as_str(), "threads" | "fork");
        match self.trials {
            Some(trials) => trials,
            None if by_chance && self.standing != Standing::Observe && is_thorough => {
                TRIALS_OF_CHANCE
            }
            None => 1,
        }
    }

    /// The same as a program that needs nothing of heapmark: it ends with 0 if all holds, with 1
    /// if something does not, and says what.
    pub fn program(&self) -> String {
        let headers = headers(&self.body);
        let mut macros = String::new();
        for (name, text) in [
            (
                "EXPECT",
                "#define EXPECT(holds, ...) ((holds) ? (void)0 : (printf(__VA_ARGS__), puts(\"\"), exit(1)))\n",
            ),
            (
                "NOTE",
                "#define NOTE(...) (printf(__VA_ARGS__), puts(\"\"))\n",
            ),
            (
                "UNSUPPORTED",
                "#define UNSUPPORTED(...) (printf(__VA_ARGS__), puts(\"\"), exit(77))\n",
            ),
            (
                "AGAIN",
                "#define AGAIN(value) (setenv(\"AGAIN\", value, 1), execl(\"/proc/self/exe\", \"again\", NULL), exit(2))\n",
            ),
            (
                "FIRST",
                "#define FIRST(it) __attribute__((used, section(\".preinit_array\"))) static void (*first_)(int, char **) = it\n",
            ),
        ] {
            if self.body.contains(name) {
                macros += text;
            }
        }
        let (compiler, ending) = match self.language {
            Language::C => ("cc", "c"),
            Language::Cxx => ("c++ -fcheck-new", "cc"),
        };
        let body = self.body.replace("CHECK {", "int main(void) {");
        let body = joined(body.lines().filter(|line| !line.is_empty()), "\n");
        format!(
            "// {}: {}\n// {compiler} -fno-builtin -pthread FILE.{ending} && LD_PRELOAD=LIBRARY ./a.out; echo $?\n#define _GNU_SOURCE\n{headers}\n{macros}{body}\n",
            self.name, self.about
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_has_a_line_for_each_check() {
        let document = include_str!("../../../../docs/CHECK.md");
        for check in all().unwrap() {
            let standing = serde_json::to_value(check.standing).unwrap();
            let full = if check.full { ", full" } else { "" };
            let line = format!(
                "| {} | {} | {}{full} | {} | {} | {} |",
                check.name,
                check.group,
                standing.as_str().unwrap(),
                check.about,
                check.why,
                check.source
            );
            assert!(document.contains(&line), "docs/CHECK.md lacks\n{line}");
        }
    }

    #[test]
    fn a_file_without_keys_or_without_a_planted_fault_is_refused() {
        let keys = "/*\nabout = \"a\"\ngroup = \"g\"\nstanding = \"std\"\nsource = \"s\"\nwhy = \"w\"\n*/\n";
        let whole = format!("{keys}CHECK {{\n}}\n#ifdef PLANTED\n#endif\n");
        parse("one", Language::C, &whole).unwrap();
        for (text, why) in [
            (whole.replace("/*", "//"), "does not begin with a comment"),
            (format!("{keys}CHECK {{\n}}\n"), "no planted fault"),
            (whole.replace("why", "because"), "unknown field"),
        ] {
            let said = format!("{:#}", parse("one", Language::C, &text).unwrap_err());
            assert!(said.contains(why), "{said}");
        }
    }
}
