//! Reads a program's file: which machine it is for, what would serve its memory, and which
//! allocators it contains.

use super::Recognised;
use object::read::elf::{FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol};
use std::collections::BTreeSet;

/// A symbol of this name in a program indicates that allocator.
const INSIDE: [(&str, &str); 6] = [
    ("_rjem_malloc", "jemalloc"),
    ("je_malloc", "jemalloc"),
    ("mallocx", "jemalloc"),
    ("mi_malloc", "mimalloc"),
    ("tc_malloc", "tcmalloc"),
    ("rpmalloc", "rpmalloc"),
];
/// Strings that remain in a program even if it is stripped of symbols.
const STRINGS: [(&[u8], &str); 2] = [(b"<jemalloc>", "jemalloc"), (b"mimalloc: ", "mimalloc")];
/// Prefixes of libraries that are allocators.
const ALLOCATORS: [&str; 11] = [
    "libjemalloc",
    "libtcmalloc",
    "libmimalloc",
    "libtbbmalloc",
    "libhoard",
    "librpmalloc",
    "libsnmalloc",
    "libscudo",
    "libclang_rt.scudo",
    "libgc.",
    "libumem",
];
/// Sanitizer runtimes, which check memory and replace malloc.
const SANITIZERS: [&str; 5] = ["libasan", "libtsan", "libmsan", "liblsan", "libhwasan"];

/// What a program's file shows about the memory that it will use.
pub fn look(data: &[u8]) -> Recognised {
    let elf = match object::File::parse(data) {
        Ok(object::File::Elf64(elf)) => elf,
        Ok(file) if file.format() == object::BinaryFormat::Elf => {
            return made_for(format!("{:?} (32 bit)", file.architecture()));
        }
        _ => {
            return Recognised::refused(
                "it is no program that this machine knows; a script names its interpreter on its first line: #!/bin/sh",
            );
        }
    };
    if elf.architecture() != crate::build::inspect::this_machine() {
        return made_for(format!("{:?}", elf.architecture()));
    }
    let go = elf.section_by_name(".go.buildinfo").is_some();
    let mut headers = elf
        .elf_header()
        .program_headers(elf.endian(), data)
        .unwrap_or_default()
        .iter();
    let Some(interp) = headers.find(|header| header.p_type(elf.endian()) == object::elf::PT_INTERP)
    else {
        let what = if go { "a static Go program" } else { "static" };
        return Recognised::refused(format!(
            "{what}: it has no dynamic linker that could preload"
        ));
    };
    if interp
        .data(elf.endian(), data)
        .is_ok_and(|name| contains(name, b"ld-musl"))
    {
        return Recognised::refused(
            "linked to musl: libraries for glibc cannot be preloaded into it",
        );
    }
    let needed: Vec<String> = elf
        .import_libraries()
        .into_iter()
        .flatten()
        .filter_map(|library| Some(String::from_utf8_lossy(library.ok()?.name()).into_owned()))
        .collect();
    let starts = |name: &&String, with: &[&str]| with.iter().any(|start| name.starts_with(start));
    let names: BTreeSet<&str> = elf
        .symbols()
        .chain(elf.dynamic_symbols())
        .filter(|symbol| symbol.is_definition())
        .filter_map(|symbol| symbol.name().ok())
        .collect();
    let by_name = INSIDE.iter().filter(|(name, _)| names.contains(name));
    let by_string = STRINGS.iter().filter(|(text, _)| contains(data, text));
    let within: BTreeSet<&str> = by_name
        .map(|(_, allocator)| *allocator)
        .chain(by_string.map(|(_, allocator)| *allocator))
        .collect();
    let own = elf
        .dynamic_symbols()
        .any(|symbol| symbol.is_definition() && symbol.name() == Ok("malloc"));
    let sanitizer = needed.iter().find(|name| starts(name, &SANITIZERS)).map(|library| {
        format!("linked to {library}, which serves malloc itself: build the program without -fsanitize")
    });
    Recognised {
        unreachable: sanitizer.or(own.then(|| {
            "defines a malloc of its own, which comes before any that is preloaded".into()
        })),
        linked: needed
            .iter()
            .filter(|name| starts(name, &ALLOCATORS))
            .cloned()
            .collect(),
        inside: within
            .into_iter()
            .chain(go.then_some("Go's own allocator"))
            .collect(),
        // Most C++ programs import `operator new` and no `malloc`.
        imports_malloc: elf.dynamic_symbols().any(|symbol| {
            let is_of_malloc =
                |name: &str| crate::catalog::malloc_api::required().any(|one| one == name);
            symbol.is_undefined() && symbol.name().is_ok_and(is_of_malloc)
        }),
        ..Recognised::default()
    }
}

fn made_for(what: String) -> Recognised {
    Recognised::refused(format!("made for {what}: no allocator here is"))
}

fn contains(data: &[u8], text: &[u8]) -> bool {
    data.windows(text.len()).any(|part| part == text)
}
