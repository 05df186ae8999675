//! Reads a program's file: which machine it is for, what would serve its memory, and which
//! allocators it contains.

use super::Recognised;
use super::evidence::{GPERFTOOLS, JEMALLOC, MIMALLOC, NAMES, RPMALLOC, STRINGS, defined_names};
use memchr::memmem;
use object::read::elf::{ElfFile64, ElfSymbol64, FileHeader, ProgramHeader};
use object::{Object, ObjectSymbol, SymbolKind};
use std::collections::{BTreeSet, HashSet};

/// Allocators that take over a program's memory if it contains them. Others may serve a purpose of their own: dlmalloc
/// is in libffi, for its closures.
const HEEDED: [&str; 4] = [JEMALLOC, MIMALLOC, GPERFTOOLS, RPMALLOC];
/// Sanitizer runtimes, which check memory and replace malloc.
const SANITIZERS: [&str; 5] = ["libasan", "libtsan", "libmsan", "liblsan", "libhwasan"];

/// Returns what a program's file shows about the memory that it will use.
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
    if elf.architecture() != crate::inspect::this_machine() {
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
        return silent(format!(
            "{what}: it has no dynamic linker that could preload"
        ));
    };
    if interp
        .data(elf.endian(), data)
        .is_ok_and(|name| memmem::find(name, b"ld-musl").is_some())
    {
        return silent("linked to musl: libraries for glibc cannot be preloaded into it".into());
    }
    let needed: Vec<String> = elf
        .import_libraries()
        .into_iter()
        .flatten()
        .filter_map(|library| Some(String::from_utf8_lossy(library.ok()?.name()).into_owned()))
        .collect();
    let checks = |name: &&String| SANITIZERS.iter().any(|start| name.starts_with(start));
    let has_malloc = elf
        .dynamic_symbols()
        .any(|symbol| symbol.is_definition() && symbol.name() == Ok("malloc"));
    let sanitizer = needed.iter().find(checks).map(|library| {
        format!(
            "linked to {library}, which serves malloc itself: build the program without -fsanitize"
        )
    });
    Recognised {
        unreachable: sanitizer.or(has_malloc.then(|| {
            "defines a malloc of its own, which comes before any that is preloaded".into()
        })),
        inside: allocators_inside(&elf, data)
            .into_iter()
            .chain(own_malloc(&elf))
            .chain(go.then_some("Go's own allocator"))
            .collect(),
        runs: true,
        ..Recognised::default()
    }
}

fn silent(why: String) -> Recognised {
    Recognised {
        runs: true,
        is_silent: true,
        ..Recognised::refused(why)
    }
}

/// Returns the allocators that an object contains under names of their own.
pub fn allocators_inside(elf: &ElfFile64, data: &[u8]) -> BTreeSet<&'static str> {
    let known: HashSet<&str> = NAMES.iter().map(|(name, _)| *name).collect();
    let names: BTreeSet<&str> = defined_names(elf)
        .filter(|name| known.contains(name))
        .collect();
    let by_name = NAMES.iter().filter(|(name, _)| names.contains(name));
    let has_string = |text: &str| memmem::find(data, text.as_bytes()).is_some();
    let heeded = STRINGS
        .iter()
        .filter(|(_, allocator)| HEEDED.contains(allocator));
    let by_string = heeded.filter(|(text, _)| has_string(text));
    let found = by_name.chain(by_string).map(|(_, allocator)| *allocator);
    found
        .filter(|allocator| HEEDED.contains(allocator))
        .collect()
}

/// Returns a label for a malloc that is visible only in the object itself, as `static` and hidden functions are.
pub fn own_malloc(elf: &ElfFile64) -> Option<&'static str> {
    // A compiler may have added a suffix to the name: malloc.constprop.0.
    let is_malloc = |name: &str| name == "malloc" || name.starts_with("malloc.");
    let is_own = |symbol: ElfSymbol64<'_, '_>| {
        let is_local = symbol.is_local() && symbol.is_definition();
        is_local && symbol.kind() == SymbolKind::Text && symbol.name().is_ok_and(is_malloc)
    };
    elf.symbols().any(is_own).then_some("a malloc of its own")
}

fn made_for(what: String) -> Recognised {
    Recognised::refused(format!("made for {what}: no allocator here is"))
}
