//! The documents: each relative link leads to a file that is there, and to a heading that it has; they stay few and short.

use crate::support::{Place, repository};
use std::fs;
use std::path::{Path, PathBuf};

/// The relative links of a page, `FILE#HEADING` or either part.
fn links(page: &str) -> Vec<&str> {
    let targets = page
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let sources = ["src=\"", "srcset=\""]
        .into_iter()
        .flat_map(|attribute| page.split(attribute).skip(1))
        .filter_map(|rest| rest.split('"').next());
    targets
        .chain(sources)
        .filter(|link| !link.contains("://") && !link.contains(char::is_whitespace))
        .collect()
}

/// The anchors of a page's headings: lower case, words joined by `-`, other signs left out.
fn anchors(page: &str) -> Vec<String> {
    let headings = page.lines().filter_map(|line| line.strip_prefix('#'));
    let anchor = |heading: &str| {
        let text = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = |sign: &char| sign.is_alphanumeric() || "-_ ".contains(*sign);
        text.chars()
            .filter(kept)
            .collect::<String>()
            .replace(' ', "-")
    };
    headings.map(anchor).collect()
}

/// The links of a page at this path that lead nowhere.
fn dead(path: &Path, page: &str) -> Vec<String> {
    let leads_somewhere = |link: &&str| {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let target = match file {
            "" => path.to_path_buf(),
            file => path.parent().unwrap().join(file),
        };
        let has_anchor = || {
            let text = fs::read_to_string(&target).unwrap_or_default();
            anchors(&text).iter().any(|one| one == anchor)
        };
        target.exists() && (anchor.is_empty() || has_anchor())
    };
    links(page)
        .into_iter()
        .filter(|link| !leads_somewhere(link))
        .map(|link| format!("{}: {link}", path.display()))
        .collect()
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let root = repository();
    let folders = [
        "",
        "docs",
        "allocators",
        "claims",
        "programs",
        "traces",
        ".github/ISSUE_TEMPLATE",
    ];
    let pages: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect();
    assert!(pages.len() > 20, "{pages:?}");
    let mut nowhere: Vec<String> = pages
        .iter()
        .flat_map(|path| dead(path, &fs::read_to_string(path).unwrap()))
        .collect();
    // Beside the other documents.
    for what in ["allocators", "workloads", "metrics", "checks"] {
        let page = Place::new().run(&["list", what, "--markdown"]).stdout;
        nowhere.extend(dead(&root.join("docs").join(what), &page));
    }
    assert!(nowhere.is_empty(), "{}", nowhere.join("\n"));
}

#[test]
fn a_dead_link_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.md");
    let text = "# One heading, `code`\n[a](page.md#one-heading-code) [b](#one) [c](other.md) [d](https://a.b)\n<img src=\"none.png\">";
    fs::write(&page, text).unwrap();
    let found: Vec<String> = dead(&page, text)
        .iter()
        .map(|one| one.rsplit(' ').next().unwrap().to_string())
        .collect();
    assert_eq!(found, ["#one", "other.md", "none.png"]);
}

/// Limits of the documents that people write: what a program prints is not stored.
/// The twentieth is TUNE: a command whose result is copied into other people's machines needs its own page.
const MOST_DOCUMENTS: usize = 20;
const MOST_WORDS: usize = 45_000;

/// Words of documents that no program has written.
fn written_words(pages: &[String]) -> usize {
    let written = pages
        .iter()
        .filter(|page| !page.contains("\nWritten by `make "));
    written.map(|page| page.split_whitespace().count()).sum()
}

#[test]
fn documents_are_few_and_short() {
    let folder = fs::read_dir(repository().join("docs")).unwrap();
    let paths = folder.map(|entry| entry.unwrap().path());
    let pages = paths.filter(|path| path.extension().is_some_and(|end| end == "md"));
    let pages: Vec<String> = pages
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let words = written_words(&pages);
    assert!(pages.len() <= MOST_DOCUMENTS, "{} documents", pages.len());
    assert!((1..=MOST_WORDS).contains(&words), "{words} words");
    let both = ["# A\n\nWritten by `make a`; three more", "# B\n\ntwo words"];
    assert_eq!(written_words(&both.map(String::from)), 4);
}

/// README is for the first minutes; what needs more words has its own document.
const MOST_README_WORDS: usize = 700;

#[test]
fn readme_can_be_read_in_a_few_minutes() {
    let readme = repository().join("README.md");
    let words = fs::read_to_string(readme)
        .unwrap()
        .split_whitespace()
        .count();
    assert!(words <= MOST_README_WORDS, "{words} words");
}
