//! Reads a program's file: which machine it is for, what would serve its memory, and which
//! allocators it contains.

use super::{Recognised, Unreachable};
use crate::catalog::malloc_api;
use object::elf::{DT_NEEDED, FileHeader64, PT_DYNAMIC, PT_INTERP};
use object::read::elf::{Dyn, ElfFile, FileHeader, ProgramHeader};
use object::{Architecture, Endianness, Object, ObjectSymbol};
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
pub(super) fn look(data: &[u8]) -> Recognised {
    let not = |why| Recognised {
        unreachable: Some(why),
        ..Recognised::default()
    };
    let Ok(object::File::Elf64(elf)) = object::File::parse(data) else {
        return match object::File::parse(data) {
            Ok(file) if file.format() == object::BinaryFormat::Elf => {
                not(Unreachable::OtherMachine(format!("{:?} (32 bit)", file.architecture())))
            }
            _ => not(Unreachable::Unreadable(
                "it is no program that this machine knows; a script names its interpreter on its first line: #!/bin/sh"
                    .into(),
            )),
        };
    };
    let here = if std::env::consts::ARCH == "aarch64" {
        Architecture::Aarch64
    } else {
        Architecture::X86_64
    };
    if elf.architecture() != here {
        return not(Unreachable::OtherMachine(format!(
            "{:?}",
            elf.architecture()
        )));
    }
    let go = elf.section_by_name(".go.buildinfo").is_some();
    let headers = elf
        .elf_header()
        .program_headers(elf.endian(), data)
        .unwrap_or_default();
    let header = |kind| {
        headers
            .iter()
            .find(|header| header.p_type(elf.endian()) == kind)
    };
    let Some(interp) = header(PT_INTERP) else {
        return not(Unreachable::Static { go });
    };
    if interp
        .data(elf.endian(), data)
        .is_ok_and(|name| name.windows(7).any(|part| part == b"ld-musl"))
    {
        return not(Unreachable::OtherLibc);
    }
    let needed = if header(PT_DYNAMIC).is_some() {
        needed(&elf)
    } else {
        Vec::new()
    };
    let starts = |name: &String, with: &[&str]| with.iter().any(|start| name.starts_with(start));
    let own = elf
        .dynamic_symbols()
        .any(|symbol| symbol.is_definition() && symbol.name() == Ok("malloc"));
    let names: BTreeSet<&str> = elf
        .symbols()
        .chain(elf.dynamic_symbols())
        .filter(|s| s.is_definition())
        .filter_map(|s| s.name().ok())
        .collect();
    let by_name = INSIDE
        .iter()
        .filter(|(name, _)| names.contains(name))
        .map(|(_, allocator)| *allocator);
    let by_string = STRINGS
        .iter()
        .filter(|(text, _)| data.windows(text.len()).any(|part| part == *text));
    let within: BTreeSet<&str> = by_name
        .chain(by_string.map(|(_, allocator)| *allocator))
        .collect();
    let sanitizer = needed
        .iter()
        .find(|name| starts(name, &SANITIZERS))
        .cloned()
        .map(Unreachable::Sanitizer);
    Recognised {
        chain: Vec::new(),
        unreachable: sanitizer.or(own.then_some(Unreachable::OwnMalloc)),
        linked: needed
            .iter()
            .filter(|name| starts(name, &ALLOCATORS))
            .cloned()
            .collect(),
        inside: within
            .into_iter()
            .chain(go.then_some("Go's own allocator"))
            .collect(),
        imports_malloc: elf
            .dynamic_symbols()
            .any(|symbol| symbol.is_undefined() && symbol.name().is_ok_and(is_of_malloc)),
    }
}

/// Whether this is a function of the malloc family: most C++ programs import `operator new` and no
/// `malloc`.
fn is_of_malloc(name: &str) -> bool {
    malloc_api::required().any(|one| one == name)
}

fn needed(elf: &ElfFile<FileHeader64<Endianness>>) -> Vec<String> {
    let (endian, data) = (elf.endian(), elf.data());
    let Ok(Some((entries, strings))) = elf.elf_section_table().dynamic(endian, data) else {
        return Vec::new();
    };
    let Ok(strings) = elf.elf_section_table().strings(endian, data, strings) else {
        return Vec::new();
    };
    let wanted = entries
        .iter()
        .filter(|entry| entry.tag(endian) == DT_NEEDED);
    let name = |offset: u64| strings.get(offset.try_into().ok()?).ok();
    wanted
        .filter_map(|entry| Some(String::from_utf8_lossy(name(entry.d_val(endian))?).into_owned()))
        .collect()
}
