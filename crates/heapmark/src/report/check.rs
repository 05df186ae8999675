//! What `heapmark check` found: allocators against groups of checks, then each check that some do
//! not pass, and what differs between two results.

use super::machine::machine_name;
use super::misuse::{hardening, size, words};
use super::screen::{BOLD, GREEN, RED, Screen, numbers_table};
use super::text::{count, enclosed, list, plain, short};
use crate::analyse::check::{Changed, ChangedCell};
use crate::analyse::distinct;
use crate::catalog::check::{Check, Standing};
use crate::catalog::misuse::Misuse;
use crate::store::Finding;
use crate::store::check::{CheckFile, CheckResult, CheckVerdict, CheckedAllocator};

/// All of a result.
pub fn check(file: &CheckFile, checks: &[Check], misuses: &[Misuse], screen: Screen) -> String {
    let head = format!(
        "heapmark {}: {} of {}, preset {}, on {}{}",
        file.heapmark,
        count(checks.len() + misuses.len(), "check"),
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
    if !checks.is_empty() {
        lines.push(matrix(file));
    }
    let (noted, judged): (Vec<&Check>, Vec<&Check>) = checks
        .iter()
        .partition(|check| check.standing == Standing::Observe);
    for check in judged {
        lines.extend(findings(file, check, screen));
    }
    for check in noted {
        lines.extend(values(file, check, screen));
    }
    if !checks.is_empty() {
        lines.push(screen.wrap(
            "Numbers: checks that pass, of those that apply; the allocators with the most findings first. Facts about these \
             libraries, each alone, and no score.",
            0,
        ));
    }
    let hardening = hardening(file, misuses, screen);
    if !checks.is_empty() && !hardening.is_empty() {
        lines.push(String::new());
    }
    lines.extend(hardening);
    lines.push(screen.wrap(
        "Again: heapmark check -a ALLOCATOR --only CHECK. As a C program that needs no heapmark: heapmark check --program CHECK",
        2,
    ));
    lines.join("\n") + "\n"
}

/// Passed checks of each group, of those that apply.
fn matrix(file: &CheckFile) -> String {
    let groups = groups(file);
    let rows = worst_first(file).into_iter().map(|one| {
        let cells = groups.iter().map(|group| {
            let own = one.results.iter().filter(|it| it.group == **group);
            let all: Vec<&CheckResult> = applying(own).collect();
            let passed = all.iter().filter(|it| !it.verdict.is_finding());
            match all.len() {
                0 => "-".into(),
                all => format!("{}/{all}", passed.count()),
            }
        });
        let mut row = vec![plain(&one.info.name)];
        row.extend(cells);
        row
    });
    let mut header = vec!["".to_owned()];
    header.extend(groups.iter().map(|group| group.to_string()));
    numbers_table(header, groups.len(), rows)
}

/// Allocators, those with the most findings first.
pub(super) fn worst_first(file: &CheckFile) -> Vec<&CheckedAllocator> {
    let mut allocators: Vec<&CheckedAllocator> = file.allocators.iter().collect();
    allocators.sort_by_key(|one| std::cmp::Reverse(failing(one).count()));
    allocators
}

/// Those of an allocator that a program cannot rely on.
pub(super) fn failing(one: &CheckedAllocator) -> impl Iterator<Item = &CheckResult> {
    applying(&one.results).filter(|it| it.verdict.is_finding())
}

/// Groups with checks that end in verdicts.
pub(super) fn groups(file: &CheckFile) -> Vec<&str> {
    let results = file.allocators.iter().flat_map(|one| &one.results);
    let judged = results.filter(|it| it.standing != Standing::Observe);
    distinct(judged.map(|it| it.group.as_str()))
}

/// Those that pass, or that a program cannot rely on.
pub(super) fn applying<'a>(
    results: impl IntoIterator<Item = &'a CheckResult>,
) -> impl Iterator<Item = &'a CheckResult> {
    let judged = results
        .into_iter()
        .filter(|it| it.standing != Standing::Observe);
    judged.filter(|it| it.verdict == CheckVerdict::Pass || it.verdict.is_finding())
}

/// A check that some allocators do not pass, with what each of them did.
fn findings(file: &CheckFile, check: &Check, screen: Screen) -> Vec<String> {
    let found: Vec<(&str, &CheckResult)> = results(file, &check.name)
        .filter(|(_, it)| it.verdict.is_finding() || it.verdict == CheckVerdict::Error)
        .collect();
    if found.is_empty() {
        return Vec::new();
    }
    let head = format!(
        "{} ({}): {}",
        check.name,
        standing(check.standing),
        check.about
    );
    let mut lines = vec![screen.paint(BOLD, &screen.wrap(&head, 2))];
    for (allocator, result) in found {
        let times = match result.times {
            (_, 1) => String::new(),
            (times, of) => format!(" {times} of {of} times"),
        };
        let why = result
            .reasons
            .first()
            .map(String::as_str)
            .unwrap_or("no reason was given");
        let more = match result.reasons.len() {
            0 | 1 => "",
            _ => " ...",
        };
        let text = format!(
            "  {allocator}: {}{times}: {why}{more}",
            result.verdict.word()
        );
        lines.push(screen.paint(RED, &screen.wrap(&text, 4)));
    }
    lines.push(String::new());
    lines
}

