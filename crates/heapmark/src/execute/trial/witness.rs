//! What the witness in each process said of who serves its memory, and who kept silent.

use super::executed::Executed;
use crate::build::command::recognise;
use crate::execute::memory_file::{memory_file, text};
use crate::execute::report::Report;
use crate::execute::{Proof, Subject, prove};
use anyhow::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// The file that every witness writes into.
pub(super) struct Log(File);

/// A program that a process of the tree was.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Witnessed {
    pub pid: i32,
    pub program: String,
    pub proof: Proof,
}

impl Log {
    pub fn new() -> Result<Log> {
        Ok(Log(memory_file("heapmark-witness")?))
    }

    /// By this process's own table of files: a command may close what it inherits.
    pub fn variable(&self) -> (String, String) {
        ("HEAPMARK_WITNESS".into(), format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd()))
    }

    pub fn read(&self) -> Vec<Witnessed> {
        parse(&text(&self.0, 0))
    }
}

/// What cannot be read as a whole proves nothing.
fn parse(text: &str) -> Vec<Witnessed> {
    let parts = text.split("process=").skip(1).filter(|part| part.ends_with("end=1\n"));
    let read = |part: &str| {
        let (head, _) = part.split_once('\n')?;
        let (pid, rest) = head.split_once(' ')?;
        let (_parent, program) = rest.split_once(' ')?;
        let proof = Report::parse(part).proof().clone();
        Some(Witnessed { pid: pid.parse().ok()?, program: program.to_owned(), proof })
    };
    parts.filter_map(read).collect()
}

/// Why a tree does not count: the first of its processes that somebody else served.
pub(super) fn unproven(subject: &Subject, witnessed: &[Witnessed]) -> Option<String> {
    witnessed.iter().find_map(|process| {
        let why = prove::verify(subject, &process.proof).err()?;
        Some(format!("{why} in {} (process {})", process.program, process.pid))
    })
}

/// What people must know of programs that were executed and no witness speaks for: which they are and why.
pub(super) fn told(witnessed: &[Witnessed], executed: &[Executed]) -> Option<String> {
    let known: BTreeSet<(i32, &str)> = witnessed.iter().map(|it| (it.pid, it.program.as_str())).collect();
    let mut silent: BTreeMap<&str, usize> = BTreeMap::new();
    for one in executed.iter().filter(|one| !known.contains(&(one.pid, one.program.as_str()))) {
        *silent.entry(&one.program).or_default() += 1;
    }
    let words: Vec<String> = silent
        .into_iter()
        .map(|(program, times)| {
            let why = recognise(Path::new(program)).unreachable();
            let why = why.unwrap_or_else(|| "it was started without LD_PRELOAD".into());
            format!("{program} ({}{why})", if times > 1 { format!("{times} times; ") } else { String::new() })
        })
        .collect();
    (!words.is_empty()).then(|| words.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "process=7 6 /usr/bin/a b\nobject=0 1 2 - /usr/bin/a b\nobject=6 1 3 ab12 /lib/libc.so.6\n\
        owner=malloc 6\nowner=free 6\nend=1\nprocess=8 7 /usr/bin/c\nobject=0 1 4 - /usr/bin/c\nowner=malloc 0\nend=1\n";

    #[test]
    fn each_process_is_read_and_a_torn_one_is_not() {
        let all = parse(TWO);
        assert_eq!(
            all.iter().map(|it| (it.pid, it.program.as_str())).collect::<Vec<_>>(),
            [(7, "/usr/bin/a b"), (8, "/usr/bin/c")]
        );
        assert_eq!(all[0].proof.objects[all[0].proof.owners["malloc"]].path, "/lib/libc.so.6");
        assert_eq!(parse(&TWO[..TWO.len() - 3]).len(), 1);
        assert_eq!(parse("nonsense\nprocess=x y\nend=1\n"), []);
    }

    #[test]
    fn one_process_that_somebody_else_served_is_named() {
        let why = unproven(&Subject::libc(), &parse(TWO)).unwrap();
        assert_eq!(why, "malloc is served by /usr/bin/c, not by the C library in /usr/bin/c (process 8)");
        assert_eq!(unproven(&Subject::libc(), &parse(TWO)[..1]), None);
    }

    #[test]
    fn who_kept_silent_is_told() {
        let run = |pid, program: &str| Executed { pid, program: program.into() };
        let executed = [run(7, "/usr/bin/a b"), run(8, "/usr/bin/c"), run(8, "/bin/sh"), run(9, "/bin/sh")];
        let words = told(&parse(TWO), &executed).unwrap();
        assert_eq!(words, "/bin/sh (2 times; it was started without LD_PRELOAD)");
        assert_eq!(told(&parse(TWO), &executed[..2]), None);
    }
}
