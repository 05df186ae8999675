//! What a program's file shows to serve its memory, for programs that nothing can be preloaded into and
//! for builds that differ by their allocator: names of symbols, strings that stripping leaves, versions.

use memchr::memmem;
use object::elf::PT_INTERP;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeMap;

/// A symbol of this name is that allocator's.
const NAMES: [(&str, &str); 14] = [
    ("_rjem_malloc", JEMALLOC),
    ("_rjem_mallocx", JEMALLOC),
    ("je_malloc", JEMALLOC),
    ("mallocx", JEMALLOC),
    ("mi_malloc", "mimalloc"),
    ("mi_malloc_aligned", "mimalloc"),
    ("mi_heap_malloc", "mimalloc"),
    ("sn_rust_alloc", "snmalloc"),
    ("tc_malloc", "gperftools"),
    ("TCMallocInternalMalloc", "tcmalloc"),
    ("rpmalloc", "rpmalloc"),
    ("dlmalloc", "dlmalloc"),
    ("__malloc_context", MUSL),
    ("__libc_malloc_impl", MUSL),
];
/// A symbol with this in its name, as C++ and Rust mangle it, is that allocator's.
const PARTS: [(&str, &str); 3] = [
    ("8snmalloc", "snmalloc"),
    ("8dlmalloc", "dlmalloc"),
    ("5scudo", "scudo"),
];
/// Strings that remain in a program that is stripped of symbols.
const STRINGS: [(&str, &str); 4] = [
    ("<jemalloc>", JEMALLOC),
    ("mimalloc: ", "mimalloc"),
    ("malloc(): corrupted top size", GLIBC),
    // The first of musl's words for an errno.
    ("No error information\0Illegal byte sequence\0", MUSL),
];
const JEMALLOC: &str = "jemalloc";
const GLIBC: &str = "glibc";
const MUSL: &str = "musl";
const GO: &str = "Go's own allocator";

/// What serves the memory of a program by its file: `mimalloc (its symbol mi_malloc)`. Of a dynamically linked one only
/// what is inside of it beside its libraries. Empty if nothing shows; then says whether the file was stripped.
pub fn shown_to_serve(data: &[u8]) -> Vec<String> {
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(data) else {
        return Vec::new();
    };
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    let has_string = |text: &str| memmem::find(data, text.as_bytes()).is_some();
    for (text, allocator) in STRINGS.iter().filter(|(text, _)| has_string(text)) {
        let text = text.split('\0').next().unwrap_or_default().trim();
        found.insert(allocator, format!("its string {text:?}"));
    }
    let mut is_stripped = true;
    for symbol in elf.symbols().chain(elf.dynamic_symbols()) {
        let Some(name) = symbol.name().ok().filter(|_| symbol.is_definition()) else {
            continue;
        };
        is_stripped = false;
        let own = NAMES.iter().find(|(known, _)| *known == name);
        let part = || PARTS.iter().find(|(known, _)| name.contains(known));
        if let Some((known, allocator)) = own.or_else(part) {
            let known = known.trim_start_matches(|c: char| c.is_ascii_digit());
            found.insert(allocator, format!("its symbol {known}"));
        }
    }
    // That is musl's C library, whose malloc is not linked if another one takes its place.
    if found.len() > 1
        && found
            .get(MUSL)
            .is_some_and(|it| it.starts_with("its string"))
    {
        found.remove(MUSL);
    }
    if let Some(section) = elf.section_by_name(".go.buildinfo") {
        let version = section.data().ok().and_then(go_version);
        found.insert(GO, version.unwrap_or("its .go.buildinfo".into()));
    }
    let is_dynamic = || {
        let headers = elf.elf_header().program_headers(elf.endian(), data).ok()?;
        let mut headers = headers.iter();
        headers.find(|header| header.p_type(elf.endian()) == PT_INTERP)
    };
    if is_dynamic().is_some() {
        found.remove(GLIBC);
        found.remove(MUSL);
    } else if found.is_empty() {
        return vec![match is_stripped {
            true => "stripped: not known".into(),
            false => "not known by its symbols".into(),
        }];
    }
    if let (Some(evidence), Some(version)) = (found.get_mut(JEMALLOC), jemalloc_version(data)) {
        *evidence = format!("{version}, {evidence}");
    }
    if let (Some(evidence), Some(version)) = (found.get_mut(GLIBC), glibc_version(data)) {
        *evidence = format!("{version}, {evidence}");
    }
    let words = found.iter();
    words
        .map(|(allocator, evidence)| format!("{allocator} ({evidence})"))
        .collect()
}

/// `5.3.0` of `5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c`, jemalloc's own version.
fn jemalloc_version(data: &[u8]) -> Option<String> {
    const COMMIT: usize = 40;
    let is_commit = |at: &usize| {
        let digits = data.get(at + 2..at + 2 + COMMIT);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    let end = memmem::find_iter(data, b"-g").find(is_commit)?;
    let before = &data[end.saturating_sub(20)..end];
    let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.' || **byte == b'-';
    let length = before.iter().rev().take_while(is_part).count();
    let text = std::str::from_utf8(&before[before.len() - length..]).ok()?;
    let (version, _) = text.split_once('-')?;
    (!version.is_empty()).then(|| version.to_owned())
}

/// `2.36` of `GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.`
fn glibc_version(data: &[u8]) -> Option<String> {
    numbers_behind(data, b"stable release version ")
}

/// `go1.22.1`.
fn go_version(data: &[u8]) -> Option<String> {
    Some(format!("go{}", numbers_behind(data, b"go")?))
}

/// The first number with points behind this text.
fn numbers_behind(data: &[u8], text: &[u8]) -> Option<String> {
    let of = |at: usize| {
        let rest = &data[at + text.len()..];
        let is_part = |byte: &&u8| byte.is_ascii_digit() || **byte == b'.';
        let length = rest.iter().take_while(is_part).count();
        let number = std::str::from_utf8(&rest[..length]).ok()?;
        let number = number.trim_end_matches('.');
        number.contains('.').then(|| number.to_owned())
    };
    memmem::find_iter(data, text).find_map(of)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_out_of_the_strings_that_hold_them() {
        let commit = "54eaed1d8b56b1aa528be3bdd1877e59c56fa90c";
        let jemalloc = format!("x-gone\0<jemalloc>\05.3.0-0-g{commit}\0");
        assert_eq!(
            jemalloc_version(jemalloc.as_bytes()).as_deref(),
            Some("5.3.0")
        );
        assert_eq!(jemalloc_version(b"-g54eaed"), None);
        let banner = b"GNU C Library (Debian GLIBC 2.36-9) stable release version 2.36.\n";
        assert_eq!(glibc_version(banner).as_deref(), Some("2.36"));
        assert_eq!(
            go_version(b"\xff go\0go1.22.1\0").as_deref(),
            Some("go1.22.1")
        );
        assert_eq!(go_version(b"gopher go1"), None);
    }

    #[test]
    fn a_dynamic_program_shows_only_what_is_inside_of_it() {
        assert!(shown_to_serve(&std::fs::read("/bin/true").unwrap()).is_empty());
        assert!(shown_to_serve(b"text").is_empty());
    }
}
