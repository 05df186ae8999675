//! A dynamic linker that is named as the program: `ld-linux-x86-64.so.2 --argv0 NAME ./program`. It loads the program that
//! is named after its own options, and preloads libraries into it as usual.

use std::ffi::OsStr;
use std::path::Path;

/// Options of the linker that take their value as a separate word.
const WITH_VALUE: [&str; 7] = [
    "--library-path",
    "--glibc-hwcaps-prepend",
    "--glibc-hwcaps-mask",
    "--inhibit-rpath",
    "--audit",
    "--preload",
    "--argv0",
];
/// Prefixes of the file names of glibc's dynamic linker.
const NAMES: [&str; 4] = ["ld-linux", "ld-2.", "ld64.so", "ld.so"];

/// Returns whether the file is glibc's dynamic linker, by its name or by that of the file that it links to.
pub fn is_linker(path: &Path) -> bool {
    let is_named = |path: &Path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        NAMES.iter().any(|start| name.starts_with(start)) && name.contains(".so")
    };
    is_named(path) || path.canonicalize().is_ok_and(|path| is_named(&path))
}

/// Returns the program among the words that follow the linker; `None` if all of them are options.
pub fn program<S: AsRef<OsStr>>(words: &[S]) -> Option<&S> {
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let text = word.as_ref().to_string_lossy();
        if !text.starts_with("--") {
            return Some(word);
        }
        if WITH_VALUE.contains(&&*text) {
            words.next()?;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_stands_behind_the_options_and_their_values() {
        let of = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            program(&words).map(|word| word.to_string())
        };
        assert_eq!(of("./words -n 1").unwrap(), "./words");
        let many = "--library-path /opt/lib:/lib --argv0 w --inhibit-cache ./words --argv0 x";
        assert_eq!(of(many).unwrap(), "./words");
        assert_eq!(of("--list-tunables"), None);
        assert_eq!(of("--argv0"), None);
        for name in [
            "/lib64/ld-linux-x86-64.so.2",
            "/n/lib/ld-linux-aarch64.so.1",
            "ld-2.31.so",
        ] {
            assert!(is_linker(Path::new(name)), "{name}");
        }
        for name in [
            "/lib/ld-musl-x86_64.so.1",
            "/usr/bin/ld",
            "/bin/true",
            "ld-linux",
        ] {
            assert!(!is_linker(Path::new(name)), "{name}");
        }
    }
}
