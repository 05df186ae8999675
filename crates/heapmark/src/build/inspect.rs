//! Reads a shared library without loading it: what it exports, and whether it can be preloaded on
//! this machine.

use super::cache::{hex, preloadable};
use object::elf::{DF_1_PIE, DT_FLAGS_1, DT_NEEDED, DT_SONAME, FileHeader64, RelocationType};
use object::{
    Architecture, Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationFlags,
};
use std::collections::BTreeSet;
use std::env::consts::ARCH;
use std::fmt;
use std::path::{Path, PathBuf};

/// What a library's ELF file contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inspection {
    /// Names of the malloc family (`catalog::malloc_api`) that it defines.
    pub exports: BTreeSet<String>,
    /// Everything else that it exports.
    pub others: BTreeSet<String>,
    /// Its soname; empty if it has none.
    pub soname: String,
    /// Its GNU build-id in hex; empty if it has none.
    pub build_id: String,
    /// The libraries it needs.
    pub needed: Vec<String>,
}

/// Why a file cannot be preloaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub reason: Reason,
}

/// What can be wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is no such file.
    Missing,
    /// It cannot be read, for this reason.
    Unreadable(String),
    /// A folder, a socket, …
    NotRegular,
    /// The dynamic linker splits `LD_PRELOAD` at spaces and colons.
    Unspeakable,
    /// A link that leads back to itself.
    Loop,
    /// Not an ELF file.
    NotElf,
    /// Only the beginning of an ELF file.
    CutOff,
    /// Built for this other machine.
    OtherMachine(String),
    /// ELF, but a program, an object file, …
    NotShared,
    /// A shared library without `malloc`.
    NoMalloc,
}

impl Reason {
    /// The refusal of a file for this reason.
    pub fn of(self, path: &Path) -> Refusal {
        Refusal {
            path: path.into(),
            reason: self,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let reason: &str = match &self.reason {
            Reason::Missing => "there is no such file; check the path",
            Reason::Unreadable(why) => &format!("cannot be read ({why}); check its permissions"),
            Reason::NotRegular => "not a regular file; name the library itself",
            Reason::Unspeakable => {
                "LD_PRELOAD takes no path with a space, colon or `$`; move the library or link to it"
            }
            Reason::Loop => "a link that leads back to itself; mend the link",
            Reason::CutOff => "an ELF file that is cut off or damaged; copy or build it again",
            Reason::NotElf => {
                "not an ELF file; name the shared library, not a linker script or an archive"
            }
            Reason::OtherMachine(other) => {
                &format!("made for {other}, this machine is {ARCH}; build it for {ARCH}")
            }
            Reason::NotShared => "not a shared library; link it with -shared",
            Reason::NoMalloc => {
                "exports no malloc, so preloading it changes nothing; build it with its override enabled"
            }
        };
        // A message is one line.
        let path = self.path.display().to_string().replace('\n', "\\n");
        write!(f, "{path}: {reason}")
    }
}

impl std::error::Error for Refusal {}

/// Inspects a library that will serve as an allocator; a library without `malloc` is refused.
pub fn inspect(path: &Path) -> Result<Inspection, Refusal> {
    let inspection = inspect_any(path)?;
    if inspection.exports.contains("malloc") {
        return Ok(inspection);
    }
    Err(Reason::NoMalloc.of(path))
}

/// Inspects a library that does not have to define `malloc` itself, such as the second of two that
/// are preloaded together.
pub fn inspect_any(path: &Path) -> Result<Inspection, Refusal> {
    look(path).map_err(|reason| reason.of(path))
}

fn look(path: &Path) -> Result<Inspection, Reason> {
    if !preloadable(path) {
        return Err(Reason::Unspeakable);
    }
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Reason::Missing,
        _ if error.raw_os_error() == Some(libc::ELOOP) => Reason::Loop,
        _ => Reason::Unreadable(error.to_string()),
    })?;
    if !metadata.is_file() {
        return Err(Reason::NotRegular);
    }
    let data = bytes(path)?;
    let Ok(file) = object::File::parse(data.as_slice()) else {
        let is_elf = data.starts_with(b"\x7fELF");
        return Err(if is_elf {
            Reason::CutOff
        } else {
            Reason::NotElf
        });
    };
    if file.format() != object::BinaryFormat::Elf {
        return Err(Reason::NotElf);
    }
    if file.architecture() != this_machine() || !file.is_64() {
        let bits = if file.is_64() { 64 } else { 32 };
        let other = format!("{:?} ({bits} bit)", file.architecture());
        return Err(Reason::OtherMachine(other));
    }
    match &file {
        object::File::Elf64(elf) if file.kind() == ObjectKind::Dynamic => read(elf),
        _ => None,
    }
    .ok_or(Reason::NotShared)
}

