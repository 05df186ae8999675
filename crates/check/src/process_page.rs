//! What a wrong program of `heapmark check` writes while it runs, into memory that remains however
//! the program ends.

use anyhow::{Context, Result};
use heapmark_core::execute::memory_file::numbers;
use heapmark_core::execute::report_lines::ReportLines;
use std::fs::File;

/// How far a process came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// The process has done nothing wrong yet.
    #[default]
    Setup,
    /// The process is in the wrong calls or accesses.
    Misuse,
    /// The process is in the correct calls after the misuse.
    Exercise,
    /// The process compares the contents of blocks.
    Verify,
    /// The process is at its end.
    Done,
}

impl Phase {
    /// The phase in words.
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
#[derive(Default)]
pub struct CheckPage {
    /// How far the process came.
    pub phase: Phase,
    /// The number of correct calls after the misuse.
    pub operations: u64,
    /// Addresses at which a fault is the hardware's answer.
    pub target: std::ops::Range<u64>,
    /// The first signal that the process caught.
    pub fault: Option<CaughtSignal>,
    /// The number of pairs of live blocks that overlap.
    pub overlaps: u64,
    /// The number of blocks whose bytes were changed in the exercise.
    pub broken: u64,
    /// The number of blocks whose bytes the misuse changed.
    pub spilled: u64,
    /// The number of blocks in memory of the attacker's choice.
    pub chosen_blocks: u64,
    /// How often memory of the attacker's choice was written.
    pub chosen_writes: u64,
}

/// A signal that the process has caught.
pub struct CaughtSignal {
    /// The signal's number.
    pub signal: i32,
    /// The address of the fault, `si_addr`.
    pub address: u64,
    /// The object whose code was running.
    pub object: String,
    /// Whether the signal is the allocator's own way to end a program, as its entry says.
    pub is_own_end: bool,
}

impl CaughtSignal {
    /// Whether the signal came from a memory access.
    pub fn is_access(&self) -> bool {
        [libc::SIGSEGV, libc::SIGBUS].contains(&self.signal)
    }
}

impl CheckPage {
    pub const BYTES: usize = 4096;

    pub fn read(file: &File, lines: &ReportLines, stops_at: &[u64]) -> Result<CheckPage> {
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
        ] = numbers(file).context("cannot read a memory file")?;
        let mut fault = CaughtSignal {
            signal: signal as i32,
            address,
            object: holder(pc, lines),
            is_own_end: false,
        };
        fault.is_own_end = fault.is_access() && stops_at.contains(&address);
        Ok(CheckPage {
            phase: match phase {
                0 => Phase::Setup,
                1 => Phase::Misuse,
                2 => Phase::Exercise,
                3 => Phase::Verify,
                _ => Phase::Done,
            },
            operations,
            target: from..end,
            fault: (signal != 0).then_some(fault),
            overlaps,
            broken,
            spilled,
            chosen_blocks,
            chosen_writes,
        })
    }
}

/// The file whose code contains an address, from lines `code=FROM END PATH`; the program itself has
/// no path.
fn holder(pc: u64, lines: &ReportLines) -> String {
    let found = lines.values("code").find_map(|line| {
        let mut words = line.splitn(3, ' ');
        let from: u64 = words.next()?.parse().ok()?;
        let end: u64 = words.next()?.parse().ok()?;
        let path = words.next().unwrap_or_default().trim_end();
        (from..end).contains(&pc).then_some(path)
    });
    match found.map(|path| path.rsplit('/').next().unwrap_or_default()) {
        None => "unknown code".into(),
        Some("") => "the program".into(),
        Some(file) => file.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_counter_belongs_to_an_object() {
        let lines = ReportLines::parse("code=100 200 \ncode=300 400 /lib/libone.so.2\n");
        assert_eq!(holder(150, &lines), "the program");
        assert_eq!(holder(399, &lines), "libone.so.2");
        assert_eq!(holder(400, &lines), "unknown code");
    }
}
