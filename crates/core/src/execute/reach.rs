//! Which objects in a process call a malloc that no preloaded library serves: an object that was
//! opened with RTLD_DEEPBIND or in a namespace of its own calls libc's, and an object may have an
//! allocator inside. Found from outside, while the process runs or is stopped: its memory shows
//! where the dynamic linker has bound each object's malloc.

use super::tree::program;
use crate::build::command::{allocators_inside, own_malloc};
use object::elf::{DF_SYMBOLIC, DT_FLAGS, DT_SYMBOLIC, PT_LOAD};
use object::read::elf::{Dynamic, ElfFile64, ProgramHeader};
use object::{Object as _, ObjectSymbol, ObjectSymbolTable, RelocationTarget};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
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

/// An object that allocates from something other than the preloaded libraries.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Beyond {
    /// The object's file.
    pub object: String,
    pub how: How,
}

/// Where an object gets its memory from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum How {
    /// The object's malloc is bound to the one in this file.
    Bound(String),
    /// The object has this allocator inside.
    Inside(String),
}

impl Beyond {
    /// Returns whether the object calls another file's malloc.
    pub fn is_bound(&self) -> bool {
        matches!(self.how, How::Bound(_))
    }

    /// Describes the object in words, for the program that the process executes.
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

/// A reader of processes, which caches the files that it has read.
#[derive(Default)]
pub struct Reader {
    files: BTreeMap<String, MappedFile>,
}

/// What a mapped file is.
#[derive(Clone)]
enum MappedFile {
    Object(Rc<ElfObject>),
    /// No object: a font, a database.
    Other,
    /// The file may not be read, so that it may be anything.
    Unread,
}

/// What is known of an object from its file.
#[derive(Default)]
struct ElfObject {
    /// Addresses of the slots into which the dynamic linker writes a function's address, as in the file.
    slots: Vec<u64>,
    /// The address of the malloc that the object defines for others.
    malloc: Option<u64>,
    /// Whether the object calls its own malloc, whatever others define.
    is_symbolic: bool,
    /// Whether the object is the dynamic linker or libc, which all others build on.
    is_ground: bool,
    inside: BTreeSet<&'static str>,
    /// The address of the object's first byte, as in the file.
    first: u64,
}

/// Where the dynamic linker has bound an object's calls for memory.
pub struct Binding {
    /// The object's file.
    pub object: String,
    /// Whether the object defines a malloc for others.
    pub defines_malloc: bool,
    /// Whether the object calls for memory by way of the dynamic linker.
    pub calls: bool,
    /// Files whose malloc is called, also those that may not be read; the object's own file if it serves itself. Calls
    /// that were never made may lead nowhere yet.
    pub to: BTreeSet<String>,
    /// Allocators that the object contains under names of their own.
    pub inside: BTreeSet<&'static str>,
    is_symbolic: bool,
    /// Whether the object is the dynamic linker or libc.
    pub is_ground: bool,
}

/// A line of `/proc/PID/maps`.
#[derive(Debug)]
pub struct Mapping<'a> {
    /// The address of the mapping's first byte.
    pub start: u64,
    /// The address after the mapping's last byte.
    pub end: u64,
    /// Whether the mapping may be read and written.
    pub is_written: bool,
    /// Whether the mapping may be executed.
    pub is_code: bool,
    /// The offset of the first byte in the file.
    pub offset: u64,
    /// Path, name in brackets, or empty; ` (deleted)` at the end if the file is no longer there.
    pub file: &'a str,
}

/// What the kernel writes behind the path of a file that is no longer there.
const DELETED: &str = " (deleted)";
/// The first bytes of an object.
pub const ELF: &[u8] = b"\x7fELF";

/// Returns the lines of `/proc/PID/maps`.
pub fn mappings(maps: &str) -> impl Iterator<Item = Mapping<'_>> {
    maps.lines().filter_map(Mapping::of)
}

/// Returns the last part of a path.
pub fn file_name(file: &str) -> &str {
    file.rsplit('/').next().unwrap_or(file)
}

