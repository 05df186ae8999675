//! What `heapmark check` found: allocators against groups of checks, each check that some
//! allocators do not pass, how each allocator answers wrong programs, and what differs between two
//! results.

mod hardening;
pub mod page;

use crate::definition::Check;
use crate::file::{CheckFile, CheckResult, CheckedAllocator, MisuseCell};
use crate::judge::{Changed, Changes};
pub use hardening::size;
use heapmark_core::analyse::distinct;
use heapmark_core::report::document::{Block, Cell, Mark, Note, Sheet};
use heapmark_core::report::known_faults::standing;
use heapmark_core::report::machine::machine_name;
use heapmark_core::report::sheet::SheetOf;
use heapmark_core::report::text::{count, enclosed, list, together};
use heapmark_core::store::{CheckVerdict, Standing};

/// What readers of a result must know if a signal has ended the checks.
pub const UNFINISHED: &str = "was stopped before its end: checks are missing";

/// The whole report about a result.
pub fn check(file: &CheckFile, checks: &[Check]) -> Vec<Block> {
    let head = format!(
        "heapmark {}: {} of {}, preset {}, on {}{}",
        file.heapmark,
        count(checks.len(), "check"),
        count(file.allocators.len(), "allocator"),
        file.preset,
        machine_name(&file.machine),
        if file.unfinished {
            format!("; it {UNFINISHED}")
        } else {
            String::new()
        }
    );
    let mut blocks = vec![Block::Text(Note::marked(head, Mark::Strong))];
    let (wrong, others): (Vec<&Check>, Vec<&Check>) =
        checks.iter().partition(|check| check.is_wrong());
    if !others.is_empty() {
        blocks.push(Block::Sheet(matrix(file, &worst_first(file))));
        let is_judged = |check: &&&Check| check.standing != Some(Standing::Observe);
        let judged = others.iter().filter(is_judged);
        blocks.extend(judged.map(|check| findings(file, check)));
        blocks.push(Block::Sheet(Sheet {
            heading: LEFT_OPEN.into(),
            ..left_open(file, checks)
        }));
        blocks.push(Block::text(
            "Numbers: checks that pass, of those that apply; the allocators with the most findings first. Facts about these \
             libraries, each alone, and no score.",
        ));
    }
    if !wrong.is_empty() {
        blocks.extend(hardening::hardening(file, &wrong));
    }
    blocks.push(Block::lines("In short", Mark::Strong, sentences(file)));
    blocks.push(Block::text(
        "Again: heapmark check -a ALLOCATOR --only CHECK. As a C program that needs no heapmark: heapmark check --program CHECK",
    ));
    blocks
}

/// The most checks that a sentence about an allocator names.
const MOST_NAMED: usize = 3;

/// A sentence for each allocator that does not pass all checks, or of which some could not be made,
/// and one for all others.
fn sentences(file: &CheckFile) -> Vec<Note> {
    let (passing, others): (Vec<_>, Vec<_>) = worst_first(file)
        .into_iter()
        .partition(|one| failing(one).next().is_none() && missing(one) == 0);
    let of_one = |one: &CheckedAllocator| {
        let name = &one.info.name;
        let (applying, missing) = (applying(one).count(), missing(one));
        let lost = match missing {
            0 => String::new(),
            missing => format!("; {missing} could not be made"),
        };
        let named = |result: &CheckResult| match result.verdict {
            CheckVerdict::Fail => result.check.clone(),
            other => format!("{} ({other})", result.check),
        };
        let all: Vec<String> = failing(one).map(named).collect();
        let more = all.len().saturating_sub(MOST_NAMED);
        let more = (more > 0).then(|| format!("{more} more"));
        let text = match all.len() {
            0 => format!(
                "{name} passes {applying} of {}{lost}.",
                count(applying + missing, "check")
            ),
            failing => format!(
                "{name} does not pass {failing} of {}: {}{lost}.",
                count(applying, "check"),
                list(all.iter().take(MOST_NAMED).cloned().chain(more))
            ),
        };
        Note::marked(text, Mark::Failed)
    };
    let mut notes: Vec<Note> = others.into_iter().map(of_one).collect();
    let passing = passing.iter().filter(|one| applying(one).next().is_some());
    let names: Vec<&String> = passing.map(|one| &one.info.name).collect();
    if !names.is_empty() {
        let verb = if names.len() == 1 { "passes" } else { "pass" };
        let all = match file.unfinished {
            true => "were made",
            false => "apply",
        };
        notes.push(Note::marked(
            format!("{} {verb} all checks that {all}.", list(names)),
            Mark::Same,
        ));
    }
    notes
}

