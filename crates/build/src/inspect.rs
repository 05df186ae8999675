//! Reads a shared library without loading it: what it exports, and whether it can be preloaded on
//! this machine.

use super::cache::{hex, preloadable};
use anyhow::{Context, Result, anyhow, bail, ensure};
use heapmark_catalog::releases::numbers;
use object::elf::{DF_1_PIE, DT_FLAGS_1, DT_NEEDED, DT_SONAME, FileHeader64, RelocationType};
use object::{
    Architecture, Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationFlags,
};
use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::fs;
use std::path::Path;
use std::{fmt, io};

/// What a library's ELF file contains.
#[derive(Clone, Debug, Default)]
pub struct Inspection {
    /// Names of the malloc family (`catalog::malloc_api`) that the library defines.
    pub exports: BTreeSet<String>,
    /// Everything else that the library exports.
    pub others: BTreeSet<String>,
    /// The library's soname; empty if it has none.
    pub soname: String,
    /// The library's GNU build-id in hex; empty if it has none.
    pub build_id: String,
    /// Names of the libraries that the library needs.
    pub needed: Vec<String>,
    /// The oldest glibc that has every symbol version which the library needs; empty if it needs none.
    pub glibc: String,
}

/// The reason for refusing a file that is not an ELF file at all.
const NOT_ELF: &str = "not an ELF file; name the shared library, not a linker script or an archive";

/// Returns the error of a file that cannot be preloaded, with the reason.
fn refusal(path: &Path, why: impl fmt::Display) -> anyhow::Error {
    // An error message must stay on one line.
    let path = path.display().to_string().replace('\n', "\\n");
    anyhow!("{path}: {why}")
}

/// Returns the refusal of a shared library without `malloc`.
pub(super) fn no_malloc(path: &Path) -> anyhow::Error {
    refusal(
        path,
        "exports no malloc, so preloading it changes nothing; build it with its override enabled",
    )
}

/// Inspects a library that will serve as an allocator; a library without `malloc` is refused.
pub fn inspect(path: &Path) -> Result<Inspection> {
    let inspection = inspect_any(path)?;
    if inspection.exports.contains("malloc") {
        return Ok(inspection);
    }
    Err(no_malloc(path))
}

/// Inspects a library that does not have to define `malloc` itself, such as the second of two that
/// are preloaded together.
pub fn inspect_any(path: &Path) -> Result<Inspection> {
    look(path).map_err(|why| refusal(path, why))
}

fn look(path: &Path) -> Result<Inspection> {
    // The dynamic linker splits `LD_PRELOAD` at spaces and colons.
    ensure!(
        preloadable(path),
        "LD_PRELOAD takes no path with a space, colon or `$`; move the library or link to it"
    );
    let metadata = fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => anyhow!("there is no such file; check the path"),
        _ if error.raw_os_error() == Some(libc::ELOOP) => {
            anyhow!("a link that leads back to itself; mend the link")
        }
        _ => unreadable(error),
    })?;
    ensure!(
        metadata.is_file(),
        "not a regular file; name the library itself"
    );
    let data = fs::read(path).map_err(unreadable)?;
    let Ok(file) = object::File::parse(data.as_slice()) else {
        ensure!(data.starts_with(b"\x7fELF"), NOT_ELF);
        bail!("an ELF file that is cut off or damaged; copy or build it again");
    };
    ensure!(file.format() == object::BinaryFormat::Elf, NOT_ELF);
    if file.architecture() != this_machine() || !file.is_64() {
        let bits = if file.is_64() { 64 } else { 32 };
        bail!(
            "made for {:?} ({bits} bit), this machine is {ARCH}; build it for {ARCH}",
            file.architecture()
        );
    }
    match &file {
        object::File::Elf64(elf) if file.kind() == ObjectKind::Dynamic => read(elf),
        _ => None,
    }
    .context("not a shared library; link it with -shared")
}

fn unreadable(error: io::Error) -> anyhow::Error {
    anyhow!("cannot be read ({error}); check its permissions")
}

