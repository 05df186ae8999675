//! The settings that an allocator has, read from its own variables in the process's memory. Only
//! what is recognised without doubt is reported; for everything else, why it is not known.

pub mod glibc;
pub mod gperftools;
pub mod jemalloc;
pub mod mimalloc;

use crate::process::{Process, is_refused};
use heapmark_core::execute::reach::{Mapping, mappings};
use object::elf::PT_LOAD;
use object::read::elf::{ElfFile64, ProgramHeader};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Values by the names of their settings: in decimals, `true`, or text.
pub type Values = BTreeMap<String, String>;

/// The memory of a process, opened for reading. The process goes on meanwhile.
pub struct Memory {
    file: File,
    maps: String,
}

impl Memory {
    /// Opens the memory of a process with these mappings; or returns why it may not be read.
    pub fn of(process: &Process, maps: &str) -> Result<Memory, String> {
        match File::open(format!("/proc/{}/mem", process.thread)) {
            Ok(file) => Ok(Memory {
                file,
                maps: maps.to_owned(),
            }),
            Err(error) => {
                let error = process.error(error);
                Err(match is_refused(&error) {
                    true => "ptrace_scope".into(),
                    false => format!("{error:#}"),
                })
            }
        }
    }

    /// Reads `count` bytes from an address on; `None` if some of them cannot be read.
    pub fn bytes(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.file.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    /// Returns the object that is mapped from this file.
    pub fn object<'a>(&self, file: &str, data: &'a [u8]) -> Option<Mapped<'_, 'a>> {
        let elf: ElfFile64 = ElfFile64::parse(data).ok()?;
        let endian = elf.endian();
        let mut loaded = elf.elf_program_headers().iter();
        let first = loaded.find(|header| header.p_type(endian) == PT_LOAD)?;
        let first = first.p_vaddr(endian).wrapping_sub(first.p_offset(endian));
        let mappings: Vec<Mapping> = mappings(&self.maps)
            .filter(|mapping| mapping.file == file)
            .collect();
        let start = mappings.iter().find(|mapping| mapping.offset == 0)?.start;
        Some(Mapped {
            memory: self,
            moved_by: start.wrapping_sub(first),
            mappings,
            elf,
            data,
        })
    }
}

/// An object of a process: its file, and where the file is mapped.
pub struct Mapped<'m, 'a> {
    memory: &'m Memory,
    /// The offset to add to the file's addresses.
    moved_by: u64,
    mappings: Vec<Mapping<'m>>,
    elf: ElfFile64<'a>,
    data: &'a [u8],
}

impl Mapped<'_, '_> {
    /// Reads bytes of the process at an address of the file.
    fn at(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        self.memory
            .bytes(self.moved_by.wrapping_add(address), count)
    }

    /// The bytes of each of the object's mappings, with the address of the first byte.
    fn mapped(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let bytes = |mapping: &Mapping| {
            let count = usize::try_from(mapping.end - mapping.start).ok()?;
            Some((mapping.start, self.memory.bytes(mapping.start, count)?))
        };
        self.mappings.iter().filter_map(bytes)
    }
}

/// The 64-bit number at a place in some bytes, in the byte order of this machine.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    word.try_into().ok().map(u64::from_ne_bytes)
}

/// The 32-bit number at a place in some bytes.
fn half(bytes: &[u8], at: usize) -> Option<u32> {
    let half = bytes.get(at..at + 4)?;
    half.try_into().ok().map(u32::from_ne_bytes)
}
