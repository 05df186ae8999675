//! The pack: traces of real programs that the binary carries.

use fast_glob::glob_match;
use include_dir::{Dir, include_dir};

static PACK: Dir = include_dir!("$CARGO_MANIFEST_DIR/../../traces");

/// Returns the names of the traces, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = PACK
        .files()
        .filter_map(|file| Some(file.path().to_str()?.strip_suffix(".trace")?.to_owned()))
        .collect();
    names.sort();
    names
}

/// Returns the names of the traces that a word names or, like `perl-*`, matches as a pattern.
pub fn matching(word: &str) -> Vec<String> {
    let mut names = names();
    names.retain(|name| name == word || glob_match(word, name));
    names
}

/// Returns the bytes of the trace with this name.
pub fn trace(name: &str) -> Option<&'static [u8]> {
    Some(PACK.get_file(format!("{name}.trace"))?.contents())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_trace_of_the_pack_is_of_a_real_program() {
        let programs = crate::real_program::load().unwrap();
        for name in names() {
            let program = programs.iter().find(|program| program.name == name);
            assert!(
                program.is_some_and(|program| program.pack_size.is_some()),
                "{name}"
            );
            assert!(trace(&name).is_some_and(|bytes| !bytes.is_empty()));
        }
        assert!(trace("none-of-this-name").is_none());
    }

    #[test]
    fn the_pack_is_small_and_its_page_has_what_each_trace_is_and_its_order_beside_its_program() {
        let names = names();
        let page = PACK.get_file("README.md").unwrap();
        let page = page.contents_utf8().unwrap();
        for name in &names {
            let rows = page
                .lines()
                .filter(|line| line.starts_with(&format!("| {name} |")));
            assert_eq!(rows.count(), 2, "{name}");
        }
        let bytes: usize = names.iter().map(|name| trace(name).unwrap().len()).sum();
        assert!(names.len() == 14 && bytes <= 8_000_000);
        assert!(page.contains(&format!("; 14 traces, {bytes} bytes.")));
    }

    #[test]
    fn a_word_is_a_name_or_a_pattern() {
        assert_eq!(matching("perl-hash"), ["perl-hash"]);
        assert_eq!(matching("*"), names());
        assert_eq!(matching("*-so*"), ["z3-solve"]);
        assert!(matching("perl").is_empty() && matching("[").is_empty());
    }
}
