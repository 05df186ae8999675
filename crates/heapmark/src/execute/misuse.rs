//! One process of a check of hardening: a program that uses its allocator wrongly.

use super::Subject;
use super::check::{CheckRunner, Ended};
use super::memory_file::{mapped_file, numbers};
use crate::catalog::misuse::Form;
use anyhow::{Context, Result};
use std::time::Duration;

const PAGE_BYTES: usize = 4096;

/// What a process is to do.
pub struct Attempt<'a> {
    /// The check's name.
    pub check: &'a str,
    /// The blocks that it is about.
    pub size_bytes: u64,
    /// What the attacker knows.
    pub form: Form,
    /// Whether the misuse happens; the benign twin makes the same calls without it.
    pub is_wrong: bool,
    /// What random bytes and choices begin with.
    pub seed: u32,
    /// How long it may take.
    pub timeout: Duration,
}

/// What was left of such a process.
pub struct Attempted {
    /// How it ended.
    pub ended: Ended,
    /// The signal that ended it, if one did.
    pub signal: Option<i32>,
    /// Values.
    pub notes: Vec<String>,
    /// Values of which only those of many processes say something.
    pub samples: Vec<String>,
    /// How many of its trials ended in one way, of how many, and which way that is.
    pub rates: Vec<String>,
    /// What it wrote while it ran.
    pub page: Page,
    /// The object whose code was running when a signal came.
    pub object: Option<String>,
    /// Whether the fault is the allocator's own way to end a program, as its entry says.
    pub is_own_end: bool,
}

/// How far a process had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Correct so far.
    Setup,
    /// In the wrong calls or accesses.
    Misuse,
    /// In the correct calls after them.
    Exercise,
    /// Comparing contents.
    Verify,
    /// At its end.
    Done,
}

impl Phase {
    /// Its word.
    pub fn word(self) -> &'static str {
        match self {
            Phase::Setup => "before the misuse",
            Phase::Misuse => "in the misuse",
            Phase::Exercise => "in the exercise",
            Phase::Verify => "in the last look",
            Phase::Done => "after its end",
        }
    }
}

/// What `checks/harness/misuse.c` writes, in its order.
pub struct Page {
    /// How far it came.
    pub phase: Phase,
    /// Correct calls after the misuse.
    pub operations: u64,
    /// Addresses at which a fault is the hardware's answer.
    pub target: std::ops::Range<u64>,
    /// The first signal that came: its number, code, address and program counter.
    pub fault: Option<Fault>,
    /// Pairs of live blocks that overlap.
    pub overlaps: u64,
    /// Blocks whose bytes were changed in the exercise.
    pub broken: u64,
    /// Blocks whose bytes the misuse changed.
    pub spilled: u64,
    /// Blocks in memory of the attacker's choice.
    pub chosen_blocks: u64,
    /// Memory of the attacker's choice that was written.
    pub chosen_writes: u64,
}

/// A signal that the process has caught.
pub struct Fault {
    /// Its number.
    pub signal: i32,
    /// `si_addr`.
    pub address: u64,
    /// Where the program was.
    pub pc: u64,
}

impl Fault {
    /// Whether it came of an access.
    pub fn is_access(&self) -> bool {
        [libc::SIGSEGV, libc::SIGBUS].contains(&self.signal)
    }
}

impl Page {
    fn parse(words: [u64; 13]) -> Page {
        let [
            phase,
            operations,
            from,
            end,
            signal,
            _code,
            address,
            pc,
            overlaps,
            broken,
            spilled,
            chosen_blocks,
            chosen_writes,
        ] = words;
        Page {
            phase: match phase {
                0 => Phase::Setup,
                1 => Phase::Misuse,
                2 => Phase::Exercise,
                3 => Phase::Verify,
                _ => Phase::Done,
            },
            operations,
            target: from..end,
            fault: (signal != 0).then_some(Fault {
                signal: signal as i32,
                address,
                pc,
            }),
            overlaps,
            broken,
            spilled,
            chosen_blocks,
            chosen_writes,
        }
    }
}

impl CheckRunner<'_> {
    /// Makes it. Fails with `Interrupted` if `stop` was set.
    pub fn attempt(&self, subject: &Subject, attempt: &Attempt) -> Result<Attempted> {
        let page = mapped_file("heapmark-misuse", PAGE_BYTES)?;
        let words = [
            attempt.size_bytes.to_string(),
            attempt.form.word().into(),
            if attempt.is_wrong { "wrong" } else { "right" }.into(),
            attempt.seed.to_string(),
        ];
        let process = self.process(
            subject,
            &self.program,
            attempt.check,
            attempt.timeout,
            Some((&page, &words)),
        )?;
        let page = Page::parse(numbers(&page).context("cannot read a memory file")?);
        let object = page
            .fault
            .as_ref()
            .and_then(|fault| holder(fault.pc, &process.said("code")));
        let stops_at = &subject.allocator.stops_at;
        let is_own = |it: &Fault| it.is_access() && stops_at.contains(&it.address);
        Ok(Attempted {
            is_own_end: page.fault.as_ref().is_some_and(is_own),
            notes: process.said("note"),
            samples: process.said("sample"),
            rates: process.said("rate"),
            ended: process.ended,
            signal: process.signal,
            page,
            object,
        })
    }
}

/// The file whose code an address is in, of lines `FROM END PATH`; the program itself has no path.
fn holder(pc: u64, code: &[String]) -> Option<String> {
    code.iter().find_map(|line| {
        let mut words = line.splitn(3, ' ');
        let from: u64 = words.next()?.parse().ok()?;
        let end: u64 = words.next()?.parse().ok()?;
        let path = words.next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        let name = if file.is_empty() { "the program" } else { file };
        (from..end).contains(&pc).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_counter_belongs_to_an_object() {
        let lines = ["100 200 ", "300 400 /lib/libone.so.2"].map(String::from);
        assert_eq!(holder(150, &lines).as_deref(), Some("the program"));
        assert_eq!(holder(399, &lines).as_deref(), Some("libone.so.2"));
        assert_eq!(holder(400, &lines), None);
    }
}
