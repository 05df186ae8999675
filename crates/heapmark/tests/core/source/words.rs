//! Plain English in sources and documents: words for people do not stand for threads, libraries and programs.

use crate::support::repository;
use std::fs;
use std::path::{Path, PathBuf};

/// Words that name no thing. The Unix user of the first one's name is written in quotes.
const WORDS: [&str; 4] = ["nobody", "somebody", "whoever", "everybody"];
/// So many of them are left in all: a text may speak of people.
const MOST: usize = 20;

/// What people read, below the repository's root.
const PLACES: [&str; 15] = [
    ".ci",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "Makefile",
    "README.md",
    "allocators",
    "claims",
    "crates",
    "docs",
    "programs",
    "real-programs",
    "scripts",
    "suites",
    "workloads",
];

/// The words of a text, with their line numbers.
fn found(text: &str) -> Vec<(usize, &str)> {
    let quoted =
        |word: &str| word.starts_with(['`', '"', '\'']) && word.ends_with(['`', '"', '\'']);
    let mut all = Vec::new();
    for (place, line) in text.lines().enumerate() {
        for word in line.split(|c: char| !c.is_alphanumeric() && !"`\"'".contains(c)) {
            let bare = word.trim_matches(['`', '"', '\'']).trim_end_matches("'s");
            if WORDS.iter().any(|one| one.eq_ignore_ascii_case(bare)) && !quoted(word) {
                all.push((place + 1, bare));
            }
        }
    }
    all
}

/// Every file below a place, without what tools put there.
fn files(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_path_buf()];
    }
    let entries = fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let own = |path: &PathBuf| {
        !["node_modules", "target", "outputs"]
            .iter()
            .any(|name| path.ends_with(name))
    };
    entries.filter(own).flat_map(|path| files(&path)).collect()
}

#[test]
fn words_for_people_do_not_stand_for_things() {
    let root = repository();
    let here = Path::new("tests/core/source/words.rs");
    let mut all = Vec::new();
    for file in PLACES
        .iter()
        .flat_map(|place| files(&root.join(place)))
        .filter(|file| !file.ends_with(here))
    {
        // What is no text has no words.
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        all.extend(
            found(&text)
                .iter()
                .map(|(line, word)| format!("{}:{line}: {word}", file.display())),
        );
    }
    assert!(
        all.len() <= MOST,
        "{} of these words, at most {MOST}:\n{}",
        all.len(),
        all.join("\n")
    );
}

#[test]
fn a_word_is_found_and_the_unix_user_is_not() {
    assert_eq!(
        found("a\nWhoever asks, nobody's answer"),
        [(2, "Whoever"), (2, "nobody")]
    );
    assert!(found("the user `nobody`, \"nobody\"").is_empty());
}

/// README is for the first minutes; what needs more words has its own document.
const MOST_README_WORDS: usize = 900;

#[test]
fn readme_can_be_read_in_a_few_minutes() {
    let readme = repository().join("README.md");
    let words = fs::read_to_string(readme)
        .unwrap()
        .split_whitespace()
        .count();
    assert!(words <= MOST_README_WORDS, "{words} words");
}
