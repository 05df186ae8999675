//! Which objects in a process call a malloc that no preloaded library serves: one that was opened
//! with RTLD_DEEPBIND or in a namespace of its own calls libc's, and one may have an allocator
//! inside. Read from outside, while the process runs or has stopped: where the dynamic linker has
//! bound each object's malloc lies in its memory.

use super::tree::{field, program};
use crate::build::command::{allocators_inside, own_malloc};
use object::elf::{DF_SYMBOLIC, DT_FLAGS, DT_SYMBOLIC, PT_LOAD};
use object::read::elf::{Dynamic, ElfFile64, ProgramHeader};
use object::{Object as _, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::rc::Rc;

/// The functions by which a program takes memory.
const TAKING: [&str; 6] = [
    "malloc",
    "calloc",
    "realloc",
    "aligned_alloc",
    "posix_memalign",
    "memalign",
];

/// An object that takes memory where no preloaded library gives it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beyond {
    /// Its file.
    pub object: String,
    pub how: How,
}

/// Where it takes its memory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// Its malloc is bound to this file's.
    Bound(String),
    /// It has this allocator inside.
    Inside(String),
}

impl Beyond {
    /// Whether it calls another file's malloc.
    pub fn is_bound(&self) -> bool {
        matches!(self.how, How::Bound(_))
    }

    /// In words, with the program of the process.
    pub fn words_in(&self, program: &str) -> String {
        let mut object = self.object.clone();
        if object != program {
            object += &format!(" in {program}");
        }
        match &self.how {
            How::Bound(to) => format!(
                "{object} (calls the malloc of {to}: opened with RTLD_DEEPBIND, or in a namespace of its own)"
            ),
            How::Inside(allocator) => format!("{object} (has {allocator} inside)"),
        }
    }
}

/// Reads processes; knows the files that it has read.
#[derive(Default)]
pub struct Reader {
    files: BTreeMap<String, Option<Rc<ElfObject>>>,
}

/// What an object's file says.
#[derive(Default)]
struct ElfObject {
    /// Addresses that the dynamic linker fills with that of a function, as in the file.
    slots: Vec<u64>,
    /// The address of the malloc that it defines for others.
    malloc: Option<u64>,
    /// Whether it calls its own malloc, whatever others define.
    is_symbolic: bool,
    inside: BTreeSet<&'static str>,
    /// The address of its first byte, as in the file.
    first: u64,
}

/// One line of `/proc/PID/maps`.
struct Mapping<'a> {
    start: u64,
    end: u64,
    offset: u64,
    file: &'a str,
}

fn mappings(maps: &str) -> impl Iterator<Item = Mapping<'_>> {
    let number = |text: &str| u64::from_str_radix(text, 16).ok();
    maps.lines().filter_map(move |line| {
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let offset = words.nth(1)?;
        Some(Mapping {
            start: number(start)?,
            end: number(end)?,
            offset: number(offset)?,
            file: words.nth(2)?.trim_start(),
        })
    })
}

