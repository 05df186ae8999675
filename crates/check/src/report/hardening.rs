//! What `heapmark check` found about hardening: how each allocator answers wrong programs, and what
//! such programs can see.

use super::named;
use crate::definition::{Check, Ends, Form, MisuseOutcome};
use crate::file::{CheckFile, CheckedAllocator, Impact, MisuseCell};
use heapmark_core::analyse::distinct;
use heapmark_core::report::document::{Block, Mark, Note, Sheet};
use heapmark_core::report::text::{join, list, together};
use heapmark_core::report::units;

/// The table of hardening, with its notes.
pub fn hardening(file: &CheckFile, checks: &[&Check]) -> Vec<Block> {
    let (shown, judged): (Vec<&Check>, Vec<&Check>) =
        checks.iter().partition(|check| check.ends == Ends::Values);
    let mut blocks = vec![
        Block::Sheet(table(file, &judged)),
        Block::notes(errors(file)),
    ];
    blocks.extend(shown.iter().map(|check| values(file, check)));
    blocks
}

/// The meaning of the words of the table.
const WORDS: &str = "Words: what the allocator made of the program (docs/CHECK.md); naive / informed: the attacker made bytes up, or copied \
     them from genuine blocks. 7/8: of so many processes; +overlap, +block, +write: two live blocks overlap, a block lies at \
     an address that the attacker chose, memory that the attacker chose was written. Facts about these programs, never a score.";

/// A requested size, in bytes unless it is a multiple of 1 KiB.
pub fn size(bytes: u64) -> String {
    match bytes % 1024 {
        0 => units::bytes(bytes as f64),
        _ => format!("{bytes} B"),
    }
}

/// The table of checks and allocators.
fn table(file: &CheckFile, checks: &[&Check]) -> Sheet {
    let names = file.allocators.iter().map(|one| one.info.name.as_str());
    let columns: Vec<&str> = ["misuse"].into_iter().chain(names).collect();
    let rows = checks.iter().flat_map(|check| rows(file, check));
    let heading = "Hardening: what becomes of wrong programs";
    let mut sheet = Sheet::new(heading, &columns, rows);
    sheet.remark([WORDS.to_owned()]);
    sheet
}

/// The rows of a check: sizes at which all allocators do the same share a row.
fn rows(file: &CheckFile, check: &Check) -> Vec<Vec<String>> {
    let of = |one: &CheckedAllocator, bytes: u64| {
        let words = check.forms.iter().map(|form| {
            let cell = cell(one, check, bytes, *form);
            cell.map_or("-".into(), words)
        });
        distinct(words).join(" / ")
    };
    let mut rows: Vec<(Vec<String>, Vec<String>)> = Vec::new();
    for bytes in &check.sizes {
        let words: Vec<String> = file.allocators.iter().map(|one| of(one, *bytes)).collect();
        if words.iter().all(|words| words == "-") {
            continue;
        }
        match rows.iter_mut().find(|(_, known)| *known == words) {
            Some((sizes, _)) => sizes.push(size(*bytes)),
            None => rows.push((vec![size(*bytes)], words)),
        }
    }
    let is_one = check.sizes.len() == 1 || rows.len() == 1;
    let row = |(sizes, words): (Vec<String>, Vec<String>)| {
        let label = match is_one {
            true => check.name.clone(),
            false => format!("{} {}", check.name, sizes.join(", ")),
        };
        [vec![label], words].concat()
    };
    rows.into_iter().map(row).collect()
}

fn cell<'a>(
    one: &'a CheckedAllocator,
    check: &Check,
    bytes: u64,
    form: Form,
) -> Option<&'a MisuseCell> {
    let result = one
        .hardening
        .iter()
        .find(|result| result.check == check.name)?;
    let mut cells = result.cells.iter();
    cells.find(|cell| cell.size_bytes == bytes && cell.form == form)
}

/// A cell's outcome, with its rate and its impact.
pub fn words(cell: &MisuseCell) -> String {
    let mut words = cell.outcome.to_string();
    let times = cell.tally.get(&cell.outcome).copied().unwrap_or(0);
    let all = match cell.outcome.is_answer() {
        true => cell.answers(),
        false => cell.tally.values().sum(),
    };
    if times < all && cell.outcome != MisuseOutcome::Error {
        words += &format!(" {times}/{all}");
    }
    words
        + match cell.impact {
            Impact::None => "",
            Impact::Overlap if cell.outcome == MisuseOutcome::Corrupted => "",
            Impact::Overlap => " +overlap",
            Impact::ChosenBlock => " +block",
            Impact::ChosenWrite => " +write",
        }
}

/// What could not be checked, a line for each check of an allocator.
fn errors(file: &CheckFile) -> Vec<Note> {
    let mut lines = Vec::new();
    for one in &file.allocators {
        for result in &one.hardening {
            let mut cells = result.cells.iter();
            if let Some(cell) = cells.find(|cell| cell.has_error()) {
                let text = format!(
                    "{} {}, {}: {}",
                    one.info.name,
                    result.check,
                    size(cell.size_bytes),
                    error(cell)
                );
                lines.push(Note::marked(text, Mark::Failed));
            }
        }
    }
    lines
}

