//! `-a ./libfoo.so`, `-a foo=/path/libfoo.so` and `-a foo=git:PATH@REF`: an allocator from the command
//! line. Only parses the words; `state` inspects the file.

use super::git::{self, PREFIX};
use super::paths::{absolute, name_of, valid_name};
use anyhow::{Context, Result, bail};
use heapmark_catalog::allocator::{Allocator, Source, Tier};
use heapmark_catalog::allocators::is_name;
use std::path::Path;

/// Returns the allocator that a word of `-a` describes; `None` if the word is a plain name from the
/// catalogue, whose entries are `all`.
pub fn user(word: &str, all: &[Allocator]) -> Result<Option<Allocator>> {
    let (name, path) = match word.split_once('=') {
        Some((name, path)) if is_name(name) => (name.to_string(), path),
        Some((name, _)) if !name.starts_with(PREFIX) => {
            bail!("-a {word}: `{name}` is not a name; use a-z, 0-9, `_` and `-` only")
        }
        _ => match word.strip_prefix(PREFIX) {
            Some(text) => {
                let (path, revision) = git::parts(text);
                let path = absolute(Path::new(path)).with_context(|| format!("-a {word}"))?;
                let folder = path.file_name().unwrap_or_default().to_string_lossy();
                (valid_name(&format!("{folder}-{revision}")), word)
            }
            None if is_path(word) => (name_of(word), word),
            None => return Ok(None),
        },
    };
    if path.is_empty() {
        bail!("-a {word}: no file after `=`; write -a {name}=/path/lib{name}.so");
    }
    if name.is_empty() {
        bail!("-a {word}: no name can be made of that file's; write -a NAME={word}");
    }
    let allocator = match path.strip_prefix(PREFIX) {
        Some(text) => git::allocator(name, text, all),
        None => library(&name, Path::new(path)),
    };
    allocator.with_context(|| format!("-a {word}")).map(Some)
}

/// Returns the allocator of a library's file.
pub fn library(name: &str, path: &Path) -> Result<Allocator> {
    Ok(Allocator {
        name: name.into(),
        family: name.into(),
        about: format!("{}, from the command line", path.display()),
        tier: Tier::User,
        source: Source::Path {
            files: vec![absolute(path)?],
        },
        ..Allocator::default()
    })
}

/// Repairs words that were split at commas: if a file exists only under a name with commas, its
/// parts are joined again.
pub fn rejoined(words: &[String]) -> Vec<String> {
    let mut joined = Vec::new();
    let mut rest = words;
    while let Some(first) = rest.first() {
        let names_a_file = |parts: &usize| is_there(&rest[..*parts].join(","));
        let parts = (1..=rest.len())
            .find(names_a_file)
            .filter(|_| path_of(first).is_some())
            .unwrap_or(1);
        joined.push(rest[..parts].join(","));
        rest = &rest[parts..];
    }
    joined
}

fn is_there(word: &str) -> bool {
    path_of(word).is_some_and(|path| absolute(Path::new(path)).is_ok_and(|path| path.is_file()))
}

/// Returns the part of a word that is a path, whether the file exists or not.
fn path_of(word: &str) -> Option<&str> {
    match word.split_once('=') {
        Some((_, path)) => Some(path),
        None => is_path(word).then_some(word),
    }
}

fn is_path(word: &str) -> bool {
    word.contains('/') || word.ends_with(".so") || word.contains(".so.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(word: &str) -> Option<String> {
        user(word, &[]).unwrap().map(|allocator| allocator.name)
    }

    #[test]
    fn a_file_whose_name_has_commas_is_one_word_if_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a,b,c.so");
        let word = format!("x={}", file.display());
        let split = |word: &str| word.split(',').map(String::from).collect::<Vec<_>>();
        let words = split(&format!("glibc,{word},jemalloc"));
        assert_eq!(rejoined(&words), words, "it is not there");
        std::fs::write(&file, "").unwrap();
        assert_eq!(rejoined(&words), ["glibc", &word, "jemalloc"]);
        assert_eq!(
            rejoined(&split(file.to_str().unwrap())),
            [file.to_str().unwrap()]
        );
    }

    #[test]
    fn paths_become_allocators_and_names_do_not() {
        assert_eq!(name("jemalloc"), None);
        assert_eq!(name("./libfoo.so"), Some("foo".into()));
        assert_eq!(name("libFoo Bar.so.2"), Some("foo-bar".into()));
        assert_eq!(name("mine=/x/y.so"), Some("mine".into()));
    }

    #[test]
    fn the_path_becomes_absolute() {
        let Some(Allocator {
            source: Source::Path { files },
            ..
        }) = user("./libfoo.so", &[]).unwrap()
        else {
            panic!("not a path");
        };
        assert!(files[0].is_absolute() && files[0].ends_with("libfoo.so"));
    }

    #[test]
    fn bad_words_say_how_to_mend_them() {
        for (word, mend) in [
            ("Foo=/x.so", "a-z"),
            ("foo=", "-a foo=/path"),
            ("/x/lib.so", "NAME="),
        ] {
            let error = user(word, &[]).unwrap_err().to_string();
            assert!(error.contains(mend), "{error}");
        }
    }
}