/// Returns whether a file of this name is the dynamic linker or libc, which all others build on.
pub fn is_ground(name: &str) -> bool {
    is_linker(name) || name.starts_with("libc.so")
}

fn is_linker(name: &str) -> bool {
    name.starts_with("ld-")
}

impl<'a> Mapping<'a> {
    /// Parses a line; `None` for the other lines of `smaps`.
    pub fn of(line: &'a str) -> Option<Mapping<'a>> {
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let mut words = line.splitn(6, ' ');
        let (start, end) = words.next()?.split_once('-')?;
        let permissions = words.next()?;
        let offset = words.next()?;
        Some(Mapping {
            start: number(start)?,
            end: number(end)?,
            is_written: permissions.starts_with("rw"),
            is_code: permissions.contains('x'),
            offset: number(offset)?,
            file: words.nth(2)?.trim_start(),
        })
    }

    /// Returns whether the mapping is the first one of a file: of a program or a library, if nothing else has mapped
    /// the file.
    pub fn begins_a_file(&self) -> bool {
        self.offset == 0 && self.file.starts_with('/')
    }

    /// Returns whether the mapping belongs to the dynamic linker.
    pub fn is_of_linker(&self) -> bool {
        is_linker(file_name(self.file))
    }

    /// Returns whether the mapping's file was deleted, or replaced by another one, after it had been mapped.
    pub fn is_deleted(&self) -> bool {
        self.file.ends_with(DELETED)
    }

    /// Returns the path that the mapping's file had when it was mapped.
    pub fn former_path(&self) -> &'a str {
        self.file.strip_suffix(DELETED).unwrap_or(self.file)
    }

    /// Returns a path by which heapmark can read the mapping's file. A deleted one may only be read by root, unless the
    /// process executes it.
    pub fn path(&self, pid: i32) -> PathBuf {
        let of_process = |name: String| PathBuf::from(format!("/proc/{pid}/{name}"));
        if program(pid).is_ok_and(|program| program == Path::new(self.file)) {
            return of_process("exe".into());
        }
        let itself = of_process(format!("map_files/{:x}-{:x}", self.start, self.end));
        if self.is_deleted() {
            return itself;
        }
        // `maps` shows paths from the reader's root, even if the process has another one.
        let named = match shares_mounts(pid) {
            true => self.file.into(),
            false => of_process(format!("root{}", self.file)),
        };
        if named.exists() { named } else { itself }
    }

    /// Returns the content of the mapping's file; of a file that is no object, only the first bytes.
    pub fn data(&self, pid: i32) -> io::Result<Vec<u8>> {
        let path = self.path(pid);
        // Devices can be mapped, too; reading one may do anything.
        if !fs::metadata(&path)?.is_file() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let mut file = File::open(path)?;
        let mut data = Vec::new();
        file.by_ref()
            .take(ELF.len() as u64)
            .read_to_end(&mut data)?;
        // A mapped database may be larger than the machine's memory.
        if data == ELF {
            file.read_to_end(&mut data)?;
        }
        Ok(data)
    }
}

/// Returns whether a process has heapmark's own mounts, and not those of a container.
pub fn shares_mounts(pid: i32) -> bool {
    let mounts = |process: &str| fs::read_link(format!("/proc/{process}/ns/mnt")).ok();
    let own = mounts("self");
    own.is_some() && own == mounts(&pid.to_string())
}

