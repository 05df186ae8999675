//! Fingerprints of heapmark's own sources. The names of cached files contain the fingerprint of the
//! code that made them: when that code changes, they are made again. The build script computes the
//! fingerprints, so this file has no dependencies.

use std::fs;
use std::path::{Path, PathBuf};

/// The sources that decide how a library is compiled from a given recipe, and what it exports.
pub const LIBRARIES: [&str; 6] = [
    "../catalog/src/malloc_api.rs",
    "src/compile.rs",
    "src/configure.rs",
    "src/files.rs",
    "src/link.rs",
    "src/toolchain.rs",
];
/// The sources that decide which compiled trace is made from a trace.
pub const COMPILED_TRACES: [&str; 7] = [
    "../wire/src/compiled",
    "../trace/src/codec",
    "../trace/src/event.rs",
    "../trace/src/grown.rs",
    "../trace/src/live.rs",
    "../trace/src/reader.rs",
    "../trace/src/compile",
];

/// Returns the fingerprint of all code in files and folders below `root`.
pub fn fingerprint(root: &Path, paths: &[&str]) -> String {
    let mut files = Vec::new();
    paths
        .iter()
        .for_each(|path| add(&root.join(path), &mut files));
    files.sort();
    let texts = files
        .iter()
        .map(|file| fs::read_to_string(file).unwrap_or_else(|why| panic!("{file:?}: {why}")));
    let all = texts.fold(START, |so_far, text| hash(so_far, code(&text).as_bytes()));
    format!("{all:016x}")
}

/// The hash of no bytes, from which every hash starts.
pub const START: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues a hash with more bytes. FNV-1a suffices: all of the bytes are our own, and deliberate collisions need no defence.
pub fn hash(so_far: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(so_far, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn add(path: &Path, files: &mut Vec<PathBuf>) {
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return;
    }
    for entry in fs::read_dir(path)
        .unwrap_or_else(|why| panic!("{path:?}: {why}"))
        .flatten()
    {
        if !["tests", "tests.rs"]
            .iter()
            .any(|name| entry.file_name() == *name)
        {
            add(&entry.path(), files);
        }
    }
}

/// Returns the text of a file without its comments, blank lines and tests.
fn code(text: &str) -> String {
    let lines = text
        .lines()
        .take_while(|line| *line != "mod tests {")
        .map(str::trim);
    let kept = lines.filter(|line| !line.is_empty() && !line.starts_with("//"));
    kept.flat_map(|line| [line, "\n"]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_that_change_have_another_fingerprint_and_comments_and_tests_are_none() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("a/tests")).unwrap();
        let of = |file: &str, text: &str| {
            fs::write(folder.path().join(file), text).unwrap();
            fingerprint(folder.path(), &["a", "b.rs"])
        };
        fs::write(folder.path().join("b.rs"), "").unwrap();
        let first = of(
            "a/a.rs",
            "let a = 1;\n\n#[cfg(test)]\nmod tests {\n    let b = 1;\n}\n",
        );
        assert_eq!(
            of(
                "a/a.rs",
                "// Why.\nlet a = 1;\n#[cfg(test)]\nmod tests {\n    let b = 2;\n}\n"
            ),
            first
        );
        assert_eq!(of("a/tests/c.rs", "let c = 1;"), first);
        assert_ne!(
            of("a/a.rs", "let a = 2;\n#[cfg(test)]\nmod tests {\n}\n"),
            first
        );
        let second = of("a/a.rs", "let a = 2;\n");
        assert_ne!(of("a/more.rs", "let d = 1;\n"), second);
        fs::remove_file(folder.path().join("a/more.rs")).unwrap();
        assert_ne!(of("b.rs", "let e = 1;\n"), second);
    }

    #[test]
    fn the_names_that_libraries_export_are_in_the_sources_of_libraries() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let read = |path: &str| code(&fs::read_to_string(root.join(path)).unwrap());
        let sources = LIBRARIES.map(read).concat();
        for name in heapmark_catalog::malloc_api::all() {
            assert!(sources.contains(&format!("\"{name}\"")), "{name}");
        }
    }

    #[test]
    fn names_in_the_cache_are_those_of_the_sources_as_they_are() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        assert_eq!(
            fingerprint(root, &LIBRARIES),
            env!("HEAPMARK_LIBRARY_SOURCES")
        );
        assert_eq!(
            fingerprint(root, &COMPILED_TRACES),
            env!("HEAPMARK_COMPILED_TRACE_SOURCES")
        );
    }
}