impl Reader {
    /// The objects of a process that take memory past the preloaded library that serves. Nothing of
    /// a process that is gone, or that may not be read.
    pub fn beyond(&mut self, pid: i32, preloaded: &Path) -> Vec<Beyond> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        let Ok(memory) = File::open(format!("/proc/{pid}/mem")) else {
            return Vec::new();
        };
        let all: Vec<Mapping> = mappings(&maps).collect();
        let is_ours = |file: &str| Path::new(file) == preloaded;
        // Where it is not loaded, or the program itself comes before it, it serves no object.
        let program = program(pid).unwrap_or_default();
        let serves = |object: Rc<ElfObject>| object.malloc.is_some();
        let comes_first = self
            .object(pid, &program.to_string_lossy())
            .is_some_and(serves);
        if comes_first || !all.iter().any(|it| is_ours(it.file)) {
            return Vec::new();
        }
        let mut found = BTreeSet::new();
        let firsts = all
            .iter()
            .filter(|it| it.offset == 0 && it.file.starts_with('/') && !is_ours(it.file));
        for first in firsts {
            let Some(object) = self.object(pid, first.file) else {
                continue;
            };
            let name = |how| Beyond {
                object: first.file.to_owned(),
                how,
            };
            let own = || name(How::Inside("a malloc of its own".into()));
            if object.malloc.is_none() {
                let inside = object.inside.iter().map(|it| How::Inside((*it).to_owned()));
                found.extend(inside.map(name));
            } else if object.is_symbolic {
                found.insert(own());
            }
            let moved_by = first.start.wrapping_sub(object.first);
            for slot in &object.slots {
                let mut address = [0; 8];
                let at = moved_by.wrapping_add(*slot);
                if memory.read_exact_at(&mut address, at).is_err() {
                    continue;
                }
                let address = u64::from_ne_bytes(address);
                if object.malloc == Some(address.wrapping_sub(moved_by)) {
                    found.insert(own());
                }
                let holds = |it: &&Mapping| (it.start..it.end).contains(&address);
                let Some(owner) = all.iter().find(holds) else {
                    continue;
                };
                // Before the first call it leads back into the object, and a program may stand for
                // a function whose address it takes.
                if owner.file.starts_with('/')
                    && !is_ours(owner.file)
                    && owner.file != first.file
                    && self.object(pid, owner.file).is_some_and(serves)
                {
                    found.insert(name(How::Bound(owner.file.to_owned())));
                }
            }
        }
        found.into_iter().collect()
    }

    /// What the file says, as the process sees it.
    fn object(&mut self, pid: i32, file: &str) -> Option<Rc<ElfObject>> {
        let read = || {
            let data = fs::read(format!("/proc/{pid}/root{file}")).ok()?;
            ElfObject::of(file, &data).map(Rc::new)
        };
        let known = self.files.entry(file.to_owned());
        known.or_insert_with(read).clone()
    }
}

impl ElfObject {
    fn of(path: &str, data: &[u8]) -> Option<ElfObject> {
        if !data.starts_with(b"\x7fELF") {
            return None;
        }
        let elf: ElfFile64 = ElfFile64::parse(data).ok()?;
        let endian = elf.endian();
        let mut loaded = elf.elf_program_headers().iter();
        let first = loaded.find(|header| header.p_type(endian) == PT_LOAD)?;
        let first = first.p_vaddr(endian).wrapping_sub(first.p_offset(endian));
        let mut object = ElfObject {
            first,
            ..ElfObject::default()
        };
        let name = path.rsplit('/').next().unwrap_or(path);
        let symbols = elf.dynamic_symbol_table()?;
        let mut defined = symbols.symbols().filter(ObjectSymbol::is_definition);
        let malloc = defined.find(|symbol| symbol.name() == Ok("malloc"));
        object.malloc = malloc.map(|symbol| symbol.address());
        object.is_symbolic = elf.elf_dynamic_table().is_ok_and(|table| {
            let says = |entry: Dynamic| match entry.tag {
                DT_SYMBOLIC => true,
                DT_FLAGS => entry.val & DF_SYMBOLIC.0 != 0,
                _ => false,
            };
            table.iter().any(says)
        });
        // The dynamic linker and libc are the ground that all stand on.
        if name.starts_with("ld-") || name.starts_with("libc.so") {
            object.is_symbolic = false;
            return Some(object);
        }
        object.inside = allocators_inside(&elf, data);
        object.inside.extend(own_malloc(&elf));
        for (address, relocation) in elf.dynamic_relocations().into_iter().flatten() {
            let RelocationTarget::Symbol(index) = relocation.target() else {
                continue;
            };
            let symbol = symbols.symbol_by_index(index);
            let name = symbol.and_then(|symbol| symbol.name());
            if name.is_ok_and(|name| TAKING.contains(&name)) {
                object.slots.push(address);
            }
        }
        Some(object)
    }
}

/// Anonymous memory of a process, in bytes: what is resident and in no file.
pub fn anonymous_bytes(pid: i32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = field(&status, "RssAnon:")?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib << 10)
}