impl Reader {
    /// Returns the objects of a process whose allocations bypass the preloaded library that serves.
    /// There are none for a process that is gone, or that may not be read.
    pub fn beyond(&mut self, pid: i32, preloaded: &Path) -> Vec<Beyond> {
        let is_ours = |file: &str| Path::new(file) == preloaded;
        let Ok(objects) = self.bindings(pid) else {
            return Vec::new();
        };
        // If the library is not loaded, or the program's own malloc comes before it, it serves no object.
        let program = program(pid).unwrap_or_default();
        let is_first =
            |binding: &Binding| Path::new(&binding.object) == program && binding.defines_malloc;
        if objects.iter().any(is_first) || !objects.iter().any(|binding| is_ours(&binding.object)) {
            return Vec::new();
        }
        let mut found = BTreeSet::new();
        for binding in objects {
            if binding.is_ground || is_ours(&binding.object) {
                continue;
            }
            let name = |how| Beyond {
                object: binding.object.clone(),
                how,
            };
            if !binding.defines_malloc {
                let inside = binding
                    .inside
                    .iter()
                    .map(|allocator| How::Inside((*allocator).to_owned()));
                found.extend(inside.map(name));
            } else if binding.is_symbolic || binding.to.contains(&binding.object) {
                found.insert(name(How::Inside("a malloc of its own".into())));
            }
            let others = binding
                .to
                .iter()
                .filter(|to| !is_ours(to) && **to != binding.object);
            found.extend(others.map(|to| name(How::Bound(to.clone()))));
        }
        found.into_iter().collect()
    }

    /// Finds where each object's calls for memory lead. Fails if the process has ended or its memory may not be read.
    pub fn bindings(&mut self, pid: i32) -> io::Result<Vec<Binding>> {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps"))?;
        let memory = File::open(format!("/proc/{pid}/mem"))?;
        let all: Vec<Mapping> = mappings(&maps).collect();
        let mut found = Vec::new();
        for first in all.iter().filter(|mapping| mapping.begins_a_file()) {
            let MappedFile::Object(object) = self.read(pid, first) else {
                continue;
            };
            let mut binding = Binding {
                object: first.file.to_owned(),
                defines_malloc: object.malloc.is_some(),
                calls: !object.slots.is_empty(),
                to: BTreeSet::new(),
                inside: object.inside.clone(),
                is_symbolic: object.is_symbolic,
                is_ground: object.is_ground,
            };
            let moved_by = first.start.wrapping_sub(object.first);
            for slot in &object.slots {
                let mut address = [0; 8];
                let at = moved_by.wrapping_add(*slot);
                if memory.read_exact_at(&mut address, at).is_err() {
                    continue;
                }
                let address = u64::from_ne_bytes(address);
                let holds = |mapping: &&Mapping| (mapping.start..mapping.end).contains(&address);
                let Some(owner) = all.iter().find(holds) else {
                    continue;
                };
                // Before the first call, a slot's address leads back into the object, and it may
                // lead into a program that takes the function's address.
                let is_own = object.malloc == Some(address.wrapping_sub(moved_by));
                let is_other = owner.file.starts_with('/') && owner.file != first.file;
                let mut serves = || match self.read(pid, owner) {
                    MappedFile::Object(object) => object.malloc.is_some(),
                    MappedFile::Other => false,
                    // Whatever it is, its code is called.
                    MappedFile::Unread => owner.is_code,
                };
                if is_own || is_other && serves() {
                    binding.to.insert(owner.file.to_owned());
                }
            }
            found.push(binding);
        }
        Ok(found)
    }

    /// Returns what the file of a mapping is.
    fn read(&mut self, pid: i32, mapping: &Mapping) -> MappedFile {
        if let Some(known) = self.files.get(mapping.file) {
            return known.clone();
        }
        // Another process's file may be readable, so this is not cached.
        let Ok(data) = mapping.data(pid) else {
            return MappedFile::Unread;
        };
        let object = ElfObject::of(mapping.file, &data);
        let read = object.map_or(MappedFile::Other, |object| {
            MappedFile::Object(Rc::new(object))
        });
        self.files.insert(mapping.file.to_owned(), read.clone());
        read
    }
}

impl ElfObject {
    fn of(path: &str, data: &[u8]) -> Option<ElfObject> {
        if !data.starts_with(ELF) {
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
        let name = file_name(path);
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
        object.is_ground = is_ground(name);
        if !object.is_ground {
            object.inside = allocators_inside(&elf, data);
            object.inside.extend(own_malloc(&elf));
        }
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
