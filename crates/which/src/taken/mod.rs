//! Which settings an allocator has, read from its own variables in the process's memory. Only what is recognised without
//! doubt is said; of everything else, why it is not known.

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

/// Values by the name of their setting: in decimals, `true`, or text.
pub type Values = BTreeMap<String, String>;

/// The memory of a process, for reading. It goes on meanwhile.
pub struct Memory {
    file: File,
    maps: String,
}

impl Memory {
    /// Of a process with these mappings; or why it may not be read.
    pub fn of(process: &Process, maps: &str) -> Result<Memory, String> {
        match File::open(format!("/proc/{}/mem", process.pid)) {
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

    /// So many bytes from an address on; nothing if they are not all there.
    pub fn bytes(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; count];
        self.file.read_exact_at(&mut bytes, address).ok()?;
        Some(bytes)
    }

    /// An object that is mapped from this file.
    pub fn object<'a>(&self, file: &str, data: &'a [u8]) -> Option<Mapped<'_, 'a>> {
        let elf: ElfFile64 = ElfFile64::parse(data).ok()?;
        let endian = elf.endian();
        let mut loaded = elf.elf_program_headers().iter();
        let first = loaded.find(|header| header.p_type(endian) == PT_LOAD)?;
        let first = first.p_vaddr(endian).wrapping_sub(first.p_offset(endian));
        let mappings: Vec<Mapping> = mappings(&self.maps).filter(|it| it.file == file).collect();
        let start = mappings.iter().find(|it| it.offset == 0)?.start;
        Some(Mapped {
            memory: self,
            moved_by: start.wrapping_sub(first),
            mappings,
            elf,
            data,
        })
    }
}

/// An object of a process: its file, and where that is mapped.
pub struct Mapped<'m, 'a> {
    memory: &'m Memory,
    /// What is added to addresses of the file.
    moved_by: u64,
    mappings: Vec<Mapping<'m>>,
    elf: ElfFile64<'a>,
    data: &'a [u8],
}

impl Mapped<'_, '_> {
    /// Bytes of the process at an address of the file.
    fn at(&self, address: u64, count: usize) -> Option<Vec<u8>> {
        self.memory
            .bytes(self.moved_by.wrapping_add(address), count)
    }

    /// The bytes of each of its mappings, with the address of the first.
    fn mapped(&self) -> impl Iterator<Item = (u64, Vec<u8>)> {
        let bytes = |it: &Mapping| {
            let count = usize::try_from(it.end - it.start).ok()?;
            Some((it.start, self.memory.bytes(it.start, count)?))
        };
        self.mappings.iter().filter_map(bytes)
    }
}

/// A little word of memory at a place in bytes.
fn word(bytes: &[u8], at: usize) -> Option<u64> {
    let word = bytes.get(at..at + 8)?;
    word.try_into().ok().map(u64::from_ne_bytes)
}

/// A number of 32 bits at this place.
fn half(bytes: &[u8], at: usize) -> Option<u32> {
    let half = bytes.get(at..at + 4)?;
    half.try_into().ok().map(u32::from_ne_bytes)
}