/// The values of a check that standards leave open, allocators with the same values together.
fn values(file: &CheckFile, check: &Check, screen: Screen) -> Vec<String> {
    let all = values_of(file, &check.name);
    if all.is_empty() {
        return Vec::new();
    }
    let head = format!("{} (left open): {}", check.name, check.about);
    let mut lines = vec![screen.paint(BOLD, &screen.wrap(&head, 2))];
    for (value, names) in all {
        lines.push(screen.wrap(&format!("  {}: {value}", list(names)), 4));
    }
    lines.push(String::new());
    lines
}

/// Each value that a check ended in, with the allocators that have it.
pub(super) fn values_of<'a>(file: &'a CheckFile, check: &'a str) -> Vec<(String, Vec<&'a str>)> {
    let of = |result: &CheckResult| match result.verdict {
        CheckVerdict::Pass => list(result.notes.iter()),
        other => format!("{}: {}", other.word(), list(result.reasons.iter())),
    };
    let mut all: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, result) in results(file, check) {
        let value = of(result);
        match all.iter_mut().find(|(known, _)| *known == value) {
            Some((_, names)) => names.push(name),
            None => all.push((value, vec![name])),
        }
    }
    all
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

pub(super) fn standing(standing: Standing) -> &'static str {
    match standing {
        Standing::Std => "ISO C or POSIX",
        Standing::Gnu => "programs for Linux rely on it",
        Standing::Robust => "quality",
        Standing::Observe => "left open",
    }
}

/// Checks that a sentence about an allocator names.
const MOST_NAMED: usize = 2;

/// What a reader of its numbers must know of an allocator, from earlier checks that it did not pass,
/// the worst first: `x fails 3 checks: free-errno (free of 1 bytes set errno to 22), fork-signal (hang)
/// and 1 more; heapmark check -a x (2026-01-01).`
pub fn failed(allocator: &str, findings: &[Finding]) -> Option<String> {
    let newest = findings.iter().map(|it| it.at.as_str()).max()?;
    let named = findings.iter().take(MOST_NAMED).map(|it| {
        let found = match it.verdict {
            CheckVerdict::Fail => short(&it.found),
            other => other.word().into(),
        };
        format!("{}{}", it.check, enclosed(" (", &found, ")"))
    });
    let more = findings.len().saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("{more} more"));
    Some(format!(
        "{allocator} {}: {}; heapmark check -a {allocator} ({}).",
        fails(findings),
        list(named.chain(more)),
        day(newest)
    ))
}

/// `fails 3 checks`.
pub fn fails(findings: &[Finding]) -> String {
    format!("fails {}", count(findings.len(), "check"))
}

/// Of a moment.
pub fn day(moment: &str) -> &str {
    moment.split('T').next().unwrap_or_default()
}

/// What differs between two results.
pub fn check_changes(changes: &[Changed], cells: &[ChangedCell], screen: Screen) -> String {
    let (perhaps, cells): (Vec<_>, Vec<_>) = cells.iter().partition(|cell| cell.by_chance);
    let none = match changes.is_empty() && cells.is_empty() {
        true => "no check ended otherwise\n".to_owned(),
        false => String::new(),
    };
    let line = |one: &Changed| {
        let (old, new) = (one.old, one.new);
        let why = match new.reasons.first() {
            Some(why) => format!(": {why}"),
            None => String::new(),
        };
        let colour = if new.verdict < old.verdict {
            GREEN
        } else {
            RED
        };
        let text = format!(
            "{} {}: {} -> {}{why}",
            one.allocator,
            new.check,
            old.verdict.word(),
            new.verdict.word()
        );
        screen.paint(colour, &screen.wrap(&text, 2)) + "\n"
    };
    let cell = |one: &&ChangedCell| {
        let text = format!(
            "{} {} {} {}: {} -> {}",
            one.allocator,
            one.check,
            size(one.new.size_bytes),
            one.new.form.word(),
            words(one.old),
            words(one.new)
        );
        screen.wrap(&text, 2) + "\n"
    };
    let by_chance = match perhaps.as_slice() {
        [] => String::new(),
        _ => {
            screen.wrap(
                "perhaps by chance, since so few processes ended so (--preset full tells):",
                2,
            ) + "\n"
        }
    };
    let changes = changes.iter().map(line);
    let cells = cells.iter().map(cell);
    let perhaps = perhaps.iter().map(cell);
    let all = [none].into_iter().chain(changes).chain(cells);
    all.chain([by_chance]).chain(perhaps).collect()
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
        let mut checks = crate::catalog::check::all().unwrap();
        checks.retain(|check| ["free-null", "too-big"].contains(&check.name.as_str()));
        let screen = Screen {
            width: 100,
            colour: false,
        };
        let text = check(&file, &checks, &[], screen);
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