/// What went wrong in a cell: in all of its processes, or in some.
fn error(cell: &MisuseCell) -> String {
    if cell.outcome == MisuseOutcome::Error {
        return format!("error: {}", list(&cell.reasons));
    }
    let times = cell.tally.get(&MisuseOutcome::Error).unwrap_or(&0);
    let all: u32 = cell.tally.values().sum();
    let mut reasons = cell.reasons.iter();
    let why = reasons.find_map(|reason| reason.strip_prefix("error: "));
    let why = why.map_or(String::new(), |why| format!(": {why}"));
    format!("error in {times} of {all} processes{why}")
}

/// The values of a check; allocators with the same values share a line.
fn values(file: &CheckFile, check: &Check) -> Block {
    let text_of = |cell: &MisuseCell| {
        let mut notes = cell.notes.clone();
        if cell.outcome != MisuseOutcome::Observed {
            notes.insert(0, words(cell));
            notes.extend(cell.reasons.clone());
        }
        join(notes, ", ")
    };
    let of = |one: &CheckedAllocator| {
        let result = one
            .hardening
            .iter()
            .find(|result| result.check == check.name)?;
        let cells = result.cells.iter();
        let all: Vec<(String, String)> = cells
            .map(|cell| (size(cell.size_bytes), text_of(cell)))
            .collect();
        let texts = together(&all)
            .into_iter()
            .map(|(text, sizes)| match all.len() {
                1 => text,
                _ => format!("{sizes}: {text}"),
            });
        Some((one.info.name.clone(), join(texts, "; ")))
    };
    let all: Vec<(String, String)> = file.allocators.iter().filter_map(of).collect();
    let lines = together(&all).into_iter();
    let lines = lines.map(|(text, names)| format!("{names}: {text}"));
    named(check, "values", lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heapmark_core::report::Screen;
    use heapmark_core::report::render::terminal;
    use serde_json::json;

    fn file(names: [&str; 2]) -> CheckFile {
        let cell = |form: &str, outcome: &str, impact: &str| {
            json!({"size_bytes": 24, "form": form, "outcome": outcome, "tally": {outcome: 7, "crashed": 1}, "impact": impact,
                   "reasons": [], "again": ""})
        };
        let allocator = |name: &str, cells: serde_json::Value| {
            let result = json!({"check": "uaf-write", "group": "use after free", "ends": "outcome", "cells": cells});
            json!({"name": name, "family": "", "tier": "", "origin": "", "version": "", "files": [], "sha256": [],
                   "left_to_libc": [], "purge": "none", "purged_as": null, "results": [], "hardening": [result]})
        };
        let all = [
            allocator(
                names[0],
                json!([
                    cell("naive", "stopped", "none"),
                    cell("informed", "corrupted", "chosen-block")
                ]),
            ),
            allocator(
                names[1],
                json!([
                    cell("naive", "stopped", "none"),
                    cell("informed", "stopped", "none")
                ]),
            ),
        ];
        let file = json!({"schema": 1, "heapmark": "", "started": "", "preset": "full", "machine": {}, "allocators": all});
        serde_json::from_value(file).unwrap()
    }

    fn text(width: usize) -> String {
        let mut checks = crate::definition::all().unwrap();
        checks.retain(|check| check.name == "uaf-write");
        let screen = Screen {
            width,
            colour: false,
        };
        let checks: Vec<&Check> = checks.iter().collect();
        terminal(&hardening(&file(["one", "two"]), &checks), screen)
    }

    #[test]
    fn forms_shares_and_impacts_stand_in_one_cell() {
        let line = "uaf-write  stopped 7/8 / corrupted 7/8 +block  stopped 7/8";
        assert!(text(100).contains(line), "{}", text(100));
    }

    #[test]
    fn errors_of_some_processes_are_said_and_not_counted() {
        let cell = json!({"size_bytes": 24, "form": "naive", "outcome": "stopped", "tally": {"stopped": 5, "error": 3},
                          "impact": "none", "reasons": ["in the misuse SIGABRT", "error: killed"], "again": ""});
        let mut file = file(["one", "two"]);
        file.allocators[1].hardening[0].cells = vec![serde_json::from_value(cell).unwrap()];
        assert_eq!(
            errors(&file)[0].text,
            "two uaf-write, 24 B: error in 3 of 8 processes: killed"
        );
        let cell = &file.allocators[1].hardening[0].cells[0];
        assert_eq!(words(cell), "stopped");
    }

    #[test]
    fn a_table_that_does_not_fit_loses_nothing() {
        let text = text(40);
        for part in [
            "one  stopped 7/8",
            "corrupted 7/8",
            "+block",
            "two  stopped 7/8",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
