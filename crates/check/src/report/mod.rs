//! What `heapmark check` found: allocators against groups of checks, each check that some do not pass,
//! how each answers wrong programs, and what differs between two results.

mod hardening;
pub mod page;

use crate::definition::Check;
use crate::file::{CheckFile, CheckResult, CheckedAllocator, MisuseCell};
use crate::judge::Changed;
pub use hardening::size;
use heapmark_core::analyse::distinct;
use heapmark_core::report::known_faults::standing;
use heapmark_core::report::machine::machine_name;
use heapmark_core::report::screen::{BOLD, GREEN, RED, Screen, numbers_table};
use heapmark_core::report::text::{count, enclosed, list, plain};
use heapmark_core::store::{CheckVerdict, Standing};

/// All of a result.
pub fn check(file: &CheckFile, checks: &[Check], screen: Screen) -> String {
    let head = format!(
        "heapmark {}: {} of {}, preset {}, on {}{}",
        file.heapmark,
        count(checks.len(), "check"),
        count(file.allocators.len(), "allocator"),
        file.preset,
        machine_name(&file.machine),
        if file.unfinished {
            "; stopped before its end: checks are missing"
        } else {
            ""
        }
    );
    let mut lines = vec![screen.paint(BOLD, &screen.wrap(&head, 2)), String::new()];
    let (wrong, others): (Vec<&Check>, Vec<&Check>) =
        checks.iter().partition(|check| check.is_wrong());
    if !others.is_empty() {
        lines.push(matrix(file));
        let (open, judged): (Vec<&Check>, Vec<&Check>) = others
            .iter()
            .partition(|check| check.standing == Some(Standing::Observe));
        lines.extend(
            judged
                .iter()
                .flat_map(|check| findings(file, check, screen)),
        );
        lines.extend(open.iter().flat_map(|check| {
            let lines = values_of(file, &check.name).into_iter();
            let lines = lines.map(|(value, names)| format!("{names}: {value}"));
            named(check, "left open", lines, None, screen)
        }));
        lines.push(screen.wrap(
            "Numbers: checks that pass, of those that apply; the allocators with the most findings first. Facts about these \
             libraries, each alone, and no score.",
            0,
        ));
    }
    if !wrong.is_empty() {
        if !others.is_empty() {
            lines.push(String::new());
        }
        lines.extend(hardening::hardening(file, &wrong, screen));
    }
    lines.push(screen.wrap(
        "Again: heapmark check -a ALLOCATOR --only CHECK. As a C program that needs no heapmark: heapmark check --program CHECK",
        2,
    ));
    lines.join("\n") + "\n"
}

/// A check with what is said of it; nothing if that is nothing.
fn named(
    check: &Check,
    kind: &str,
    said: impl IntoIterator<Item = String>,
    colour: Option<&str>,
    screen: Screen,
) -> Vec<String> {
    let head = format!("{} ({kind}): {}", check.name, check.about);
    let mut lines = vec![screen.paint(BOLD, &screen.wrap(&head, 2))];
    lines.extend(said.into_iter().map(|line| {
        let line = screen.wrap(&format!("  {line}"), 4);
        match colour {
            Some(colour) => screen.paint(colour, &line),
            None => line,
        }
    }));
    match lines.len() {
        1 => Vec::new(),
        _ => [lines, vec![String::new()]].concat(),
    }
}

/// Each text once, with the names that have it.
fn together(all: &[(String, String)]) -> Vec<(String, String)> {
    let with = |text: &String| {
        let names = all.iter().filter(|(_, it)| it == text);
        let names = list(distinct(names.map(|(name, _)| name)));
        (text.clone(), names)
    };
    distinct(all.iter().map(|(_, text)| text))
        .into_iter()
        .map(with)
        .collect()
}

/// Passed checks of each group, of those that apply.
fn matrix(file: &CheckFile) -> String {
    let groups = groups(file);
    let rows = worst_first(file).into_iter().map(|one| {
        let cells = groups.iter().map(|group| match of_group(one, group) {
            (0, _) => "-".into(),
            (all, failing) => format!("{}/{all}", all - failing.len()),
        });
        [plain(&one.info.name)]
            .into_iter()
            .chain(cells)
            .collect::<Vec<String>>()
    });
    let mut header = vec!["".to_owned()];
    header.extend(groups.iter().map(|group| group.to_string()));
    numbers_table(header, groups.len(), rows)
}

/// How many checks of a group apply to an allocator, and the names of those that it does not pass.
pub fn of_group<'a>(one: &'a CheckedAllocator, group: &str) -> (usize, Vec<&'a str>) {
    let own = |it: &&CheckResult| it.group == group;
    let failing = failing(one).filter(own).map(|it| it.check.as_str());
    (applying(one).filter(own).count(), failing.collect())
}

