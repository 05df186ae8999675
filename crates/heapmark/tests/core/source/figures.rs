//! What documents say of an allocator in figures is of a release: each allocator changes.

use crate::support::{CATALOG, repository};
use std::collections::BTreeSet;
use std::fs;

/// A document without its code.
fn without_code(page: &str) -> String {
    let blocks = page.split("```").step_by(2).collect::<String>();
    blocks
        .split('`')
        .step_by(2)
        .collect::<Vec<_>>()
        .join("CODE")
}

/// The sentences of a text, and the rows of its tables.
fn sentences(text: &str) -> Vec<String> {
    let mut all = Vec::new();
    for part in text.split("\n\n").flat_map(|part| part.split("\n- ")) {
        if part.trim_start().starts_with('|') {
            all.extend(part.lines().map(str::to_owned));
            continue;
        }
        let line = part.split_whitespace().collect::<Vec<_>>().join(" ");
        all.extend(line.split_inclusive(". ").map(str::to_owned));
    }
    all
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_sign = |sign: char| !(sign.is_alphanumeric() || "_-@/.".contains(sign));
    text.split(is_sign)
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty())
}

fn is_number(word: &str) -> bool {
    word.trim_start_matches(['+', '-']).parse::<f64>().is_ok()
}

/// Whether it has a share, a multiple, or a ratio with its interval. 95 % is the usual confidence.
fn has_figure(sentence: &str) -> bool {
    let before = |mark: &str| {
        let parts: Vec<&str> = sentence.split(mark).collect();
        let all = parts.iter().take(parts.len() - 1);
        all.filter_map(|part| part.split([' ', '[', '(']).next_back())
            .any(|word| is_number(word) && word != "95")
    };
    before(" %") || before(" times") || (before(" [") && sentence.contains(", "))
}

/// The allocators that are named in sentences with figures, and of which the text, or the document's head, tells no
/// release: neither a version behind the name nor a year.
fn undated(head: &str, section: &str) -> Vec<String> {
    let names: BTreeSet<&str> = CATALOG
        .allocators
        .iter()
        .flat_map(|one| [one.name.as_str(), one.family.as_str()])
        .filter(|name| !["null", "libc"].contains(name))
        .collect();
    let has_year = |text: &str| {
        words(text).any(|word| {
            let year = word.split('-').next().unwrap_or_default();
            year.len() == 4 && year.starts_with("20") && year.parse::<u32>().is_ok()
        })
    };
    if has_year(head) || has_year(section) {
        return Vec::new();
    }
    let lower = section.to_lowercase();
    let is_dated = |name: &str| {
        let behind = lower.split(name).skip(1);
        let versions = behind.filter_map(|rest| rest.strip_prefix(" (").or(rest.strip_prefix(' ')));
        versions
            .filter_map(|rest| words(rest).next().filter(|word| rest.starts_with(*word)))
            .any(|word| word.contains('.') && is_number(word.split('.').next().unwrap_or_default()))
    };
    let mut found = Vec::new();
    for sentence in sentences(section) {
        // What a copy of an allocator takes is noise, whatever the allocator.
        if !has_figure(&sentence) || sentence.contains("copy") {
            continue;
        }
        let named = words(&sentence).map(str::to_lowercase);
        let mut named: Vec<String> = named.filter(|word| names.contains(word.as_str())).collect();
        named.dedup();
        named.retain(|name| !is_dated(name));
        if !named.is_empty() {
            found.push(format!("{}: {}", named.join(", "), sentence.trim()));
        }
    }
    found
}

/// Of a whole document.
fn undated_in(page: &str) -> Vec<String> {
    let text = without_code(page);
    let sections: Vec<&str> = text.split("\n## ").collect();
    let of = |section: &&str| undated(sections[0], section);
    sections.iter().flat_map(of).collect()
}

#[test]
fn no_figure_of_an_allocator_stands_without_its_release() {
    let root = repository();
    let mut pages: Vec<_> = fs::read_dir(root.join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "md"))
        .collect();
    let others = [
        "README.md",
        "releases/README.md",
        "claims/README.md",
        "programs/README.md",
        "traces/README.md",
    ];
    pages.extend(others.map(|file| root.join(file)));
    let mut found = Vec::new();
    for path in &pages {
        let page = fs::read_to_string(path).unwrap();
        let name = path.strip_prefix(&root).unwrap_or(path).display();
        found.extend(undated_in(&page).iter().map(|it| format!("{name}: {it}")));
    }
    assert!(pages.len() > 20 && found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn a_figure_without_a_release_is_noticed() {
    let head = "# Title\n\n## One\n\nText.\n\n## Two\n\n";
    let flagged = |text: &str| undated_in(&format!("{head}{text}")).len();
    for bad in [
        "jemalloc takes 0.85 [0.80, 0.90] of the time.",
        "It is fast. mimalloc3 takes 12 % less.",
        "| a | b |\n|--|--|\n| rpmalloc | 1.5 times |",
        "Of glibc's time it takes 3 times.",
    ] {
        assert_eq!(flagged(bad), 1, "{bad}");
        assert_eq!(flagged(&format!("{bad} Measured in 2026.")), 0, "{bad}");
    }
    for good in [
        "jemalloc 5.3.1 takes 0.85 [0.80, 0.90] of the time.",
        "A copy of glibc took 2 % more.",
        "With 95 % confidence glibc is faster.",
        "`jemalloc takes 3 times` as long.",
        "jemalloc has 13 files.",
    ] {
        assert_eq!(flagged(good), 0, "{good}");
    }
}
