//! Reads a shared library without loading it: what it exports, and whether it can be preloaded on
//! this machine.

use crate::catalog::malloc_api;
use object::elf::{DF_1_PIE, DT_FLAGS_1, DT_NEEDED, DT_SONAME, FileHeader64, RelocationType};
use object::read::elf::{Dyn, ElfFile};
use object::{
    Architecture, Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationFlags,
};
use std::collections::BTreeSet;
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

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let here = std::env::consts::ARCH;
        // A message is one line.
        write!(
            f,
            "{}: ",
            self.path.display().to_string().replace('\n', "\\n")
        )?;
        match &self.reason {
            Reason::Missing => write!(f, "there is no such file; check the path"),
            Reason::Unreadable(why) => write!(f, "cannot be read ({why}); check its permissions"),
            Reason::NotRegular => write!(f, "not a regular file; name the library itself"),
            Reason::Unspeakable => {
                write!(
                    f,
                    "LD_PRELOAD takes no path with a space, colon or `$`; move the library or link to it"
                )
            }
            Reason::Loop => write!(f, "a link that leads back to itself; mend the link"),
            Reason::CutOff => write!(
                f,
                "an ELF file that is cut off or damaged; copy or build it again"
            ),
            Reason::NotElf => write!(
                f,
                "not an ELF file; name the shared library, not a linker script or an archive"
            ),
            Reason::OtherMachine(other) => write!(
                f,
                "made for {other}, this machine is {here}; build it for {here}"
            ),
            Reason::NotShared => write!(f, "not a shared library; link it with -shared"),
            Reason::NoMalloc => {
                write!(
                    f,
                    "exports no malloc, so preloading it changes nothing; build it with its override enabled"
                )
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Inspects a library that will serve as an allocator; a library without `malloc` is refused.
pub fn inspect(path: &Path) -> Result<Inspection, Refusal> {
    let inspection = inspect_any(path)?;
    if inspection.exports.contains("malloc") {
        return Ok(inspection);
    }
    Err(Refusal {
        path: path.into(),
        reason: Reason::NoMalloc,
    })
}

/// Inspects a library that does not have to define `malloc` itself, such as the second of two that
/// are preloaded together.
pub fn inspect_any(path: &Path) -> Result<Inspection, Refusal> {
    let refuse = |reason| Refusal {
        path: path.into(),
        reason,
    };
    if !preloadable(path) {
        return Err(refuse(Reason::Unspeakable));
    }
    let metadata = std::fs::metadata(path).map_err(|error| {
        refuse(match error.kind() {
            std::io::ErrorKind::NotFound => Reason::Missing,
            _ if error.raw_os_error() == Some(libc::ELOOP) => Reason::Loop,
            _ => Reason::Unreadable(error.to_string()),
        })
    })?;
    if !metadata.is_file() {
        return Err(refuse(Reason::NotRegular));
    }
    let data =
        std::fs::read(path).map_err(|error| refuse(Reason::Unreadable(error.to_string())))?;
    let is_elf = data.starts_with(b"\x7fELF");
    let unread = || {
        refuse(if is_elf {
            Reason::CutOff
        } else {
            Reason::NotElf
        })
    };
    let file = object::File::parse(data.as_slice()).map_err(|_| unread())?;
    if file.format() != object::BinaryFormat::Elf {
        return Err(refuse(Reason::NotElf));
    }
    let here = match std::env::consts::ARCH {
        "aarch64" => Architecture::Aarch64,
        _ => Architecture::X86_64,
    };
    if file.architecture() != here || !file.is_64() {
        let bits = if file.is_64() { 64 } else { 32 };
        return Err(refuse(Reason::OtherMachine(format!(
            "{:?} ({bits} bit)",
            file.architecture()
        ))));
    }
    let object::File::Elf64(elf) = &file else {
        return Err(refuse(Reason::NotElf));
    };
    if file.kind() != ObjectKind::Dynamic {
        return Err(refuse(Reason::NotShared));
    }
    read(elf).ok_or_else(|| refuse(Reason::NotShared))
}

/// Whether the dynamic linker accepts this path: it splits `LD_PRELOAD` at spaces and colons, and
/// expands `$`.
pub fn preloadable(path: &Path) -> bool {
    !path.to_string_lossy().contains([' ', ':', '$', '\n', '\t'])
}

/// `None` if the file has no dynamic section, or is a position-independent program.
fn read(elf: &ElfFile<FileHeader64<Endianness>>) -> Option<Inspection> {
    let (endian, data) = (elf.endian(), elf.data());
    let mut inspection = Inspection::default();
    let (entries, strings) = elf.elf_section_table().dynamic(endian, data).ok()??;
    let strings = elf
        .elf_section_table()
        .strings(endian, data, strings)
        .ok()?;
    let text = |offset: u64| -> Option<String> {
        Some(String::from_utf8_lossy(strings.get(offset.try_into().ok()?).ok()?).into_owned())
    };
    for entry in entries {
        let value = entry.d_val(endian);
        match entry.tag(endian) {
            DT_SONAME => inspection.soname = text(value)?,
            DT_NEEDED => inspection.needed.push(text(value)?),
            DT_FLAGS_1 if value & DF_1_PIE.0 != 0 => return None,
            _ => {}
        }
    }
    if let Ok(Some(id)) = elf.build_id() {
        inspection.build_id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    }
    for symbol in elf.dynamic_symbols() {
        if symbol.is_undefined() || symbol.is_local() {
            continue;
        }
        if let Ok(name) = symbol.name().map(String::from)
            && !name.is_empty()
        {
            let set = if malloc_api::contains(&name) {
                &mut inspection.exports
            } else {
                &mut inspection.others
            };
            set.insert(name);
        }
    }
    Some(inspection)
}

/// How a library or an object file accesses thread-local data through a call, which costs on every
/// access; `None` with initial-exec TLS.
pub fn dynamic_tls(path: &Path) -> Result<Option<String>, Refusal> {
    let refuse = |reason| Refusal {
        path: path.into(),
        reason,
    };
    let data =
        std::fs::read(path).map_err(|error| refuse(Reason::Unreadable(error.to_string())))?;
    let file = object::File::parse(data.as_slice()).map_err(|_| refuse(Reason::NotElf))?;
    let imports = |name: &str| {
        file.symbols()
            .chain(file.dynamic_symbols())
            .any(|s| s.is_undefined() && s.name() == Ok(name))
    };
    if imports("__tls_get_addr") {
        return Ok(Some("it calls __tls_get_addr".into()));
    }
    let sections = file
        .sections()
        .flat_map(|section| section.relocations().collect::<Vec<_>>());
    let relocations = sections.chain(file.dynamic_relocations().into_iter().flatten());
    for (_, relocation) in relocations {
        if let RelocationFlags::Elf { r_type } = relocation.flags()
            && is_dynamic_tls(r_type)
        {
            return Ok(Some(format!("it has TLS relocations of type {}", r_type.0)));
        }
    }
    Ok(None)
}

/// The flags that the compiler wrote into a library: one list for each compiled file, or for
/// several files with the same flags.
pub fn recorded_flags(path: &Path) -> Result<Vec<Vec<String>>, Refusal> {
    let refuse = |reason| Refusal {
        path: path.into(),
        reason,
    };
    let data =
        std::fs::read(path).map_err(|error| refuse(Reason::Unreadable(error.to_string())))?;
    let file = object::File::parse(data.as_slice()).map_err(|_| refuse(Reason::NotElf))?;
    let section = file
        .section_by_name(".GCC.command.line")
        .and_then(|section| section.data().ok())
        .unwrap_or_default();
    let lines = section
        .split(|byte| *byte == 0)
        .filter(|line| !line.is_empty());
    Ok(lines
        .map(|line| {
            String::from_utf8_lossy(line)
                .split_whitespace()
                .map(String::from)
                .collect()
        })
        .collect())
}

/// General and local dynamic TLS, and descriptors: a call finds the address of a variable at run
/// time. By number, since the types are contiguous ranges (psABI of each processor).
fn is_dynamic_tls(r_type: RelocationType) -> bool {
    match std::env::consts::ARCH {
        "aarch64" => matches!(r_type.0, 512..=538 | 560..=569 | 572 | 573 | 1028 | 1029 | 1031),
        _ => matches!(r_type.0, 16 | 17 | 19 | 20 | 34..=36),
    }
}