/// The processor that programs and libraries must be made for.
pub(super) fn this_machine() -> Architecture {
    match ARCH {
        "aarch64" => Architecture::Aarch64,
        _ => Architecture::X86_64,
    }
}

fn bytes(path: &Path) -> Result<Vec<u8>, Reason> {
    std::fs::read(path).map_err(|error| Reason::Unreadable(error.to_string()))
}

/// `None` if the file has no dynamic section, or is a position-independent program.
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
    inspection.build_id = hex(elf.build_id().ok().flatten().unwrap_or_default());
    (inspection.exports, inspection.others) = elf
        .dynamic_symbols()
        .filter(|symbol| !symbol.is_undefined() && !symbol.is_local())
        .filter_map(|symbol| symbol.name().ok())
        .filter(|name| !name.is_empty())
        .map(String::from)
        .partition(|name| crate::catalog::malloc_api::contains(name));
    Some(inspection)
}

/// What `read` finds in a library or an object file.
fn parsed<T>(path: &Path, read: impl FnOnce(&object::File) -> T) -> Result<T, Refusal> {
    let data = bytes(path).map_err(|reason| reason.of(path))?;
    let file = object::File::parse(data.as_slice()).map_err(|_| Reason::NotElf.of(path))?;
    Ok(read(&file))
}

/// How a library or an object file accesses thread-local data through a call, which costs on every
/// access; `None` with initial-exec TLS.
pub fn dynamic_tls(path: &Path) -> Result<Option<String>, Refusal> {
    parsed(path, |file| {
        let mut symbols = file.symbols().chain(file.dynamic_symbols());
        if symbols.any(|symbol| symbol.is_undefined() && symbol.name() == Ok("__tls_get_addr")) {
            return Some("it calls __tls_get_addr".into());
        }
        let sections = file
            .sections()
            .flat_map(|section| section.relocations().collect::<Vec<_>>());
        let mut relocations = sections.chain(file.dynamic_relocations().into_iter().flatten());
        relocations.find_map(|(_, relocation)| match relocation.flags() {
            RelocationFlags::Elf { r_type } if is_dynamic_tls(r_type) => {
                Some(format!("it has TLS relocations of type {}", r_type.0))
            }
            _ => None,
        })
    })
}

/// The flags that the compiler wrote into a library: one list for each compiled file, or for
/// several files with the same flags.
pub fn recorded_flags(path: &Path) -> Result<Vec<Vec<String>>, Refusal> {
    parsed(path, |file| {
        let section = file.section_by_name(".GCC.command.line");
        let data = section.and_then(|section| section.data().ok());
        let lines = data.unwrap_or_default().split(|byte| *byte == 0);
        lines
            .filter(|line| !line.is_empty())
            .map(|line| {
                let line = String::from_utf8_lossy(line);
                line.split_whitespace().map(String::from).collect()
            })
            .collect()
    })
}

/// General and local dynamic TLS, and descriptors: a call finds the address of a variable at run
/// time. By number, since the types are contiguous ranges (psABI of each processor).
fn is_dynamic_tls(r_type: RelocationType) -> bool {
    match ARCH {
        "aarch64" => matches!(r_type.0, 512..=538 | 560..=569 | 572 | 573 | 1028 | 1029 | 1031),
        _ => matches!(r_type.0, 16 | 17 | 19 | 20 | 34..=36),
    }
}