/// A block about a check: its heading, and the lines that are given.
fn named(check: &Check, kind: &str, lines: impl IntoIterator<Item: Into<Note>>) -> Block {
    let heading = format!("{} ({kind}): {}", check.name, check.about);
    Block::lines(heading, Mark::Strong, lines)
}

/// How many checks of each group passed, of those that apply. On a page, a number links to what
/// failed.
pub fn matrix(file: &CheckFile, allocators: &[&CheckedAllocator]) -> Sheet {
    let mut table = SheetOf::new("", allocators.iter().copied());
    table.add("allocator", |one| Cell {
        href: Some(place_of(one, None)),
        ..Cell::from(&one.info.name)
    });
    for group in groups(file) {
        table.add(group, |one| cell(one, group));
    }
    table.sheet.is_matrix = true;
    table.sheet
}

fn cell(one: &CheckedAllocator, group: &str) -> Cell {
    let (all, failed) = of_group(one, group);
    if all == 0 {
        return Cell {
            mark: Mark::Gap,
            words: "nothing that applies here, or nothing that could be checked".into(),
            ..Cell::default()
        };
    }
    let is_bad = !failed.is_empty();
    Cell {
        mark: if is_bad { Mark::Slower } else { Mark::Same },
        heat: (100 * failed.len() / all) as u32,
        href: is_bad.then(|| place_of(one, Some(group))),
        words: match is_bad {
            true => format!("does not pass {}", list(&failed)),
            false => "all pass".into(),
        },
        ..format!("{}/{all}", all - failed.len()).into()
    }
}

/// The anchor of a page's section about an allocator, or of the allocator's findings in a group.
pub fn place_of(one: &CheckedAllocator, group: Option<&str>) -> String {
    let place = format!("under-{}-{}", one.info.name, group.unwrap_or_default());
    place.trim_end_matches('-').replace(' ', "-")
}

/// The heading of [`left_open`].
pub const LEFT_OPEN: &str = "What standards leave open";

/// Each value of a check that judges nothing, with the allocators that have it.
pub fn left_open(file: &CheckFile, checks: &[Check]) -> Sheet {
    let results = file.allocators.iter().flat_map(|one| &one.results);
    let open = results.filter(|result| result.standing == Standing::Observe);
    let open = distinct(open.map(|result| result.check.as_str()));
    let rows = open.into_iter().flat_map(|name| {
        let about = about_of(checks, name);
        let values = values_of(file, name).into_iter();
        values.map(move |(value, names)| vec![name.to_owned(), about.clone(), value, names])
    });
    let columns = ["check", "what is left open", "value", "under"];
    Sheet::of_text("", &columns, rows)
}

/// What a check is about, why it matters and who demands it; empty if the check no longer exists.
pub fn told_of(checks: &[Check], name: &str) -> [String; 3] {
    let known = checks.iter().find(|check| check.name == name);
    known.map_or_else(Default::default, |check| {
        [&check.about, &check.why, &check.source].map(String::clone)
    })
}

/// What a check is about.
pub fn about_of(checks: &[Check], name: &str) -> String {
    let [about, ..] = told_of(checks, name);
    about
}

/// How many checks of a group apply to an allocator, and the names of those that it does not pass.
pub fn of_group<'a>(one: &'a CheckedAllocator, group: &str) -> (usize, Vec<&'a str>) {
    let is_of_group = |result: &&CheckResult| result.group == group;
    let failing = failing(one)
        .filter(is_of_group)
        .map(|result| result.check.as_str());
    (applying(one).filter(is_of_group).count(), failing.collect())
}

/// The allocators, those with the most findings first.
pub fn worst_first(file: &CheckFile) -> Vec<&CheckedAllocator> {
    let mut allocators: Vec<&CheckedAllocator> = file.allocators.iter().collect();
    allocators.sort_by_key(|one| std::cmp::Reverse(failing(one).count()));
    allocators
}

/// The results of an allocator that a program cannot rely on.
pub fn failing(one: &CheckedAllocator) -> impl Iterator<Item = &CheckResult> {
    applying(one).filter(|result| result.verdict.is_finding())
}

