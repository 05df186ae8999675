//! Finds in a program's file what serves its memory, for programs that nothing can be preloaded into and for builds that
//! differ by their allocator: by names of symbols, strings that stripping leaves, and versions.

use heapmark_catalog::joined;
use memchr::memmem;
use object::elf::PT_INTERP;
use object::read::elf::{ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSection, ObjectSymbol};
use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

/// Names of symbols, each with the allocator that defines it.
pub(super) const NAMES: [(&str, &str); 14] = [
    ("_rjem_malloc", JEMALLOC),
    ("_rjem_mallocx", JEMALLOC),
    ("je_malloc", JEMALLOC),
    ("mallocx", JEMALLOC),
    ("mi_malloc", MIMALLOC),
    ("mi_malloc_aligned", MIMALLOC),
    ("mi_heap_malloc", MIMALLOC),
    ("sn_rust_alloc", "snmalloc"),
    ("tc_malloc", GPERFTOOLS),
    ("TCMallocInternalMalloc", "tcmalloc"),
    ("rpmalloc", RPMALLOC),
    ("dlmalloc", "dlmalloc"),
    ("__malloc_context", MUSL),
    ("__libc_malloc_impl", MUSL),
];
/// Parts of names as C++ and Rust mangle them, each with the allocator whose symbols contain it.
const PARTS: [(&str, &str); 3] = [
    ("8snmalloc", "snmalloc"),
    ("8dlmalloc", "dlmalloc"),
    ("5scudo", "scudo"),
];
/// Strings that remain in a program that is stripped of symbols.
pub(super) const STRINGS: [(&str, &str); 4] = [
    ("<jemalloc>", JEMALLOC),
    ("mimalloc: ", MIMALLOC),
    ("malloc(): corrupted top size", GLIBC),
    // The first of musl's error messages.
    ("No error information\0Illegal byte sequence\0", MUSL),
];
pub(super) const JEMALLOC: &str = "jemalloc";
pub(super) const MIMALLOC: &str = "mimalloc";
pub(super) const GPERFTOOLS: &str = "gperftools";
pub(super) const RPMALLOC: &str = "rpmalloc";
const GLIBC: &str = "glibc";
const MUSL: &str = "musl";
/// The name of Go's allocator in [`Evidence::allocator`].
pub const GO: &str = "Go's own allocator";

/// Evidence that a file contains an allocator.
#[derive(Clone, Debug, PartialEq)]
pub struct Evidence {
    /// The allocator's name, such as `jemalloc`; for the allocator of a C library, the library's name.
    pub allocator: &'static str,
    /// The version as written in the file.
    pub version: Option<String>,
    /// What identifies the allocator, such as `its symbol mi_malloc`; empty if the version does.
    pub sign: String,
}

impl Display for Evidence {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let signs = self.version.iter().map(String::as_str);
        let signs = signs.chain(Some(&*self.sign).filter(|sign| !sign.is_empty()));
        write!(f, "{} ({})", self.allocator, joined(signs, ", "))
    }
}

impl Evidence {
    /// Returns whether the allocator is that of a C library.
    pub fn is_of_libc(&self) -> bool {
        [GLIBC, MUSL].contains(&self.allocator)
    }
}

/// Returns the allocators that a file contains, by name. If a C library is linked with another allocator, only the other allocator is
/// returned.
pub fn evidence(data: &[u8]) -> Vec<Evidence> {
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(data) else {
        return Vec::new();
    };
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    let has_string = |text: &str| memmem::find(data, text.as_bytes()).is_some();
    for (text, allocator) in STRINGS.iter().filter(|(text, _)| has_string(text)) {
        let text = text.split('\0').next().unwrap_or_default().trim();
        found.insert(allocator, format!("its string {text:?}"));
    }
    for name in defined_names(&elf) {
        let exact = NAMES.iter().find(|(known, _)| *known == name);
        let part = || PARTS.iter().find(|(known, _)| name.contains(known));
        if let Some((known, allocator)) = exact.or_else(part) {
            let known = known.trim_start_matches(|c: char| c.is_ascii_digit());
            found.insert(allocator, format!("its symbol {known}"));
        }
    }
    // musl's string shows only that libc.a is musl's: its malloc is not linked if another allocator takes its place.
    if found.len() > 1
        && found
            .get(MUSL)
            .is_some_and(|text| text.starts_with("its string"))
    {
        found.remove(MUSL);
    }
    let version = |allocator: &str| match allocator {
        JEMALLOC => jemalloc_version(data),
        GLIBC => numbers_behind(data, b"stable release version "),
        GPERFTOOLS => numbers_behind(data, b"gperftools "),
        MUSL => musl_version(data),
        _ => None,
    };
    let named = found.into_iter().map(|(allocator, sign)| Evidence {
        allocator,
        version: version(allocator),
        sign,
    });
    let go = elf.section_by_name(".go.buildinfo").map(|section| {
        let version = section.data().ok().and_then(go_version);
        Evidence {
            allocator: GO,
            sign: match version {
                Some(_) => String::new(),
                None => "its .go.buildinfo".into(),
            },
            version,
        }
    });
    named.chain(go).collect()
}

