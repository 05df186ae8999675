//! The objects that a process has mapped: the program and libraries.

use crate::preload::Preload;
use crate::process::Process;
use heapmark_core::build::inspect::{Inspection, inspect_any};
use heapmark_core::execute::reach::{Mapping, file_name, mappings};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSymbol};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;
use std::rc::Rc;

/// The mapped objects of a process.
pub struct MappedObjects<'a> {
    /// The process whose objects these are.
    pub process: &'a Process,
    /// The first mapping of each object.
    pub firsts: Vec<Mapping<'a>>,
    read: RefCell<BTreeMap<String, Rc<[u8]>>>,
}

impl<'a> MappedObjects<'a> {
    /// The objects of a process with these mappings.
    pub fn of(process: &'a Process, maps: &'a str) -> MappedObjects<'a> {
        MappedObjects {
            process,
            firsts: mappings(maps).filter(Mapping::begins_a_file).collect(),
            read: RefCell::default(),
        }
    }

    /// The content of an object, which is read once; empty if it may not be read.
    pub fn data(&self, file: &str) -> Rc<[u8]> {
        let read = || match Path::new(file) == self.process.program {
            true => self.process.read("exe").ok(),
            false => {
                let mapping = self.firsts.iter().find(|mapping| mapping.file == file)?;
                mapping.data(self.process.pid).ok()
            }
        };
        let mut known = self.read.borrow_mut();
        let data = known.entry(file.to_owned());
        data.or_insert_with(|| read().unwrap_or_default().into())
            .clone()
    }

    /// The first object that defines malloc, in the order in which the dynamic linker searches: the
    /// program, the preloaded libraries, then the needed ones, level by level.
    pub fn first(&self, program: &ElfFile64, preloads: &[Preload]) -> Option<String> {
        let defines = |elf: &ElfFile64| {
            let mut all = elf
                .dynamic_symbols()
                .filter(|symbol| symbol.is_definition());
            all.any(|symbol| symbol.name() == Ok("malloc"))
        };
        if defines(program) {
            return Some(self.process.program.to_string_lossy().into_owned());
        }
        let inspected: BTreeMap<&str, Inspection> = self
            .firsts
            .iter()
            .filter_map(|mapping| {
                Some((
                    mapping.file,
                    inspect_any(&self.process.path(mapping.file)).ok()?,
                ))
            })
            .collect();
        let needed = program.import_libraries().into_iter().flatten().flatten();
        let needed = needed.map(|library| String::from_utf8_lossy(library.name()).into_owned());
        let mut waiting: VecDeque<String> = preloads
            .iter()
            .filter_map(|preload| preload.file.clone())
            .collect();
        waiting.extend(needed);
        let mut seen = BTreeSet::new();
        while let Some(name) = waiting.pop_front() {
            let is_it = |(file, inspection): &(&&str, &Inspection)| {
                **file == name || inspection.soname == name || file_name(file) == name
            };
            let Some((file, inspection)) = inspected.iter().find(is_it) else {
                continue;
            };
            if !seen.insert(*file) {
                continue;
            }
            if inspection.exports.contains("malloc") {
                return Some((*file).to_owned());
            }
            waiting.extend(inspection.needed.iter().cloned());
        }
        None
    }
}