/// Groups with checks that end in verdicts.
pub fn groups(file: &CheckFile) -> Vec<&str> {
    let results = file.allocators.iter().flat_map(|one| &one.results);
    let judged = results.filter(|result| result.standing != Standing::Observe);
    distinct(judged.map(|result| result.group.as_str()))
}

/// The results that pass, or that a program cannot rely on.
pub fn applying(one: &CheckedAllocator) -> impl Iterator<Item = &CheckResult> + Clone {
    judged(one).filter(|result| result.verdict == CheckVerdict::Pass || result.verdict.is_finding())
}

/// How many checks ended in an error, which says nothing of the allocator.
fn missing(one: &CheckedAllocator) -> usize {
    let is_error = |result: &&CheckResult| result.verdict == CheckVerdict::Error;
    judged(one).filter(is_error).count()
}

fn judged(one: &CheckedAllocator) -> impl Iterator<Item = &CheckResult> + Clone {
    let results = one.results.iter();
    results.filter(|result| result.standing != Standing::Observe)
}

/// A check that some allocators do not pass, with what each of them did.
fn findings(file: &CheckFile, check: &Check) -> Block {
    let found = results(file, &check.name)
        .filter(|(_, result)| result.verdict.is_finding() || result.verdict == CheckVerdict::Error);
    let lines = found.map(|(allocator, result)| {
        let mut reasons = result.reasons.iter();
        let why = reasons.next().map_or("no reason was given", String::as_str);
        let more = reasons.next().map_or("", |_| " ...");
        let text = format!("{allocator}: {}: {why}{more}", ended(result));
        Note::marked(text, Mark::Failed)
    });
    let kind = check.standing.map_or("", standing);
    named(check, kind, lines)
}

/// How a check ended, and how often.
pub fn ended(result: &CheckResult) -> String {
    match result.times {
        (_, 1) => result.verdict.to_string(),
        (times, of) => format!("{} {times} of {of} times", result.verdict),
    }
}

/// Each value that a check ended in, with the allocators that have it.
pub fn values_of(file: &CheckFile, check: &str) -> Vec<(String, String)> {
    let of = |result: &CheckResult| match result.verdict {
        CheckVerdict::Pass => list(&result.notes),
        other => format!("{other}: {}", list(&result.reasons)),
    };
    let all = results(file, check).map(|(name, result)| (name.to_owned(), of(result)));
    together(&all.collect::<Vec<_>>())
}

fn results<'a>(
    file: &'a CheckFile,
    check: &'a str,
) -> impl Iterator<Item = (&'a str, &'a CheckResult)> {
    let of = move |one: &'a CheckedAllocator| {
        let result = one.results.iter().find(|result| result.check == check);
        Some((one.info.name.as_str(), result?))
    };
    file.allocators.iter().filter_map(of)
}

/// The differences between two results, and what was not compared.
pub fn check_changes(changes: &Changes) -> Vec<Block> {
    let cells = changes.cells.iter();
    let (perhaps, certain): (Vec<_>, Vec<_>) = cells.partition(|cell| cell.by_chance());
    let mut lines = Vec::new();
    if changes.checks.is_empty() && certain.is_empty() {
        lines.push(Note::from("no check ended otherwise".to_owned()));
    }
    for change in &changes.checks {
        let (old, new) = (change.old.verdict, change.new.verdict);
        let why = change.new.reasons.first().map_or("", String::as_str);
        let text = format!(
            "{} {}: {old} -> {new}{}",
            change.allocator,
            change.check,
            enclosed(": ", why, "")
        );
        let mark = if new < old {
            Mark::Faster
        } else {
            Mark::Failed
        };
        lines.push(Note::marked(text, mark));
    }
    let cell = |change: &Changed<MisuseCell>| {
        format!(
            "{} {} {} {}: {} -> {}",
            change.allocator,
            change.check,
            size(change.new.size_bytes),
            change.new.form,
            hardening::words(change.old),
            hardening::words(change.new)
        )
    };
    lines.extend(certain.into_iter().map(|change| cell(change).into()));
    let chance = "perhaps by chance, since so few processes ended so (--preset full tells):";
    vec![
        Block::notes(lines),
        Block::lines(chance, Mark::None, perhaps.into_iter().map(cell)),
        Block::notes(compared(changes).into_iter().map(Note::from)),
    ]
}