/// Allocators, those with the most findings first.
pub fn worst_first(file: &CheckFile) -> Vec<&CheckedAllocator> {
    let mut allocators: Vec<&CheckedAllocator> = file.allocators.iter().collect();
    allocators.sort_by_key(|one| std::cmp::Reverse(failing(one).count()));
    allocators
}

/// Those of an allocator that a program cannot rely on.
pub fn failing(one: &CheckedAllocator) -> impl Iterator<Item = &CheckResult> {
    applying(one).filter(|it| it.verdict.is_finding())
}

/// Groups with checks that end in verdicts.
pub fn groups(file: &CheckFile) -> Vec<&str> {
    let results = file.allocators.iter().flat_map(|one| &one.results);
    let judged = results.filter(|it| it.standing != Standing::Observe);
    distinct(judged.map(|it| it.group.as_str()))
}

/// Those that pass, or that a program cannot rely on.
pub fn applying(one: &CheckedAllocator) -> impl Iterator<Item = &CheckResult> + Clone {
    let judged = |it: &&CheckResult| it.standing != Standing::Observe;
    let results = one.results.iter().filter(judged);
    results.filter(|it| it.verdict == CheckVerdict::Pass || it.verdict.is_finding())
}

/// A check that some allocators do not pass, with what each of them did.
fn findings(file: &CheckFile, check: &Check, screen: Screen) -> Vec<String> {
    let found = results(file, &check.name)
        .filter(|(_, it)| it.verdict.is_finding() || it.verdict == CheckVerdict::Error);
    let said = found.map(|(allocator, result)| {
        let mut reasons = result.reasons.iter();
        let why = reasons.next().map_or("no reason was given", String::as_str);
        let more = reasons.next().map_or("", |_| " ...");
        format!("{allocator}: {}: {why}{more}", ended(result))
    });
    let kind = check.standing.map_or("", standing);
    named(check, kind, said, Some(RED), screen)
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

/// What differs between two results.
pub fn check_changes(
    (checks, cells): &(Vec<Changed<CheckResult>>, Vec<Changed<MisuseCell>>),
    screen: Screen,
) -> String {
    let (perhaps, certain): (Vec<_>, Vec<_>) = cells.iter().partition(|cell| cell.by_chance());
    let mut lines = Vec::new();
    if checks.is_empty() && certain.is_empty() {
        lines.push("no check ended otherwise".to_owned());
    }
    for it in checks {
        let (old, new) = (it.old.verdict, it.new.verdict);
        let why = it.new.reasons.first().map_or("", String::as_str);
        let text = format!(
            "{} {}: {old} -> {new}{}",
            it.allocator,
            it.check,
            enclosed(": ", why, "")
        );
        let colour = if new < old { GREEN } else { RED };
        lines.push(screen.paint(colour, &screen.wrap(&text, 2)));
    }
    let cell = |it: &Changed<MisuseCell>| {
        let text = format!(
            "{} {} {} {}: {} -> {}",
            it.allocator,
            it.check,
            size(it.new.size_bytes),
            it.new.form,
            hardening::words(it.old),
            hardening::words(it.new)
        );
        screen.wrap(&text, 2)
    };
    lines.extend(certain.into_iter().map(cell));
    if !perhaps.is_empty() {
        lines.push(screen.wrap(
            "perhaps by chance, since so few processes ended so (--preset full tells):",
            2,
        ));
    }
    lines.extend(perhaps.into_iter().map(cell));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_error_is_said_and_counts_neither_for_nor_against_an_allocator() {
        let result = |check: &str, verdict: &str| {
            json!({"check": check, "group": "sizes", "standing": "std", "verdict": verdict, "times": [1, 1],
                   "reasons": ["lib.so was not loaded"], "again": ""})
        };
        let allocator = |name: &str, results: [serde_json::Value; 2]| {
            json!({"name": name, "family": "", "tier": "", "origin": "", "version": "", "files": [], "sha256": [],
                   "left_to_libc": [], "purge": "none", "purged_as": null, "results": results})
        };
        let file = json!({"schema": 1, "heapmark": "", "started": "", "preset": "quick", "machine": {}, "allocators": [
            allocator("unproven", [result("free-null", "error"), result("too-big", "error")]),
            allocator("wrong", [result("free-null", "pass"), result("too-big", "fail")]),
        ]});
        let file: CheckFile = serde_json::from_value(file).unwrap();
        let mut checks = crate::definition::all().unwrap();
        checks.retain(|check| ["free-null", "too-big"].contains(&check.name.as_str()));
        let screen = Screen {
            width: 100,
            colour: false,
        };
        let text = check(&file, &checks, screen);
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
        assert!(
            text.contains("unproven: error: lib.so was not loaded"),
            "{text}"
        );
    }
}