/// Returns the processor that programs and libraries must be made for.
pub(super) fn this_machine() -> Architecture {
    match ARCH {
        "aarch64" => Architecture::Aarch64,
        _ => Architecture::X86_64,
    }
}

/// Reads an ELF file; `None` if it has no dynamic section, or is a position-independent program.
fn read(elf: &object::read::elf::ElfFile<FileHeader64<Endianness>>) -> Option<Inspection> {
    let table = elf.elf_dynamic_table().ok()?;
    if table.is_empty() {
        return None;
    }
    let text = |entry| Some(String::from_utf8_lossy(table.string(entry).ok()?).into_owned());
    let mut inspection = Inspection::default();
    for entry in &table {
        match entry.tag {
            DT_SONAME => inspection.soname = text(entry)?,
            DT_NEEDED => inspection.needed.push(text(entry)?),
            DT_FLAGS_1 if entry.val & DF_1_PIE.0 != 0 => return None,
            _ => {}
        }
    }
    inspection.glibc = glibc(elf);
    inspection.build_id = hex(elf.build_id().ok().flatten().unwrap_or_default());
    (inspection.exports, inspection.others) = elf
        .dynamic_symbols()
        .filter(|symbol| !symbol.is_undefined() && !symbol.is_local())
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| !name.is_empty())
        .map(String::from)
        .partition(|name| heapmark_catalog::malloc_api::contains(name));
    Some(inspection)
}

/// Returns the newest of the versions of glibc's symbols that a file needs.
fn glibc(elf: &object::read::elf::ElfFile<FileHeader64<Endianness>>) -> String {
    let endian = elf.endian();
    let sections = elf.elf_section_table();
    let Ok(Some((mut libraries, names))) = sections.gnu_verneed(endian, elf.data()) else {
        return String::new();
    };
    let names = sections.strings(endian, elf.data(), names);
    let names = names.unwrap_or_default();
    let mut newest = String::new();
    while let Ok(Some((_, mut versions))) = libraries.next() {
        while let Ok(Some(version)) = versions.next() {
            let name = names.get(version.vna_name.get(endian));
            let name = String::from_utf8_lossy(name.unwrap_or_default());
            match name.strip_prefix("GLIBC_") {
                Some(name) if numbers(name) > numbers(&newest) => newest = name.to_owned(),
                _ => {}
            }
        }
    }
    newest
}

/// Returns how a library or an object file accesses thread-local data, if it does so through a
/// call, which costs time on every access; `None` with initial-exec TLS.
pub fn dynamic_tls(path: &Path) -> Result<Option<String>> {
    let data = fs::read(path).map_err(|error| refusal(path, unreadable(error)))?;
    let file = object::File::parse(data.as_slice()).map_err(|_| refusal(path, NOT_ELF))?;
    let mut symbols = file.symbols().chain(file.dynamic_symbols());
    if symbols.any(|symbol| symbol.is_undefined() && symbol.name() == Ok("__tls_get_addr")) {
        return Ok(Some("it calls __tls_get_addr".into()));
    }
    let mut relocations = file
        .sections()
        .flat_map(|section| section.relocations().collect::<Vec<_>>())
        .chain(file.dynamic_relocations().into_iter().flatten());
    let dynamic = relocations.find_map(|(_, relocation)| match relocation.flags() {
        RelocationFlags::Elf { r_type } if is_dynamic_tls(r_type) => {
            Some(format!("it has TLS relocations of type {}", r_type.0))
        }
        _ => None,
    });
    Ok(dynamic)
}

/// Returns whether a relocation is of general or local dynamic TLS, or of a TLS descriptor: a call
/// finds the address of a variable at run time. The types are compared by number, since they are
/// contiguous ranges (psABI of each processor).
fn is_dynamic_tls(r_type: RelocationType) -> bool {
    match ARCH {
        "aarch64" => matches!(r_type.0, 512..=538 | 560..=569 | 572 | 573 | 1028 | 1029 | 1031),
        _ => matches!(r_type.0, 16 | 17 | 19 | 20 | 34..=36),
    }
}