/// How much two results have in common, and what only one of them has.
fn compared(changes: &Changes) -> Vec<String> {
    let mut lines = vec![format!(
        "compared: {} of {}",
        count(changes.compared.len(), "check"),
        count(changes.allocators, "allocator")
    )];
    for (alone, name) in changes.alone.iter().zip(["older", "newer"]) {
        if alone.unfinished {
            lines.push(format!("the {name} result {UNFINISHED}"));
        }
        let mut only = alone.allocators.clone();
        let checks = count(alone.checks.len(), "check");
        only.extend((!alone.checks.is_empty()).then_some(checks.as_str()));
        if !only.is_empty() {
            lines.push(format!("only in the {name} result: {}", list(only)));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::changes;
    use heapmark_core::report::Screen;
    use heapmark_core::report::render::terminal;
    use serde_json::json;

    fn result(check: &str, verdict: &str) -> serde_json::Value {
        json!({"check": check, "group": "sizes", "standing": "std", "verdict": verdict, "times": [1, 1],
               "reasons": ["lib.so was not loaded"], "again": ""})
    }

    fn allocator(name: &str, results: &[serde_json::Value]) -> serde_json::Value {
        json!({"name": name, "family": "", "tier": "", "origin": "", "version": "", "files": [], "sha256": [],
               "left_to_libc": [], "purge": "none", "purged_as": null, "results": results})
    }

    fn file(unfinished: bool, allocators: &[serde_json::Value]) -> CheckFile {
        let file = json!({"schema": 1, "heapmark": "", "started": "", "preset": "quick", "machine": {},
                          "unfinished": unfinished, "allocators": allocators});
        serde_json::from_value(file).unwrap()
    }

    const SCREEN: Screen = Screen {
        width: 100,
        colour: false,
    };

    #[test]
    fn what_only_one_of_two_results_has_is_said() {
        let pass = |check: &str| result(check, "pass");
        let both = [pass("free-null"), pass("too-big")];
        let old = file(false, &[allocator("a", &both), allocator("gone", &both)]);
        let new = file(true, &[allocator("a", &both[..1]), allocator("new", &[])]);
        let expected = "no check ended otherwise\n\n\
                        compared: 1 check of 1 allocator\n\
                        only in the older result: gone and 1 check\n\
                        the newer result was stopped before its end: checks are missing\n\
                        only in the newer result: new\n";
        let text = terminal(&check_changes(&changes(&old, &new)), SCREEN);
        assert_eq!(text, expected);
    }

    #[test]
    fn an_error_is_said_and_counts_neither_for_nor_against_an_allocator() {
        let of = |name: &str, verdicts: [&str; 2]| {
            let [first, second] = verdicts;
            allocator(
                name,
                &[result("free-null", first), result("too-big", second)],
            )
        };
        let allocators = [
            of("unproven", ["error", "error"]),
            of("partly", ["pass", "error"]),
            of("both", ["fail", "error"]),
            of("wrong", ["pass", "fail"]),
            of("right", ["pass", "unsupported"]),
        ];
        let unfinished = file(true, &allocators);
        let file = file(false, &allocators);
        let mut checks = crate::definition::all().unwrap();
        checks.retain(|check| ["free-null", "too-big"].contains(&check.name.as_str()));
        let text = terminal(&check(&file, &checks), SCREEN);
        let line = |name: &str| {
            let mut lines = text.lines().map(str::trim);
            lines
                .find(|line| line.starts_with(name))
                .unwrap()
                .to_owned()
        };
        assert!(line("wrong").ends_with("1/2"), "{text}");
        assert!(line("unproven").ends_with(" -"), "{text}");
        assert!(text.find("wrong") < text.find("unproven"), "{text}");
        for sentence in [
            "wrong does not pass 1 of 2 checks: too-big.",
            "both does not pass 1 of 1 check: free-null; 1 could not be made.",
            "partly passes 1 of 2 checks; 1 could not be made.",
            "unproven passes 0 of 2 checks; 2 could not be made.",
            "right passes all checks that apply.",
        ] {
            assert!(text.contains(sentence), "{sentence}: {text}");
        }
        let text = terminal(&check(&unfinished, &checks), SCREEN);
        assert!(
            text.contains("right passes all checks that were made."),
            "{text}"
        );
        assert!(
            text.contains("unproven: error: lib.so was not loaded"),
            "{text}"
        );
    }
}
