//! Holds what differs between modes in one file: others ask a mode, and few name one.

use super::ladder::{crates, host_files};
use std::fs;
use std::path::Path;

/// The variants of `enum Mode`.
fn modes(text: &str) -> Vec<&str> {
    let (_, after) = text.split_once("pub enum Mode {\n").unwrap();
    let (body, _) = after.split_once("\n}").unwrap();
    let names = body.lines().filter_map(|line| line.strip_prefix("    "));
    names
        .filter(|line| line.starts_with(char::is_uppercase))
        .map(|line| line.trim_end_matches(|c: char| !c.is_alphanumeric()))
        .map(|line| line.split(['(', ' ']).next().unwrap())
        .collect()
}

/// Whether code names one of these modes.
fn names_one(code: &str, modes: &[&str]) -> bool {
    code.match_indices("Mode::").any(|(place, word)| {
        let is_whole = !code[..place].ends_with(char::is_alphanumeric);
        let rest = &code[place + word.len()..];
        let name = rest.split(|c: char| !c.is_alphanumeric()).next();
        is_whole && modes.contains(&name.unwrap())
    })
}

/// Whether code looks for some modes and forgets the others.
fn overlooks_others(code: &str, modes: &[&str]) -> bool {
    let mut looks = code.split("matches!(").skip(1);
    looks.any(|rest| names_one(rest.split(';').next().unwrap(), modes))
}

#[test]
fn what_differs_between_modes_is_in_one_file() {
    let text = fs::read_to_string(crates().join("plan/src/mode.rs")).unwrap();
    let modes = modes(&text);
    let is_test = |file: &Path| {
        let mut parts = file.iter();
        parts.any(|part| {
            ["tests", "tests.rs", "fake_run.rs"]
                .iter()
                .any(|it| part == *it)
        })
    };
    let mut naming = Vec::new();
    for (place, file) in host_files() {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
        if !is_test(&place) && names_one(code, &modes) {
            assert!(!overlooks_others(code, &modes), "{}", place.display());
            naming.push(place.display().to_string());
        }
    }
    naming.sort();
    // Each of the others makes one from flags or for memory beside times, or lists what it has of each.
    assert_eq!(
        naming,
        [
            "core/analyse/analysis.rs",
            "core/analyse/tables.rs",
            "core/cmd/run/mod.rs",
            "core/cmd/run/select.rs",
            "core/cmd/run/traces.rs",
            "core/cmd/try_command.rs",
            "core/metric/lists.rs",
            "plan/mode.rs",
            "plan/plan.rs",
        ]
    );
}

#[test]
fn the_checker_sees_planted_modes() {
    let text = "pub enum Mode {\n    /// One.\n    Time,\n    Every {\n        /// One of.\n        of: u32,\n    },\n    Count(Counter),\n}\n";
    let modes = modes(text);
    assert_eq!(modes, ["Time", "Every", "Count"]);
    assert!(names_one("if mode == Mode::Time {}", &modes));
    assert!(!names_one("if mode == FigureMode::Time {}", &modes));
    assert!(!names_one(
        "RangeMode::ToZero, Mode::Lines, Mode::Times",
        &modes
    ));
    assert!(overlooks_others(
        "matches!(mode, Mode::Time | Mode::Every { .. })",
        &modes
    ));
    assert!(!overlooks_others("matches!(a, 1); Mode::Time", &modes));
}