/// Returns what serves a program's memory, according to its file: `mimalloc (its symbol mi_malloc)`. For a dynamically linked program, the
/// list has only what the file itself contains, which may be nothing. For a static program that shows nothing, it contains whether the file
/// was stripped.
pub fn shown_to_serve(data: &[u8]) -> Vec<String> {
    let Ok(elf) = ElfFile64::<object::Endianness>::parse(data) else {
        return Vec::new();
    };
    let mut found = evidence(data);
    if is_dynamic(&elf, data) {
        found.retain(|evidence| !evidence.is_of_libc());
    } else if found.is_empty() {
        return vec![match defined_names(&elf).next() {
            None => "stripped: not known".into(),
            Some(_) => "not known by its symbols".into(),
        }];
    }
    found.iter().map(Evidence::to_string).collect()
}

/// Returns whether a dynamic linker loads the file.
pub fn is_dynamic(elf: &ElfFile64, data: &[u8]) -> bool {
    let headers = elf.elf_header().program_headers(elf.endian(), data);
    let mut headers = headers.unwrap_or_default().iter();
    headers.any(|header| header.p_type(elf.endian()) == PT_INTERP)
}

/// Returns the names of the symbols that a file defines.
pub(super) fn defined_names<'a>(elf: &'a ElfFile64<'a>) -> impl Iterator<Item = &'a str> {
    let symbols = elf.symbols().chain(elf.dynamic_symbols());
    symbols
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| symbol.name().ok())
}

/// Returns jemalloc's version: `5.3.0` from `5.3.0-0-g54eaed1d8b56b1aa528be3bdd1877e59c56fa90c`.
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

/// Returns musl's version, such as `1.2.3`, which is a string of its own in the file of musl's dynamic linker (also its C library). A
/// static program has no such string.
fn musl_version(data: &[u8]) -> Option<String> {
    memmem::find(data, b"musl libc (")?;
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
    let is_version = |text: &&str| text.split('.').count() == 3 && text.split('.').all(is_number);
    let mut texts = data
        .split(|byte| *byte == 0)
        .filter_map(|text| std::str::from_utf8(text).ok());
    texts.find(is_version).map(str::to_owned)
}

/// Returns the version of Go, such as `go1.22.1`.
fn go_version(data: &[u8]) -> Option<String> {
    Some(format!("go{}", numbers_behind(data, b"go")?))
}

/// Returns the first number with dots that directly follows this text.
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
        let version = numbers_behind(banner, b"stable release version ");
        assert_eq!(version.as_deref(), Some("2.36"));
        assert_eq!(
            go_version(b"\xff go\0go1.22.1\0").as_deref(),
            Some("go1.22.1")
        );
        assert_eq!(go_version(b"gopher go1"), None);
        let musl = b"musl libc (x86_64)\nVersion %s\x00127.0.0.1\x001.2.3\0";
        assert_eq!(musl_version(musl).as_deref(), Some("1.2.3"));
        assert_eq!(musl_version(b"\x001.2.3\0"), None);
    }

    #[test]
    fn a_dynamic_program_shows_only_what_is_inside_of_it() {
        assert!(shown_to_serve(&std::fs::read("/bin/true").unwrap()).is_empty());
        assert!(shown_to_serve(b"text").is_empty());
    }
}
